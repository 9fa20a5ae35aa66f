package rollout_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"clustergym/env/rollout"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// quiet is a source of futures in which these jobs arrive, each so long after now.
type quiet []traces.Job

func (q quiet) Draw(v *sim.View, _ uint64, _ int, f *sim.Future) bool {
	f.Jobs = append(f.Jobs[:0], q...)
	for i := range f.Jobs {
		f.Jobs[i].Submit += v.Now()
	}
	return true
}

// seconds returns a job of one GPU.
func seconds(id string, submit, work int) traces.Job {
	return traces.Job{ID: id, Submit: time.Duration(submit) * time.Second, Work: time.Duration(work) * time.Second,
		GPUs: 1, GPUMilli: 1000}
}

// choice asks a search over FIFO which of the waiting jobs is to start on one GPU, at 0 s; the first is FIFO's choice.
func choice(t *testing.T, cfg rollout.Config, src rollout.Source, jobs ...traces.Job) rollout.Choice {
	t.Helper()
	s, err := sim.New(sim.DefaultConfig(), spec(t, "1x1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(ctx); err != nil {
		t.Fatal(err)
	}
	search, err := rollout.NewSearch(rollout.Options{
		Config: cfg, Estimates: sim.Estimates{Mode: sim.EstimateExact}, Source: src, Workers: 2,
		Base: func() (rollout.Base, error) { return schedulers.New(base("fifo", "skip", "exact")) },
	})
	if err != nil {
		t.Fatal(err)
	}
	v := s.View()
	var cands []sim.Decision
	for _, j := range v.Waiting() {
		cands = append(cands, sim.Decision{Op: sim.StartJob, Job: j, GPUs: []cluster.GPU{0}})
	}
	c, err := search.Choose(ctx, v, 1, cands)
	if err != nil {
		t.Fatal(err)
	}
	return *c
}

// Jobs of 10 s and 1 s wait for one GPU. FIFO's order costs 10 + 11 s, the other one 1 + 11 s. Bounded slowdowns, over
// 10 s at least, are 1 + 1.1 either way, so FIFO's choice stays.
func TestTwoJobsByHand(t *testing.T) {
	cfg := rollout.DefaultConfig()
	cfg.Budget.Rollouts = 20
	c := choice(t, cfg, quiet{}, seconds("A", 0, 10), seconds("B", 0, 1))
	if c.Best != 1 || c.Gain != 9 || c.Error != 0 || !slices.Equal(c.Mean, []float64{21, 12}) ||
		!slices.Equal(c.Played, []int{10, 10}) {
		t.Errorf("%+v, want B, which gains 9 s in each of 10 futures", c)
	}
	cfg.Objective = rollout.Slowdown
	if c = choice(t, cfg, quiet{}, seconds("A", 0, 10), seconds("B", 0, 1)); c.Best != 0 || c.Gain != 0 ||
		math.Abs(c.Mean[0]-2.1) > 1e-12 {
		t.Errorf("by slowdown: %+v, want A", c)
	}
	cfg.Objective, cfg.Budget.Rollouts = rollout.JCT, 14
	if c = choice(t, cfg, quiet{}, seconds("A", 0, 10), seconds("B", 0, 1)); c.Best != 0 || c.Played[0] != 7 {
		t.Errorf("after seven futures: %+v, want A, as they are too few", c)
	}
}

// Jobs of 10, 1 and 4 s, and one of 2 s that arrives at 3 s. Each start, then FIFO:
//
//	A first  A 10, B 11, C 15, D 17 − 3      50 s
//	B first  B 1, A 11, C 15, D 17 − 3       41 s
//	C first  C 4, A 14, B 15, D 17 − 3       47 s
//
// Cut off after one start and charged as flowing through the GPU in order of arrival, each costs the same.
func TestThreeJobsAndAFutureByHand(t *testing.T) {
	jobs := []traces.Job{seconds("A", 0, 10), seconds("B", 0, 1), seconds("C", 0, 4)}
	for _, depth := range []int{1024, 1} {
		cfg := rollout.DefaultConfig()
		cfg.Budget.Rollouts, cfg.Depth = 120, depth
		c := choice(t, cfg, quiet{seconds("D", 3, 2)}, jobs...)
		if c.Best != 1 || c.Gain != 9 || fmt.Sprint(c.Mean) != "[50 41 47]" {
			t.Errorf("depth %d: %+v, want B, and costs of 50, 41 and 47 s", depth, c)
		}
		// 20 futures with each of three, then 30 with FIFO's choice and the better of the others.
		if !slices.Equal(c.Played, []int{50, 50, 20}) {
			t.Errorf("depth %d: %v futures", depth, c.Played)
		}
	}
}
