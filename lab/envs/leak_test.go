package envs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/queuerank"
	"clustergym/env/sched"
	"clustergym/internal/raced"
	"clustergym/internal/testseed"
	"clustergym/lab/predictors"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// ends notes when jobs finish.
type ends map[string]time.Duration

func (e ends) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		if p.Events[i].Kind == sim.Finish {
			e[v.Trace(p.Events[i].Job).ID] = p.Now
		}
	}
	return nil
}

// seen is what an agent sees at one step.
type seen struct {
	now  time.Duration
	obs  []float32
	mask []bool
}

// watch plays a test window with the first legal action and returns all that was seen.
func watch(t *testing.T, e sched.Arena, window int) (all []seen, done ends) {
	t.Helper()
	done = ends{}
	e.Watch(done)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(t.Context(), env.Episode{Seed: 1, Window: window}, ts); err != nil {
		t.Fatal(err)
	}
	for {
		if ts.Kind.Last() {
			return all, done
		}
		all = append(all, seen{e.View().Now(), slices.Clone(ts.Obs), slices.Clone(ts.Mask)})
		a := env.Action{Disc: []int32{int32(slices.Index(ts.Mask, true))}}
		if err := e.Step(t.Context(), a, ts); err != nil {
			t.Fatal(err)
		}
	}
}

// With causal estimates nothing that an agent sees depends on how long jobs run that have not ended: neither those of
// the episode, nor those of the trace that still run when it begins, nor any that come later.
func TestObservationsDoNotKnowRunTimes(t *testing.T) {
	if raced.On {
		t.Skip("one goroutine plays all of it; make unit runs this test")
	}
	seed := testseed.Or(31)
	spec := cluster.Spec{Name: "small", Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}}
	type opener func(jobs []traces.Job, estimates string) (sched.Arena, sched.Windows)
	workloads := map[string]opener{
		jobselect.V1: func(jobs []traces.Job, estimates string) (sched.Arena, sched.Windows) {
			cfg := jobselect.DefaultConfig()
			cfg.Window, cfg.Warm, cfg.Visible, cfg.MaxGPUs, cfg.Load, cfg.Estimates = 40, 20, 6, 4, 0,
				sim.MustEstimates(estimates)
			w, err := jobselect.NewWorkload(cfg, spec, jobs)
			if err != nil {
				t.Fatal(err)
			}
			e, err := jobselect.New(cfg, spec, &predictors.Foresight{Windows: w.Windows}, traces.Test)
			if err != nil {
				t.Fatal(err)
			}
			return e, w.Windows
		},
		queuerank.V1: func(jobs []traces.Job, estimates string) (sched.Arena, sched.Windows) {
			cfg := queuerank.DefaultConfig()
			cfg.Window, cfg.Visible, cfg.Load, cfg.Estimates = 40, 8, 0, sim.MustEstimates(estimates)
			w, err := traces.NewWindows(jobs, cfg.Window, 0)
			if err != nil {
				t.Fatal(err)
			}
			e, err := queuerank.New(cfg, spec, &predictors.Foresight{Windows: w}, w.Jobs(traces.Training), traces.Test)
			if err != nil {
				t.Fatal(err)
			}
			return e, w
		},
	}
	for id, open := range workloads {
		t.Run(id, func(t *testing.T) {
			told := 0
			for k := range uint64(4) {
				r := rand.New(rand.NewPCG(seed, k))
				jobs := make([]traces.Job, 1200) // half of them end before the episode, enough for trees
				at := time.Duration(0)
				for i := range jobs {
					at += time.Duration(r.IntN(60)) * time.Second
					jobs[i] = traces.Job{
						ID: fmt.Sprint("j",
							i), Submit: at, Work: time.Duration(1+r.IntN(20)*r.IntN(20)) * 5 * time.Second, GPUs: 1 << r.IntN(3),
						GPUMilli: 1000,
						User:     fmt.Sprint("u", r.IntN(5)), VC: fmt.Sprint("v", r.IntN(2)), Name: fmt.Sprint("n", r.IntN(3)),
					}
				}
				quarter, add := 1+r.IntN(3), make([]time.Duration, len(jobs))
				for i := range add {
					add[i] = time.Duration(1+r.IntN(100000)) * time.Second
				}
				for estimates, hidden := range map[string]bool{"history": true, "gbdt": true, "exact": false} {
					e, windows := open(jobs, estimates)
					w, err := windows.At(traces.Test, 0, 1)
					if err != nil {
						t.Fatal(err)
					}
					begin := w.First - w.Warm
					want, done := watch(t, e, 1) // which jobs start, and so which ends are seen, depends on the estimates
					cut := want[len(want)*quarter/4].now
					longer := slices.Clone(jobs)
					for i := range longer {
						j := &longer[i]
						end, noted := done[j.ID]
						switch {
						case i < begin && j.Submit+j.Work < jobs[begin].Submit: // ended before the episode
						case i >= begin && noted && end <= cut: // ended in it
						case i >= begin && i < w.First && !noted: // ended, or was dropped, before the agent's first step
						default:
							j.Work += add[i]
						}
					}
					other, _ := open(longer, estimates)
					got, _ := watch(t, other, 1)
					for i := range want {
						if want[i].now > cut {
							break
						}
						same := i < len(got) && slices.Equal(got[i].obs,
							want[i].obs) && slices.Equal(got[i].mask, want[i].mask) && got[i].now == want[i].now
						if hidden && !same {
							t.Fatalf("drawn workload %d, %s: at %v, before %v, the agent sees how long jobs will run", k, estimates,
								want[i].now, cut)
						} else if !same {
							told++
							break
						}
					}
				}
			}
			if told == 0 {
				t.Error("exact run times tell nothing either: the test shows nothing")
			}
		})
	}
}
