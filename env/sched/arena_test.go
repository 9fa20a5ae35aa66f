package sched_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/env/gpupick"
	"clustergym/env/jobselect"
	"clustergym/env/policymix"
	"clustergym/env/queuerank"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// arena says how to open an environment over the simulator in a test.
type arena struct {
	name string
	warm int
	sim  sim.Config
	open func(w sched.Windows, jobs []traces.Job, spec cluster.Spec) (sched.Arena, error)
}

const arenaWindow = 40

// arenas returns the five environments with submit times as recorded, so that tests can build the same jobs.
func arenas() []arena {
	all := []arena{
		{"gpupick", 0, sim.Config{Comm: "tree"},
			func(w sched.Windows, _ []traces.Job, spec cluster.Spec) (sched.Arena, error) {
				c := gpupick.DefaultConfig()
				c.Load = 0
				return gpupick.New(c, spec, w, traces.Training)
			}},
		{"queuerank", 0, sim.Config{Comm: "none", Serial: true},
			func(w sched.Windows, jobs []traces.Job, spec cluster.Spec) (sched.Arena, error) {
				return queuerank.New(queuerank.DefaultConfig(), spec, w, jobs, traces.Training)
			}},
		{"delayoffer", 0, func() sim.Config { c := delayoffer.DefaultConfig(); return c.Simulator() }(),
			func(w sched.Windows, _ []traces.Job, spec cluster.Spec) (sched.Arena, error) {
				return delayoffer.New(delayoffer.DefaultConfig(), spec, w, traces.Training)
			}},
	}
	for _, warm := range []int{0, 25} {
		all = append(all,
			arena{fmt.Sprint("jobselect, warm ", warm), warm, sim.Config{Comm: "tree"},
				func(w sched.Windows, _ []traces.Job, spec cluster.Spec) (sched.Arena, error) {
					c := jobselect.DefaultConfig()
					c.Load, c.Window, c.Warm = 0, arenaWindow, warm
					return jobselect.New(c, spec, w, traces.Training)
				}},
			arena{fmt.Sprint("policymix, warm ", warm), warm, sim.Config{Comm: "tree"},
				func(w sched.Windows, _ []traces.Job, spec cluster.Spec) (sched.Arena, error) {
					c := policymix.DefaultConfig()
					c.Load, c.Window, c.Warm = 0, arenaWindow, warm
					return policymix.New(c, spec, w, traces.Training)
				}})
	}
	return all
}

// each opens every arena on a cluster of two racks, over jobs of up to 8 GPUs that arrive faster than they can run.
// Every fifth arrives together with the one before it.
func each(t *testing.T, f func(t *testing.T, a arena, e sched.Arena, jobs []traces.Job, spec cluster.Spec)) {
	opened(t, 5, f)
}

// apart is each over jobs with distinct submit times.
func apart(t *testing.T, f func(t *testing.T, a arena, e sched.Arena, jobs []traces.Job, spec cluster.Spec)) {
	opened(t, 1, f)
}

// opened is each, but every together-th job arrives with the one before it; with 1, none does.
func opened(t *testing.T, together int,
	f func(t *testing.T, a arena, e sched.Arena, jobs []traces.Job, spec cluster.Spec)) {
	link := cluster.Link{Gbps: 80, Latency: time.Microsecond}
	spec := cluster.Spec{Name: "tree",
		Racks: []cluster.RackSpec{{Count: 2, Uplink: link,
			Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4, Link: link, NIC: link}}}}}
	r := rand.New(rand.NewPCG(7, 7))
	shape := &traces.Profile{Name: "shape", GradientBytes: 1e9, Compute: time.Second}
	var jobs []traces.Job
	at := time.Duration(0)
	for i := range 200 {
		if together == 1 || i%together > 0 {
			at += time.Duration(1+r.IntN(200)) * time.Second
		}
		work := time.Duration(1+r.IntN(4000)) * time.Second
		jobs = append(jobs,
			traces.Job{ID: fmt.Sprint("j", i), Submit: at, Work: work, Estimate: work, GPUs: 1 + r.IntN(8), GPUMilli: 1000,
				Profile: shape})
	}
	for _, a := range arenas() {
		t.Run(a.name, func(t *testing.T) {
			w, err := traces.NewWindows(jobs, arenaWindow, a.warm)
			if err != nil {
				t.Fatal(err)
			}
			e, err := a.open(w, jobs, spec)
			if err != nil {
				t.Fatal(err)
			}
			f(t, a, e, jobs, spec)
		})
	}
}

// atRandom chooses among the legal actions.
func atRandom(r *rand.Rand) func(ts *env.TimeStep, a env.Action) error {
	return func(ts *env.TimeStep, a env.Action) error {
		k := r.IntN(len(ts.Mask))
		for !ts.Mask[k] {
			k = (k + 1) % len(ts.Mask)
		}
		a.Disc[0] = int32(k)
		return nil
	}
}

func info(t *testing.T, e env.Env, ts *env.TimeStep, name string) float64 {
	t.Helper()
	for i, f := range e.Spec().Info {
		if f.Name == name {
			return ts.Info[i]
		}
	}
	t.Fatalf("%s has no info %s", e.Spec().ID, name)
	return 0
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-8*max(1, math.Abs(b)) }

// A watcher's means are the environment's own infos at the end, even though episodes of GPUPick-v1 and QueueRank-v1 end
// once the last job has started.
func TestAWatcherCountsWhatTheEnvironmentTells(t *testing.T) {
	each(t, func(t *testing.T, _ arena, e sched.Arena, _ []traces.Job, _ cluster.Spec) {
		ts := env.NewTimeStep(e.Spec())
		c := metrics.Collector{Keep: func(pos int) bool { return pos >= e.First() }}
		e.Watch(&c)
		for seed := range uint64(4) {
			ep := env.Episode{Seed: seed, Window: int(seed) % 2}
			if _, _, err := env.Play(ctx, e, ep, ts, atRandom(rand.New(rand.NewPCG(seed, 1)))); err != nil {
				t.Fatal(err)
			}
			s := c.Summary(0, 0)
			if s.Finished != arenaWindow || s.Unfinished != 0 {
				t.Fatalf("seed %d: %d jobs finished and %d did not, want %d", seed, s.Finished, s.Unfinished, arenaWindow)
			}
			if jct, wait := info(t, e, ts, "jct_s"), info(t, e, ts, "wait_s"); !near(s.JCT.Mean, jct) ||
				!near(s.Wait.Mean, wait) {
				t.Errorf("seed %d: watched a mean JCT of %v and a wait of %v, told %v and %v", seed, s.JCT.Mean, s.Wait.Mean, jct,
					wait)
			}
			if makespan := info(t, e, ts, "makespan_s"); !near(s.Makespan, makespan) {
				t.Errorf("seed %d: watched a makespan of %v, told %v", seed, s.Makespan, makespan)
			}
		}
		// Watching changes nothing that the agent sees.
		e.Watch(nil)
		unseen := env.NewTimeStep(e.Spec())
		if _, _, err := env.Play(ctx, e, env.Episode{Seed: 3, Window: 1}, unseen,
			atRandom(rand.New(rand.NewPCG(3, 1)))); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(*ts) != fmt.Sprint(*unseen) {
			t.Errorf("the last time step is %v when watched and %v when not", *ts, *unseen)
		}
	})
}

// finishes returns the finish times by position.
func finishes(c *metrics.Collector) string {
	all := map[int32]time.Duration{} // fmt prints maps in order of keys
	for j := range c.Jobs() {
		all[j.Pos] = j.Finish
	}
	return fmt.Sprint(all)
}

func TestSimulateIsARunByHand(t *testing.T) {
	each(t, func(t *testing.T, a arena, e sched.Arena, jobs []traces.Job, spec cluster.Spec) {
		if a.warm > 0 {
			t.Skip("the warm start is compared in TestSimulateIsTheSameEpisode")
		}
		for _, order := range []string{"fifo", "sjf"} {
			cfg := schedulers.DefaultConfig()
			cfg.Order, cfg.Admission = order, "skip"
			for _, window := range []int{0, 2} {
				h, err := schedulers.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				var got, want metrics.Collector
				ep := env.Episode{Seed: 5, Window: window}
				if err := e.Simulate(ctx, ep, h, &got); err != nil {
					t.Fatal(err)
				}
				var own []traces.Job
				for _, j := range jobs[window*arenaWindow : (window+1)*arenaWindow] {
					j.Submit -= jobs[window*arenaWindow].Submit
					own = append(own, j)
				}
				s, err := sim.New(a.sim, spec)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Reset(&traces.Slice{Jobs: own}); err != nil {
					t.Fatal(err)
				}
				if h, err = schedulers.New(cfg); err != nil {
					t.Fatal(err)
				}
				if err := sim.Run(ctx, s, h, &want); err != nil {
					t.Fatal(err)
				}
				if g, w := finishes(&got), finishes(&want); g != w || got.Len() != arenaWindow {
					t.Errorf("%s, window %d: jobs finish at\n%s\nby hand at\n%s", order, window, g, w)
				}
				// The environment needs a Reset, and then plays as before.
				ts := env.NewTimeStep(e.Spec())
				if err := e.Step(ctx, env.Action{Disc: []int32{0}}, ts); err != env.ErrResetNeeded {
					t.Errorf("Step after Simulate: %v", err)
				}
				if _, _, err := env.Play(ctx, e, ep, ts, atRandom(rand.New(rand.NewPCG(1, 1)))); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if err := e.Simulate(ctx, env.Episode{}, nil, nil); err != env.ErrClosed {
			t.Errorf("Simulate after Close: %v", err)
		}
	})
}

func TestSimulateRefusesEpisodesThatDoNotExist(t *testing.T) {
	each(t, func(t *testing.T, _ arena, e sched.Arena, _ []traces.Job, _ cluster.Spec) {
		for _, ep := range []env.Episode{{Split: "holdout"}, {Window: 99}} {
			err := e.Simulate(ctx, ep, nil, nil)
			if want := env.ErrEpisode; err == nil || !errors.Is(err, want) {
				t.Errorf("%+v: %v, want %v", ep, err, want)
			}
		}
	})
}
