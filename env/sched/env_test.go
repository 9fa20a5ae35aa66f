package sched_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

var ctx = context.Background()

func workload(n int) []traces.Job {
	r := rand.New(rand.NewPCG(1, 1))
	jobs := make([]traces.Job, n)
	at := time.Duration(0)
	for i := range jobs {
		at += time.Duration(r.ExpFloat64() * 200 * float64(time.Second))
		jobs[i] = traces.Job{ID: fmt.Sprint("j", i), Submit: at, Work: time.Duration(1+r.IntN(3000)) * time.Second,
			GPUs: 1 + r.IntN(4), GPUMilli: 1000}
	}
	return jobs
}

func newEnv(t *testing.T, change func(c *jobselect.Config)) *sched.Env {
	t.Helper()
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm = 30, 20
	change(&cfg)
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}}
	w, err := jobselect.NewWorkload(cfg, spec, workload(300))
	if err != nil {
		t.Fatal(err)
	}
	e, err := jobselect.New(cfg, spec, w.Windows, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// fifoThroughSlots starts the oldest job that fits, which is FIFO skip if all waiting jobs are visible.
func fifoThroughSlots(t *testing.T, e *sched.Env, ep env.Episode, o sim.Observer) {
	t.Helper()
	ts := env.NewTimeStep(e.Spec())
	e.Watch(o)
	_, _, err := env.Play(ctx, e, ep, ts, func(_ *env.TimeStep, a env.Action) error {
		best := -1
		for i, j := range e.State().Slots {
			if e.State().Fits[i] && (best < 0 || e.State().View.Pos(j) < e.State().View.Pos(e.State().Slots[best])) {
				best = i
			}
		}
		a.Disc[0] = int32(best)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Watch(nil)
}

// Simulate gives a heuristic the same jobs, the same cluster and the same warm start as the agent has: FIFO skip
// through the slots and FIFO skip in the agent's place end with the same jobs at the same times.
func TestSimulateIsTheSameEpisode(t *testing.T) {
	e := newEnv(t, func(c *jobselect.Config) { c.Visible = 60 })
	cfg := schedulers.DefaultConfig()
	cfg.Admission, cfg.Placement = "skip", "closest-b"
	h, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, ep := range []env.Episode{{Window: 0}, {Window: 2}, {Seed: 9, Window: -1}} {
		counted := func(pos int) bool { return pos >= e.Window().First }
		agent, other := &metrics.Collector{Keep: counted}, &metrics.Collector{Keep: counted}
		fifoThroughSlots(t, e, ep, agent)
		if err := e.Simulate(ctx, ep, h, other); err != nil {
			t.Fatal(err)
		}
		if a, b := told(agent), told(other); a != b || agent.Len() != 30 {
			t.Errorf("%+v: the agent's jobs\n%s\nthe scheduler's\n%s", ep, a, b)
		}
		if err := e.Step(ctx, env.Action{Disc: []int32{0}}, env.NewTimeStep(e.Spec())); !errors.Is(err, env.ErrResetNeeded) {
			t.Errorf("after Simulate: %v, want ErrResetNeeded", err)
		}
	}
}

// told is all that c knows of its jobs.
func told(c *metrics.Collector) (text string) {
	for j := range c.Jobs() {
		text += fmt.Sprintf("%+v\n", *j)
	}
	return text
}

// Every order plays whole episodes in the agent's place, including those that preempt.
func TestSimulateEveryOrder(t *testing.T) {
	e := newEnv(t, func(*jobselect.Config) {})
	for _, order := range schedulers.Orders() {
		cfg := schedulers.DefaultConfig()
		cfg.Order = order
		if cfg.Clairvoyant() {
			continue // plans with the whole workload, not with an episode of it
		}
		h, err := schedulers.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c := &metrics.Collector{Keep: func(pos int) bool { return pos >= 20 }}
		if err := e.Simulate(ctx, env.Episode{Window: 1}, h, c); err != nil {
			t.Fatalf("%s: %v", order, err)
		}
		if s := c.Summary(0, 0); s.Finished != 30 || s.JCT.Mean <= 0 {
			t.Errorf("%s: %+v", order, s)
		}
	}
}

func TestCancelledSimulation(t *testing.T) {
	e := newEnv(t, func(*jobselect.Config) {})
	h, err := schedulers.New(schedulers.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := e.Simulate(gone, env.Episode{Window: 0}, h, &metrics.Collector{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Simulate(ctx, env.Episode{Window: 0}, h, &metrics.Collector{}); !errors.Is(err, env.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestWindowsOutOfRange(t *testing.T) {
	e := newEnv(t, func(*jobselect.Config) {})
	ts := env.NewTimeStep(e.Spec())
	for _, window := range []int{-2, 7, 1 << 40} {
		if err := e.Reset(ctx, env.Episode{Window: window}, ts); err == nil || !strings.Contains(err.Error(), "window") {
			t.Errorf("window %d: %v", window, err)
		}
	}
	if err := e.Step(ctx, env.Action{Disc: []int32{0}}, ts); !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("after a failed reset: %v", err)
	}
}

func TestConfigFaults(t *testing.T) {
	var zero sched.Config
	err := zero.Validate()
	for _, key := range []string{"gamma", "tau", "window"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v does not name %s", err, key)
		}
	}
	if _, err := sched.New(zero, sched.Parts{}); err == nil {
		t.Error("New takes it")
	}
}
