package policymix_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/env/policymix"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

var ctx = context.Background()

func tree() cluster.Spec {
	return cluster.Spec{Name: "tree",
		Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4}}}}}
}

// crowded are jobs that come faster than 32 GPUs can run them.
func crowded(seed uint64, n int) []traces.Job {
	r := rand.New(rand.NewPCG(seed, seed))
	var jobs []traces.Job
	at := time.Duration(0)
	for i := range n {
		at += time.Duration(r.IntN(300)) * time.Second
		work := time.Duration(math.Exp(4+6*r.Float64())) * time.Second
		jobs = append(jobs,
			traces.Job{ID: string(rune('a' + i%26)), Submit: at, Work: work, Estimate: work, GPUs: 1 + r.IntN(8),
				GPUMilli: 1000})
	}
	return jobs
}

func open(t *testing.T, cfg policymix.Config, jobs []traces.Job) *sched.Env {
	t.Helper()
	w, err := traces.NewWindows(jobs, cfg.Window, cfg.Warm)
	if err != nil {
		t.Fatal(err)
	}
	e, err := policymix.New(cfg, tree(), w, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Always choosing p gives the schedule of gymctl sim with p, job by job. Windows begin at their first submit on an
// empty cluster, so both see the same jobs.
func TestAlwaysTheSamePolicyIsThatPolicy(t *testing.T) {
	for _, hold := range []time.Duration{time.Second, time.Hour, 1000 * time.Hour} {
		cfg := policymix.DefaultConfig()
		cfg.Window, cfg.Warm, cfg.Load, cfg.Hold = 120, 0, 0, hold
		jobs := crowded(1, 400)
		e := open(t, cfg, jobs)
		ts := env.NewTimeStep(e.Spec())
		for action, order := range policymix.Policies() {
			var mine metrics.Collector
			e.Watch(&mine)
			ret, steps, err := env.Play(ctx, e, env.Episode{Seed: 3, Window: 0}, ts, func(_ *env.TimeStep, a env.Action) error {
				a.Disc[0] = int32(action)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			h := schedulers.DefaultConfig()
			h.Order, h.Admission, h.Placement = order, "skip", cfg.Placement
			p, err := schedulers.New(h)
			if err != nil {
				t.Fatal(err)
			}
			s, err := sim.New(sim.Config{Comm: cfg.Comm}, tree())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Reset(&traces.Slice{Jobs: jobs[:cfg.Window]}); err != nil {
				t.Fatal(err)
			}
			var theirs metrics.Collector
			if err := sim.Run(ctx, s, p, &theirs); err != nil {
				t.Fatal(err)
			}
			ends := map[int32]time.Duration{}
			for j := range theirs.Jobs() {
				ends[j.Pos] = j.Finish - j.Submit
			}
			for j := range mine.Jobs() {
				if ends[j.Pos] != j.Finish-j.Submit {
					t.Fatalf("%s, hold %v: job %d is through after %v, gymctl sim has %v", order, hold, j.Pos, j.Finish-j.Submit,
						ends[j.Pos])
				}
			}
			if mine.Len() != cfg.Window || theirs.Len() != cfg.Window {
				t.Errorf("%s, hold %v: %d and %d jobs, want %d", order, hold, mine.Len(), theirs.Len(), cfg.Window)
			}
			if want := -theirs.Summary(0, 0).JCT.Mean / 3600; math.Abs(ret-want) > 1e-9 {
				t.Errorf("%s, hold %v: return %v, want −mean JCT in hours, %v", order, hold, ret, want)
			}
			if hold == 1000*time.Hour && steps != 1 || hold == time.Second && steps < 20 {
				t.Errorf("%s, hold %v: %d choices", order, hold, steps)
			}
		}
	}
}

// A choice holds: the agent is not asked until the hold is over, and then only when a job fits.
func TestAChoiceHolds(t *testing.T) {
	cfg := policymix.DefaultConfig()
	cfg.Window, cfg.Warm, cfg.Load = 60, 20, 1.1
	e := open(t, cfg, crowded(2, 400))
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 1, Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(9, 9))
	for !ts.Kind.Last() {
		fits := false
		for _, j := range e.State().View.Waiting() {
			fits = fits || e.State().View.Fits(j)
		}
		if !fits {
			t.Fatal("the agent is asked although nothing fits")
		}
		a := int32(r.IntN(5))
		if err := e.Step(ctx, env.Action{Disc: []int32{a}}, ts); err != nil {
			t.Fatal(err)
		}
		if ts.Kind == env.Mid && ts.Elapsed < cfg.Hold {
			t.Fatalf("a choice held for %v, want an hour or more", ts.Elapsed)
		}
		if ts.Obs[8+a] != 1 {
			t.Fatalf("the observation does not say that policy %d acted", a)
		}
	}
}

func TestContract(t *testing.T) {
	jobs := crowded(3, 500)
	for name, change := range map[string]func(c *policymix.Config){
		"default": func(*policymix.Config) {},
		"relative, noisy": func(c *policymix.Config) {
			c.Relative, c.Gamma, c.Estimates, c.Reward = "sjf", .99, sim.MustEstimates("noisy:0.5"), "throughput"
		},
		"ongoing": func(c *policymix.Config) {
			*c = policymix.OngoingConfig()
			c.Window, c.Warm, c.Load, c.Estimates = 30, 20, 0, sim.MustEstimates("exact")
		},
		"ongoing, relative": func(c *policymix.Config) {
			*c = policymix.OngoingConfig()
			c.Window, c.Warm, c.Load, c.Estimates, c.Hold = 30, 20, 0, sim.MustEstimates("noisy:0.5"), time.Minute
			c.Relative, c.Gamma, c.Reward = "sjf", .99, "throughput"
		},
		"short hold, capped": func(c *policymix.Config) { c.Hold, c.Horizon, c.MaxSteps = time.Minute, 6*time.Hour, 30 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := policymix.DefaultConfig()
			cfg.Window, cfg.Warm = 30, 20
			change(&cfg)
			w, err := traces.NewWindows(jobs, cfg.Window, cfg.Warm)
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Mode == sched.Ongoing {
				if w, err = w.Followed(); err != nil {
					t.Fatal(err)
				}
			}
			options := []envtest.Option{envtest.Cap(200)}
			if !checked {
				options = append(options, envtest.NoAllocs())
			}
			envtest.Run(t, func() env.Env {
				e, err := policymix.New(cfg, tree(), w, traces.Training)
				if err != nil {
					t.Fatal(err)
				}
				return e
			}, options...)
		})
	}
}

func TestFaultsAreAllTold(t *testing.T) {
	cfg := policymix.DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	cfg.Gamma, cfg.Estimates, cfg.Hold, cfg.MaxGPUs, cfg.Placement, cfg.Comm, cfg.Reward, cfg.WaitCost = 2,
		sim.MustEstimates("none"), 0, 0, "anywhere", "pigeon", "fame", -1
	var keys []string
	for _, f := range fault.All(cfg.Validate()) {
		keys = append(keys, f.Key)
	}
	if got, want := strings.Join(keys, " "), "gamma estimates hold max_gpus placement comm reward wait_cost"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
