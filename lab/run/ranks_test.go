package run

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"clustergym/agents/ppo"
	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/distributed/ranks"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/lab/config"
)

// trainRanks trains in dir/tiny with n ranks that are goroutines, and returns their errors. change is called for every
// rank.
func trainRanks(t *testing.T, cfg config.Config, dir string, n int,
	change func(rank int, cfg *config.Config, opt *TrainOptions)) []error {
	t.Helper()
	errs := make([]error, n)
	addr := make(chan string, 1)
	var all sync.WaitGroup
	one := func(k int, at string) {
		c := ranks.DefaultConfig()
		c.Rank, c.World, c.Rendezvous, c.Build = k, n, at, "test"
		c.Listening = func(at string) error {
			addr <- at
			return nil
		}
		g, err := ranks.Join(t.Context(), c)
		if err != nil {
			errs[k] = err
			return
		}
		own, opt := cfg, TrainOptions{RunDir: filepath.Join(dir, "tiny"), Workers: 1, Ranks: g}
		if k > 0 {
			opt.RunDir = "nowhere"
		}
		if change != nil {
			change(k, &own, &opt)
		}
		_, errs[k] = Train(t.Context(), own, opt)
	}
	all.Go(func() { one(0, "127.0.0.1:0") })
	at := <-addr
	for k := 1; k < n; k++ {
		all.Go(func() { one(k, at) })
	}
	all.Wait()
	return errs
}

func inRanksTo(t *testing.T, cfg config.Config, dir string, n int,
	change func(rank int, cfg *config.Config, opt *TrainOptions)) {
	t.Helper()
	if err := errors.Join(trainRanks(t, cfg, dir, n, change)...); err != nil {
		t.Fatal(err)
	}
}

// The run directory of ranks has the bytes of that of one process: checkpoints, records, validations, the best and the
// comparison at the end. Either goes on where the other was stopped.
func TestRanksLeaveTheRunOfOneProcess(t *testing.T) {
	cartpole := func() config.Config {
		c := config.For("CartPole-v1")
		c.Name = "tiny"
		c.PPO.Steps, c.PPO.Epochs, c.PPO.Minibatches, c.PPO.Network.Hidden = 32, 2, 3, []int{16}
		c.Train.Steps, c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery = 2000, 200, 400, 300
		c.Eval.Episodes, c.Eval.Validation = 4, 2
		return c
	}
	for name, c := range map[string]struct {
		ranks int
		cfg   config.Config
		set   func(c *config.Config)
	}{
		"jobselect": {2, tinyRun("ppo"), func(c *config.Config) { c.PPO.TargetKL, c.PPO.Shards = 0.01, 3 }},
		"norm":      {3, cartpole(), func(c *config.Config) { c.PPO.NormObs, c.Train.Envs, c.PPO.ClipValue = true, 6, 0.2 }},
		"group": {4, cartpole(), func(c *config.Config) {
			c.PPO.Baseline, c.PPO.ValueNorm, c.Train.Envs, c.Train.Group, c.PPO.Batch = ppo.ByGroup, ppo.PopArt, 8, 2, 11
		}},
	} {
		if raced.On && name != "norm" {
			continue
		}
		cfg := c.cfg
		c.set(&cfg)
		cfg.PPO.Replicas = c.ranks
		alone, together := t.TempDir(), t.TempDir()
		trainTo(t, cfg, alone, TrainOptions{})
		want := contents(t, filepath.Join(alone, "tiny"))
		inRanksTo(t, cfg, together, c.ranks, nil)
		sameFiles(t, name, contents(t, filepath.Join(together, "tiny")), want, false)

		// Interrupted in the middle of a rollout, then gone on with in the other form.
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Train(ctx, cfg, TrainOptions{RunDir: filepath.Join(dir, "tiny"), Workers: 1, Tick: func(p train.Progress) {
			if p.Step > 900 {
				cancel()
			}
		}})
		cancel()
		if !errors.Is(err, fault.ErrInterrupted) {
			t.Fatal(err)
		}
		inRanksTo(t, cfg, dir, c.ranks, func(k int, cfg *config.Config, opt *TrainOptions) {
			if opt.Resume = true; k > 0 {
				*cfg = config.Config{} // it comes from rank 0
			}
		})
		sameFiles(t, name+", ranks go on", contents(t, filepath.Join(dir, "tiny")), want, true)

		dir = t.TempDir()
		var once sync.Once
		errs := trainRanksUntil(t, cfg, dir, c.ranks, func(k int, stop context.CancelFunc, opt *TrainOptions) {
			if k == 0 { // the others are told
				opt.Tick = func(p train.Progress) {
					if p.Step > 700 {
						once.Do(stop)
					}
				}
			}
		})
		for k, err := range errs {
			if !errors.Is(err, fault.ErrInterrupted) || !strings.Contains(err.Error(), "resume "+filepath.Join(dir, "tiny")) {
				t.Fatalf("%s, rank %d: %v", name, k, err)
			}
		}
		trainTo(t, cfg, dir, TrainOptions{Resume: true})
		sameFiles(t, name+", one process goes on", contents(t, filepath.Join(dir, "tiny")), want, true)
	}
}

// trainRanksUntil is trainRanks with contexts that can be cancelled.
func trainRanksUntil(t *testing.T, cfg config.Config, dir string, n int,
	change func(k int, stop context.CancelFunc, opt *TrainOptions)) []error {
	t.Helper()
	errs := make([]error, n)
	addr := make(chan string, 1)
	var all sync.WaitGroup
	one := func(k int, at string) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		c := ranks.DefaultConfig()
		c.Rank, c.World, c.Rendezvous = k, n, at
		c.Listening = func(at string) error {
			addr <- at
			return nil
		}
		g, err := ranks.Join(ctx, c)
		if err != nil {
			errs[k] = err
			return
		}
		opt := TrainOptions{RunDir: filepath.Join(dir, "tiny"), Workers: 1, Ranks: g}
		change(k, stop, &opt)
		_, errs[k] = Train(ctx, cfg, opt)
	}
	all.Go(func() { one(0, "127.0.0.1:0") })
	at := <-addr
	for k := 1; k < n; k++ {
		all.Go(func() { one(k, at) })
	}
	all.Wait()
	return errs
}

// What does not fit is said at all ranks, and no run is begun.
func TestRanksThatDoNotFitAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(k int, c *config.Config, opt *TrainOptions)
		want   string // at rank 1
		first  string // at rank 0
	}{
		"key": {
			func(k int, c *config.Config, _ *TrainOptions) { c.PPO.LR = 1e-3 * float64(1+k) },
			`this rank has another configuration than rank 0: "lr: 0.002" here, "lr: 0.001" there`,
			"rank 1 of 2 has failed: this rank has another configuration",
		},
		"replicas": {func(_ int, c *config.Config, _ *TrainOptions) { c.PPO.Replicas = 3 },
			"ppo.replicas: got 3, want 2, one for each rank", "ppo.replicas: got 3"},
		"agent": {func(_ int, c *config.Config, _ *TrainOptions) { c.Agent = "ddqn" }, `agent: got "ddqn", want ppo`,
			`agent: got "ddqn"`},
		"envs": {func(_ int, c *config.Config, _ *TrainOptions) { c.Train.Envs = 5 },
			"train.envs: got 5, want a multiple of the 2 ranks", "train.envs"},
		"preempt": {func(_ int, c *config.Config, _ *TrainOptions) { c.PPO.PreemptShare = 0.6 },
			"ppo.preempt_share: got 0.6, want 0 with ranks", "ppo.preempt_share"},
		"resume": {
			func(k int, _ *config.Config, opt *TrainOptions) { opt.Resume = k == 1 },
			"resume: it is given to rank 0 or to this rank alone", "rank 1 of 2 has failed: resume",
		},
		"fault": {
			func(k int, c *config.Config, _ *TrainOptions) {
				if k == 1 {
					c.Trace.File = "missing.csv"
				}
			}, "this rank has another configuration", "rank 1 of 2 has failed",
		},
	} {
		cfg, dir := tinyRun("ppo"), t.TempDir()
		cfg.PPO.Replicas = 2
		errs := trainRanks(t, cfg, dir, 2, c.change)
		for k, want := range []string{c.first, c.want} {
			if errs[k] == nil || !strings.Contains(errs[k].Error(), want) &&
				!strings.Contains(errs[k].Error(), "rank 0 of 2 has failed: "+c.first) {
				t.Errorf("%s: rank %d says %v, want %q", name, k, errs[k], want)
			}
		}
		if files := contents(t, dir); len(files) > 0 {
			t.Errorf("%s: a run was begun", name)
		}
	}
}

func TestDifferingNamesTheLine(t *testing.T) {
	a, b := tinyRun("ppo"), tinyRun("ppo")
	b.Train.Steps = 7
	x, err := configs.Encode(&a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := configs.Encode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got := differing(string(x), string(y)); got != `"steps: 1600" here, "steps: 7" there` {
		t.Error(got)
	}
	if got := differing("a", "a\nb"); got != `nothing here, "b" there` {
		t.Error(got)
	}
}
