package run

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clustergym/agents/train"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/report"
)

// tinyMeta returns a run that learns to adapt in a fraction of a second.
func tinyMeta(env string) config.Config {
	c := config.For("JobSelect-v1")
	inEnv(&c, env)
	c.Name, c.Agent, c.Seed = "tiny", config.MetaAgent, 7
	m := &c.MAML
	m.Tasks, m.Before, m.After, m.CGIterations, m.Order, m.JudgeEpisodes = 3, 1, 2, 2, 2, 2
	m.Network.Hidden, m.ScaleActions = []int{8}, true
	c.Train.Steps, c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery, c.Train.Keep = 3600, 900, 1800, 1800, 0
	c.Eval.Validation, c.Eval.Episodes = 3, 4
	return c
}

// A run has the same bytes with any number of workers and after an interruption. The comparison has a row for every
// number of inner steps of the checkpoint and of the initial parameters, and for random play.
func TestMetaLearnersTrainAndResumeByteForByte(t *testing.T) {
	if raced.On {
		t.Skip("takes minutes under the race detector; agents/maml has a small form")
	}
	for _, env := range []string{"Bandit-v1", "Nav2D-v1"} {
		cfg, straight := tinyMeta(env), t.TempDir()
		whole := trainTo(t, cfg, straight, TrainOptions{})
		want := contents(t, filepath.Join(straight, "tiny"))
		r, ok := whole.Eval.(*report.AdaptReport)
		if !ok || len(r.Rows) != 7 {
			t.Fatalf("%s: the comparison is %+v", env, whole.Eval)
		}
		var rows []string
		for _, row := range r.Rows {
			rows = append(rows, strings.Split(row.Name, "@")[0]+" "+strings.Repeat("|", row.Steps))
			if len(row.Return.PerEpisode) != 4 || row.Episodes != row.Steps {
				t.Errorf("%s: row %+v", env, row)
			}
		}
		if w := []string{"maml:tiny ", "maml:tiny |", "maml:tiny |||", "before training ", "before training |",
			"before training |||", "random "}; !slices.Equal(rows, w) {
			t.Errorf("%s: rows %q, want %q", env, rows, w)
		}
		if solved := r.Rows[1].Solved; solved == nil || *solved != (r.Rows[1].Return.Mean >= *r.Solved) {
			t.Errorf("%s: solved is %v", env, solved)
		}
		dir := t.TempDir()
		for i, cut := range []int64{1, 1700} {
			ctx, cancel := cancelled(t)
			_, err := Train(ctx, cfg, TrainOptions{RunDir: filepath.Join(dir, "tiny"), Workers: 1 + 2*i, Resume: i > 0, Tick: func(p train.Progress) {
				if p.Step >= cut {
					cancel()
				}
			}})
			if !errors.Is(err, fault.ErrInterrupted) || !strings.Contains(err.Error(), "resume") {
				t.Fatal(err)
			}
		}
		resumed := trainTo(t, cfg, dir, TrainOptions{Resume: true, Workers: 2})
		sameFiles(t, env, contents(t, filepath.Join(dir, "tiny")), want, true)
		if !reflect.DeepEqual(resumed.Eval, whole.Eval) {
			t.Errorf("%s: resumed, the comparison is %+v, want %+v", env, resumed.Eval, whole.Eval)
		}
		again, err := arena.Compare(t.Context(), cfg,
			arena.EvalOptions{Checkpoints: []string{filepath.Join(dir, "tiny")}, Workers: 3})
		if err != nil || !reflect.DeepEqual(again, whole.Eval) {
			t.Errorf("%s: compared once more: %+v, %v", env, again, err)
		}
	}
}

func TestMetaLearnersNeedTasks(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(c *config.Config)
	}{
		{"env.id: got \"CartPole-v1\", want an environment with tasks (WorkerPlace-v2, WorkerPlace-v1, Bandit-v1, Nav2D-v1",
			func(c *config.Config) { inEnv(c, "CartPole-v1") }},
		{"train.envs: got 3, want nothing", func(c *config.Config) { c.Train.Envs = 3 }},
		{"maml.inner_steps: got 1, want a whole number from 2 to 64 with method reptile",
			func(c *config.Config) { c.MAML.Method = "reptile" }},
		{"maml.judge: got [3 1], want numbers of inner steps that ascend",
			func(c *config.Config) { c.MAML.Judge = []int{3, 1} }},
	} {
		cfg := tinyMeta("Bandit-v1")
		c.change(&cfg)
		err := cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) || len(fault.All(err)) != 1 {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	for _, id := range []string{"Bandit-v1", "Nav2D-v1", "WorkerPlace-v1", "WorkerPlace-v2"} {
		if !slices.Contains(config.Families(), id) {
			t.Errorf("%s is not among the families %v", id, config.Families())
		}
	}
}
