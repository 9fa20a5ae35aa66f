package run

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/agents/ppo"
	"clustergym/agents/train"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
	"clustergym/lab/config"
)

// steady is tinyRun with everything that reduces variance.
func steady() config.Config {
	c := tinyRun("ppo")
	c.Train.Steps, c.Train.Group = 800, 2
	jobSelect(&c).Privileged = true
	c.PPO.Baseline, c.PPO.ValueNorm, c.PPO.LambdaTau = ppo.ByGroup, ppo.PopArt, 10*time.Minute
	return c
}

// Groups, normalised values, lambda by time and a critic that sees more change no promise: the bytes are the same for
// any number of workers, and after interruptions at any step.
func TestVarianceReductionKeepsARunsPromises(t *testing.T) {
	seed := testseed.Or(101)
	t.Logf("seed %d", seed)
	r := rng.Stream(seed, "cuts")
	for _, replicas := range []int{1, 2} {
		cfg := steady()
		cfg.Seed, cfg.PPO.Replicas = seed, replicas
		straight := t.TempDir()
		trainTo(t, cfg, straight, TrainOptions{})
		want := contents(t, filepath.Join(straight, "tiny"))
		if !strings.Contains(want["progress.jsonl"], "ppo/group_share") ||
			!strings.Contains(want["progress.jsonl"], "ppo/value_deviation") {
			t.Fatal("no share of groups or no deviation of values is reported")
		}
		dir := t.TempDir()
		for i := range 3 {
			ctx, cancel := cancelled(t)
			cut := 4 * (1 + r.Int64N(60))
			from := int64(-1)
			_, err := Train(ctx, cfg, TrainOptions{RunDir: filepath.Join(dir, "tiny"), Workers: 1 + i, Resume: i > 0, Tick: func(p train.Progress) {
				if from < 0 {
					from = p.Step
				}
				if p.Step >= from+cut {
					cancel()
				}
			}})
			if !errors.Is(err, fault.ErrInterrupted) {
				t.Fatal(err)
			}
		}
		trainTo(t, cfg, dir, TrainOptions{Resume: true, Workers: 3})
		sameFiles(t, "interrupted", contents(t, filepath.Join(dir, "tiny")), want, true)
	}
}

func TestGroupsAreChecked(t *testing.T) {
	for want, change := range map[string]func(c *config.Config){
		`train.group: got 3, want a number from 2 that divides the 4 envs, or 0`: func(c *config.Config) { c.Train.Group = 3 },
		`ppo.baseline: got group, want "", or group with train.group`:            func(c *config.Config) { c.Train.Group = 0 },
		`ppo.value_norm: got running, want "" or popart`:                         func(c *config.Config) { c.PPO.ValueNorm = "running" },
		"ppo.lambda_tau: got -1s":                                                func(c *config.Config) { c.PPO.LambdaTau = -time.Second },
	} {
		c := steady()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
