package sched_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/env/envtest"
	"clustergym/env/gpupick"
	"clustergym/env/queuerank"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// offering are cuts of a workload of load 1, with predictors.
type offering struct{ *causal }

func (offering) Offered() float64 { return 1 }

// ranks, picks and delays open the environments that TestStretchesAddUp does not play, over w.
func ranks(t *testing.T, w *cuts, change func(*queuerank.Ongoing)) *queuerank.Env {
	t.Helper()
	cfg := queuerank.OngoingConfig()
	cfg.Load, cfg.Visible, cfg.Estimates = 0, 16, sim.MustEstimates("exact")
	change(&cfg)
	e, err := queuerank.NewOngoing(cfg, cluster.Spec{Pool: 8}, offering{&causal{w}}, w.jobs, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func picks(t *testing.T, w *cuts, change func(*gpupick.Ongoing)) *gpupick.Env {
	t.Helper()
	cfg := gpupick.OngoingConfig()
	cfg.Load, cfg.Estimates = 0, sim.MustEstimates("exact")
	change(&cfg)
	e, err := gpupick.NewOngoing(cfg, twoNodes(), offering{&causal{w}}, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func delays(t *testing.T, w *cuts, change func(*delayoffer.Ongoing)) *delayoffer.Env {
	t.Helper()
	cfg := delayoffer.OngoingConfig()
	cfg.Load, cfg.Comm, cfg.Estimates = 0, "tree", sim.MustEstimates("exact")
	change(&cfg)
	e, err := delayoffer.NewOngoing(cfg, twoNodes(), offering{&causal{w}}, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ongoing is what the environments of version 2 have in common.
type ongoing interface {
	sched.Arena
	Window() *sched.Window
}

// acted plays an episode by a rule and returns its return, its last time step and the log of its jobs.
func acted(t *testing.T, e ongoing, a *sched.Actor, ep env.Episode) (ret float64, ts *env.TimeStep, log lives) {
	t.Helper()
	log = lives{}
	e.Watch(&joined{lives: log})
	ts = env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, ep, ts); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	for !ts.Kind.Last() {
		choice, err := a.Action(ts.Mask, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Step(ctx, env.Action{Disc: []int32{choice}}, ts); err != nil {
			t.Fatal(err)
		}
		ret += ts.Reward
	}
	if ts.Kind != env.Truncated {
		t.Fatalf("it ends %v", ts.Kind)
	}
	return ret, ts, log
}

// What QueueRank-v2 pays and says is what a log of the jobs says; there is a queue at first; and the last observation
// shows what waits, the job that is held too.
func TestRanksAreWhatALogSays(t *testing.T) {
	jobs := busy(3, 301)
	for i := range jobs {
		jobs[i].Submit -= jobs[0].Submit
	}
	at := []int{0, 100, 180, 300}
	for _, reward := range []string{"jct", "wait", "slowdown", "bsld", "throughput"} {
		for _, backfill := range []string{"none", "easy"} {
			e := ranks(t, newCuts(t, jobs, at...), func(c *queuerank.Ongoing) { c.Reward, c.Backfill = reward, backfill })
			a, err := queuerank.NewRule("sjf", e)
			if err != nil {
				t.Fatal(err)
			}
			for k := range len(at) - 1 {
				n, begin, end := at[k+1]-at[k], jobs[at[k]].Submit, jobs[at[k+1]].Submit
				ret, ts, log := acted(t, e, a, env.Episode{Window: k})
				want := log.sums(begin, end, at[k+1])
				if !close9(ret, want.of(reward, n)) {
					t.Errorf("%s, backfill %s, window %d: return %v, the log has %v", reward, backfill, k, ret, want.of(reward, n))
				}
				for i, x := range []float64{want.jct / float64(n), want.wait / float64(n), want.slowdown / float64(n),
					(end - begin).Seconds(), float64(want.left)} {
					if got := ts.Info[sched.InfoJCT+i]; !close9(got, x) {
						t.Errorf("window %d: %s is %v, the log has %v", k, e.Spec().Info[sched.InfoJCT+i].Name, got, x)
					}
				}
				if waits := min(16, len(e.View().Waiting())); len(e.Slots()) != waits {
					t.Errorf("window %d: the last observation shows %d jobs, %d wait", k, len(e.Slots()), waits)
				}
			}
		}
	}
}

// Stretches of DelayOffer-v2 under its timers add up to the run, which is that of the policy dally: the rule goes on from
// its own warm-up. Relative to the timers, they earn nothing.
func TestOffersAddUp(t *testing.T) {
	jobs := busy(9, 401)
	for i := range jobs {
		jobs[i].Submit -= jobs[0].Submit
		jobs[i].GPUs = 1 + i%7
	}
	at := []int{0, 150, 151, 290, 400}
	for _, reward := range []string{"jct", "wait", "bsld"} {
		play := func(relative bool, at ...int) (total float64) {
			e := delays(t, newCuts(t, jobs, at...), func(c *delayoffer.Ongoing) { c.Reward, c.Relative = reward, relative })
			a, err := delayoffer.NewRule("timers", e)
			if err != nil {
				t.Fatal(err)
			}
			for k := range len(at) - 1 {
				if at[k+1]-at[k] < 10 {
					continue // without an offer there is no episode
				}
				ret, _, _ := acted(t, e, a, env.Episode{Window: k})
				total += ret * float64(at[k+1]-at[k])
			}
			return total
		}
		at[2] = at[1] // no window is left out
		if parts, whole := play(false, 0, 150, 290, 400), play(false, 0, 400); !close9(parts, whole) || whole >= 0 {
			t.Errorf("%s: the windows sum to %v, the run is %v", reward, parts, whole)
		}
		if less := play(true, 0, 150, 290, 400); math.Abs(less) > 1e-9 {
			t.Errorf("%s: relative to itself, the policy earns %v", reward, less)
		}
	}
}

// Stretches of GPUPick-v2 under the placement of its warm-up add up to the run.
func TestPicksAddUp(t *testing.T) {
	jobs := busy(10, 201)
	for i := range jobs {
		jobs[i].Submit -= jobs[0].Submit
	}
	play := func(at ...int) (total, placed float64) {
		e := picks(t, newCuts(t, jobs, at...), func(*gpupick.Ongoing) {})
		a, err := gpupick.NewRule("closest-b", e)
		if err != nil {
			t.Fatal(err)
		}
		for k := range len(at) - 1 {
			ret, ts, _ := acted(t, e, a, env.Episode{Window: k})
			total += ret
			placed += ret / ts.Info[gpupick.InfoCloseness]
			if want := (jobs[at[k+1]].Submit - jobs[at[k]].Submit).Seconds(); ts.Info[gpupick.InfoMakespan] != want {
				t.Errorf("makespan_s is %v, want %v", ts.Info[gpupick.InfoMakespan], want)
			}
		}
		return total, placed
	}
	parts, some := play(0, 80, 130, 200)
	whole, all := play(0, 200)
	if !close9(parts, whole) || !close9(some, all) || whole <= 0 {
		t.Errorf("the windows sum to %v over %v jobs, the run to %v over %v", parts, some, whole, all)
	}
}

// The environments of version 2 keep the contract.
func TestOngoingContracts(t *testing.T) {
	jobs := busy(12, 400)
	for i := range jobs {
		jobs[i].GPUs = 1 + i%7
	}
	at := []int{40, 80, 120, 160, 200, 240, 280, 320, 360}
	for name, open := range map[string]func() env.Env{
		"queuerank": func() env.Env { return ranks(t, newCuts(t, jobs, at...), func(*queuerank.Ongoing) {}) },
		"queuerank, relative": func() env.Env {
			return ranks(t, newCuts(t, jobs, at...), func(c *queuerank.Ongoing) {
				c.Relative, c.Gamma, c.Load, c.Reward = "auto", 0.99, 1.2, "jct"
			})
		},
		"queuerank, causal": func() env.Env {
			return ranks(t, newCuts(t, jobs, at...), func(c *queuerank.Ongoing) {
				c.Relative, c.Estimates, c.MaxSteps = "sjf", sim.MustEstimates("history"), 30
			})
		},
		"gpupick": func() env.Env { return picks(t, newCuts(t, jobs, at...), func(*gpupick.Ongoing) {}) },
		"gpupick, idle, causal": func() env.Env {
			return picks(t, newCuts(t, jobs, at...), func(c *gpupick.Ongoing) {
				c.Idle, c.Table, c.Estimates, c.Load = true, true, sim.MustEstimates("history"), 0.8
			})
		},
		"delayoffer": func() env.Env { return delays(t, newCuts(t, jobs, at...), func(*delayoffer.Ongoing) {}) },
		"delayoffer, relative, causal": func() env.Env {
			return delays(t, newCuts(t, jobs, at...), func(c *delayoffer.Ongoing) {
				c.Relative, c.Gamma, c.Estimates = true, 0.9, sim.MustEstimates("history")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := []envtest.Option{envtest.Cap(3000)}
			if !checked && !strings.HasPrefix(name, "delayoffer") { // its rule keeps lists of what is offered
				options = append(options, envtest.NoAllocs())
			}
			envtest.Run(t, open, options...)
		})
	}
}
