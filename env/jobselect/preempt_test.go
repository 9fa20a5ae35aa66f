package jobselect_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/internal/testseed"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// ownSeed is the seed of a test that draws.
func ownSeed(t *testing.T) uint64 {
	seed := testseed.Or(1)
	t.Logf("%s=%d", testseed.Key, seed)
	return seed
}

// preempting lets the agent stop 4 rows at a cost.
func preempting(cfg *jobselect.Config) {
	cfg.Preempt, cfg.Running = true, 4
	cfg.Checkpoint, cfg.CheckpointPerGPU, cfg.Restart, cfg.RestartPerGPU = 5*second, second/2, 10*second, second/2
}

// A (2 GPUs, 100 s) starts at 0 and B (2 GPUs, 10 s) comes at 20 s. A is stopped, B runs to 30 s, and A holds its GPUs
// for 5 + 10 + 2·1 = 17 s before it does the 80 s that are left: it ends at 127 s.
func TestStoppingByHand(t *testing.T) {
	cfg := small(2)
	preempting(&cfg)
	jobs := []traces.Job{job("A", 0, 100*second, 2), job("B", 20*second, 10*second, 2)}
	e, ts := hand(t, cfg, cluster.Spec{Pool: 2}, jobs)
	wantLegal(t, ts, 0, 14)
	step(t, e, 0, ts)
	if ts.Elapsed != 20*second {
		t.Errorf("asked after %v, want 20s: before B came nothing waited", ts.Elapsed)
	}
	wantLegal(t, ts, 10, 14) // B does not fit, and A can be stopped
	step(t, e, 10, ts)
	wantLegal(t, ts, 0) // A cannot start again at this instant, nothing runs and nothing will come
	if ts.Elapsed != 0 || len(e.State().Slots) != 1 {
		t.Errorf("the stop took %v, and %d jobs are visible, want B alone", ts.Elapsed, len(e.State().Slots))
	}
	step(t, e, 0, ts)
	if ts.Elapsed != 10*second {
		t.Errorf("asked after %v, want 10s: A is visible from the next instant on, at which B ends", ts.Elapsed)
	}
	s := e.State()
	a := s.Slots[0]
	if s.Known[a].Rest != 80*second || s.Known[a].Estimate != 100*second || s.View.Preemptions(a) != 1 {
		t.Errorf("A has %v left of %v after %d stops, want 80s of 1m40s after 1", s.Known[a].Rest, s.Known[a].Estimate,
			s.View.Preemptions(a))
	}
	step(t, e, 0, ts)
	if ts.Kind != env.Terminated || ts.Elapsed != 97*second {
		t.Errorf("%v after %v, want the end after 1m37s", ts.Kind, ts.Elapsed)
	}
	closeTo(t, "mean JCT", ts.Info[sched.InfoJCT], (127.0+10)/2)
	closeTo(t, "mean wait", ts.Info[sched.InfoWait], (10.0+0)/2) // the 17 s are on GPUs
}

// A gang must have run for min_run since its last start. The agent is not asked when it has, but when something
// happens.
func TestAGangRunsForAWhileFirst(t *testing.T) {
	cfg := small(3)
	preempting(&cfg)
	cfg.MinRun = 45 * second
	e, ts := hand(t, cfg, cluster.Spec{Pool: 2},
		[]traces.Job{job("A", 0, 100*second, 2), job("B", 20*second, 10*second, 2), job("C", 50*second, 10*second, 2)})
	step(t, e, 0, ts)
	if ts.Elapsed != 50*second {
		t.Errorf("asked after %v, want 50s", ts.Elapsed)
	}
	wantLegal(t, ts, 10, 14)
}

// At every decision of random play: what can be stopped is visible, counted, has run for min_run and did not start now,
// and something waits; nobody stops a job and starts it at one instant; a job pays for every stop, and for nothing
// else.
func TestRulesOfStopping(t *testing.T) {
	seed := ownSeed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, estimates := range []string{"exact", "none", "history"} {
		for _, minRun := range []time.Duration{0, 400 * second} {
			cfg := jobselect.DefaultConfig()
			cfg.Window, cfg.Warm, cfg.Visible, cfg.Estimates, cfg.Comm, cfg.Load = 40, 40, 6, sim.MustEstimates(estimates),
				"none", 1.5
			preempting(&cfg)
			cfg.MinRun = minRun
			e := newEnv(t, cfg, topdrl(), tangled(r, 400))
			for range 2 {
				stops := playStops(t, e, cfg, r)
				if stops == 0 {
					t.Errorf("%s, min_run %v: no job was ever stopped", estimates, minRun)
				}
			}
		}
	}
}

// playStops plays an episode at random and returns how many jobs were stopped.
func playStops(t *testing.T, e *sched.Env, cfg jobselect.Config, r *rand.Rand) (stops int) {
	t.Helper()
	ts := env.NewTimeStep(e.Spec())
	ended := map[int]bool{}
	e.Watch(observer(func(v *sim.View, p *sim.Point) {
		touched := map[int]sim.EventKind{}
		for i := range p.Events {
			ev := &p.Events[i]
			if ev.Kind == sim.Start || ev.Kind == sim.Preempt {
				if _, twice := touched[v.Pos(ev.Job)]; twice {
					t.Errorf("job %d was stopped and started at %v", v.Pos(ev.Job), ev.At)
				}
				touched[v.Pos(ev.Job)] = ev.Kind
			}
			switch {
			case ev.Kind == sim.Preempt:
				stops++
			case ev.Kind == sim.Finish && v.Pos(ev.Job) >= e.Window().First:
				ended[v.Pos(ev.Job)] = true
				gpus := time.Duration(v.Request(ev.Job).GPUs)
				// The last restart may have been paid in part only, by a job that was stopped again while it paid.
				most := v.Trace(ev.Job).Work + time.Duration(v.Preemptions(ev.Job))*(15*second+gpus*second) + 10*time.Nanosecond
				if ran := v.Ran(ev.Job); ran < v.Trace(ev.Job).Work || ran > most ||
					v.Preemptions(ev.Job) == 0 && ran != v.Trace(ev.Job).Work {
					t.Errorf("job %d of %v on %d GPUs ran for %v after %d stops", v.Pos(ev.Job), v.Trace(ev.Job).Work, gpus, ran,
						v.Preemptions(ev.Job))
				}
			}
		}
	}))
	reset(t, e, env.Episode{Seed: r.Uint64(), Window: -1}, ts)
	k := cfg.Visible
	for !ts.Kind.Last() {
		s := e.State()
		v := s.View
		waiting := 0
		for _, j := range v.Waiting() {
			if v.Pos(j) < e.Window().First {
				t.Fatalf("job %d of the warm-up waits", v.Pos(j))
			}
			waiting++
		}
		if s.Waiting == 0 || s.Waiting > waiting ||
			!slices.IsSortedFunc(s.Slots[:min(len(s.Slots), k/2)], func(a, b sim.Job) int { return v.Pos(a) - v.Pos(b) }) {
			t.Fatalf("%d jobs wait, %d of them visibly or behind; slots %v", waiting, s.Waiting, s.Slots)
		}
		for row := range cfg.Running {
			want := row < len(s.Running)
			if want {
				j := s.Running[row]
				stint := v.Now() - v.Started(j)
				want = v.Pos(j) >= e.Window().First && stint > 0 && stint >= cfg.MinRun
			}
			if ts.Mask[k+row] != want {
				t.Fatalf("row %d can be stopped: %v, want %v", row, ts.Mask[k+row], want)
			}
		}
		step(t, e, anyLegal(r, ts.Mask), ts)
	}
	if len(ended) != cfg.Window {
		t.Errorf("%d jobs ended, want %d", len(ended), cfg.Window)
	}
	return stops
}

// observer is a function that sees every point.
type observer func(v *sim.View, p *sim.Point)

func (o observer) Observe(v *sim.View, p *sim.Point) error {
	o(v, p)
	return nil
}

// With every job visible, a rule that stops jobs ends every job when the scheduler of its name does, which sees the
// whole queue: with and without costs, with and without a minimum, on a counter and on machines.
func TestStoppingRulesAreTheSchedulersOfTheirNames(t *testing.T) {
	seed := ownSeed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	tree := cluster.Spec{Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}}
	stopped := 0
	for _, spec := range []cluster.Spec{{Pool: 16}, tree} {
		var jobs []traces.Job
		at := time.Duration(0)
		for i := range 300 {
			at += time.Duration(1 + r.ExpFloat64()*float64(200*second))
			jobs = append(jobs, job(fmt.Sprint("j", i), at, time.Duration(1+r.IntN(3000))*second, 1+r.IntN(8)))
		}
		for _, estimates := range []string{"exact", "history", "noisy:0.7"} {
			for _, minRun := range []time.Duration{0, 300 * second} {
				for _, costs := range []bool{false, true} {
					cfg := jobselect.DefaultConfig()
					cfg.Window, cfg.Warm, cfg.Visible, cfg.Comm, cfg.Estimates, cfg.Load = 40, 30, 128, "none",
						sim.MustEstimates(estimates), 1.3
					if preempting(&cfg); !costs {
						cfg.Checkpoint, cfg.CheckpointPerGPU, cfg.Restart, cfg.RestartPerGPU = 0, 0, 0, 0
					}
					cfg.MinRun, cfg.Running = minRun, 64
					e := newEnv(t, cfg, spec, jobs)
					for _, name := range []string{"srtf", "srsf", "gittins", "index"} {
						if name == "index" && estimates == "history" {
							continue // a stop is news for jobs of its kind, at the same instant for the rule, at the next for the scheduler
						}
						ep := env.Episode{Seed: r.Uint64(), Window: -1}
						mine, _ := endsOfRule(t, e, name, ep)
						its, n := endsOfScheduler(t, e, cfg, name, ep)
						stopped += n
						if !slices.Equal(mine, its) {
							at := 0
							for mine[at] == its[at] {
								at++
							}
							t.Errorf("%s, %s, min_run %v, costs %v: job %d ends at %v by the rule and at %v by the scheduler", name,
								estimates, minRun, costs, at, mine[at], its[at])
						}
					}
				}
			}
		}
	}
	if stopped == 0 {
		t.Error("no job was ever stopped")
	}
}

// endsOfRule returns when the counted jobs of episode ep end under a rule, by position, and how many were stopped.
func endsOfRule(t *testing.T, e *sched.Env, rule string, ep env.Episode) (ends []time.Duration, stops int) {
	t.Helper()
	a, err := jobselect.NewRule(rule, e)
	if err != nil {
		t.Fatal(err)
	}
	o := newEnds(e)
	e.Watch(o)
	defer e.Watch(nil)
	ts := env.NewTimeStep(e.Spec())
	b, dst := &env.Batch{N: 1, Mask: ts.Mask}, env.NewActions(e.Spec(), 1)
	if _, _, err := env.Play(t.Context(), e, ep, ts, func(_ *env.TimeStep, act env.Action) error {
		err := a.Act(t.Context(), b, dst, nil)
		copy(act.Disc, dst.Disc)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return o.ends(t), o.stops
}

// endsOfScheduler is endsOfRule for the scheduler of that order over the whole queue. It fails the test if that stops a
// job which may not be stopped.
func endsOfScheduler(t *testing.T, e *sched.Env, cfg jobselect.Config, order string,
	ep env.Episode) (ends []time.Duration, stops int) {
	t.Helper()
	h := schedulers.DefaultConfig()
	h.Order, h.Admission, h.Placement = order, "skip", cfg.Placement
	if cfg.Estimates.String() != "none" {
		h.Estimates = cfg.Estimates
	}
	p, err := schedulers.New(h)
	if err != nil {
		t.Fatal(err)
	}
	p.Reseed(ep.Seed)
	o := newEnds(e)
	o.minRun = cfg.MinRun
	if err := e.Simulate(context.Background(), ep, p, o); err != nil {
		t.Fatal(err)
	}
	for _, f := range o.faults {
		t.Errorf("%s: %s", order, f)
	}
	return o.ends(t), o.stops
}

// whole is an observer of when jobs end.
type whole struct {
	e      *sched.Env
	at     map[int]time.Duration
	stops  int
	minRun time.Duration
	began  map[int]time.Duration
	faults []string
}

func newEnds(e *sched.Env) *whole {
	o := &whole{e: e}
	o.Reset()
	return o
}

func (o *whole) Reset() { o.at, o.began, o.stops = map[int]time.Duration{}, map[int]time.Duration{}, 0 }

func (o *whole) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		ev := &p.Events[i]
		switch ev.Kind {
		case sim.Start:
			o.began[v.Pos(ev.Job)] = ev.At
		case sim.Preempt:
			o.stops++
			pos := v.Pos(ev.Job)
			if began, ok := o.began[pos]; pos < o.e.Window().First || !ok || ev.At-began < o.minRun {
				o.faults = append(o.faults, fmt.Sprintf("job %d, which started at %v, was stopped at %v", pos, began, ev.At))
			}
		case sim.Finish:
			o.at[v.Pos(ev.Job)] = ev.At
		}
	}
	return nil
}

func (o *whole) ends(t *testing.T) (ends []time.Duration) {
	t.Helper()
	w := o.e.Window()
	for pos := w.First; pos < w.First+w.Jobs; pos++ {
		at, ok := o.at[pos]
		if !ok {
			t.Fatalf("job %d has not ended", pos)
		}
		ends = append(ends, at)
	}
	return ends
}

// Schedulers over the whole queue spare what the agent may not stop, and pay what it pays.
func TestSchedulersObeyTheMinimumAndPay(t *testing.T) {
	seed := ownSeed(t)
	r := rand.New(rand.NewPCG(seed, 3))
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm, cfg.Visible, cfg.Load = 40, 40, 6, 1.5
	preempting(&cfg)
	jobs := tangled(r, 400)
	free := cfg
	free.Checkpoint, free.CheckpointPerGPU, free.Restart, free.RestartPerGPU = 0, 0, 0, 0
	for _, order := range []string{"srtf", "srsf", "gittins", "gittins-2d", "index", "las", "las-2d", "las-2d-prompt",
		"smallest-preempt"} {
		for _, minRun := range []time.Duration{0, 600 * second} {
			cfg.MinRun, free.MinRun = minRun, minRun
			cfg.Checkpoint, cfg.Restart = time.Hour, time.Hour
			costly, plain := newEnv(t, cfg, topdrl(), jobs), newEnv(t, free, topdrl(), jobs)
			ep := env.Episode{Seed: r.Uint64(), Window: -1}
			a, stops := endsOfScheduler(t, costly, cfg, order, ep)
			b, _ := endsOfScheduler(t, plain, free, order, ep)
			if sum(a) <= sum(b) && stops > 0 {
				t.Errorf(
					"%s, min_run %v: jobs end after %v in all where a stop costs two hours and %d are stopped, and after %v where it is free", order, minRun, sum(a), stops, sum(b))
			}
		}
	}
}

func sum(all []time.Duration) (s time.Duration) {
	for _, d := range all {
		s += d
	}
	return s
}

func TestContractOfPreemption(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestContract, which takes less time; make unit runs this test")
	}
	jobs := tangled(rand.New(rand.NewPCG(21, 21)), 300)
	for _, x := range []struct {
		name   string
		spec   cluster.Spec
		change func(c *jobselect.Config)
	}{
		{"default", topdrl(), func(*jobselect.Config) {}},
		{"counter, without images", cluster.Spec{Pool: 24}, func(c *jobselect.Config) { c.Comm, c.Images = "none", false }},
		{"relative", topdrl(), func(c *jobselect.Config) { c.Relative, c.Gamma = "sjf", 0.99 }},
		{"no estimates, oldest", topdrl(), func(c *jobselect.Config) {
			c.Estimates, c.Slots, c.MinRun = sim.MustEstimates("none"), "oldest", 300*second
		}},
		{"forecasts", topdrl(), func(c *jobselect.Config) { c.Forecast, c.Running = "on", 40 }},
		{"cut off", topdrl(), func(c *jobselect.Config) {
			c.Horizon, c.MaxSteps, c.Estimates, c.MinRun = 2*time.Hour, 200, sim.MustEstimates("noisy:0.5"), 60*second
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			cfg := jobselect.DefaultConfig()
			cfg.Window, cfg.Warm, cfg.Visible = 20, 20, 6
			preempting(&cfg)
			x.change(&cfg)
			w, err := jobselect.NewWorkload(cfg, x.spec, jobs)
			if err != nil {
				t.Fatal(err)
			}
			options := []envtest.Option{envtest.Cap(400)}
			if !checked {
				options = append(options, envtest.NoAllocs())
			}
			envtest.Run(t, func() env.Env {
				e, err := jobselect.New(cfg, x.spec, w.Windows, traces.Training)
				if err != nil {
					t.Fatal(err)
				}
				return e
			}, options...)
		})
	}
}

func TestFaultsOfPreemption(t *testing.T) {
	for _, x := range []struct {
		change func(c *jobselect.Config)
		want   string
	}{
		{func(c *jobselect.Config) { c.Preempt = true },
			"preempt: got true, want false, or running gangs that the agent sees"},
		{func(c *jobselect.Config) { c.MinRun = second }, "min_run: got 1s, want 0s, as no job can be stopped"},
		{func(c *jobselect.Config) { c.Checkpoint = second }, "checkpoint: got 1s, want 0s, as no job can be stopped"},
		{func(c *jobselect.Config) { preempting(c); c.RestartPerGPU = -1 },
			"restart_per_gpu: got -1ns, want a time from 0s to 30s"},
		{func(c *jobselect.Config) { preempting(c); c.MinRun = 1000 * time.Hour },
			"min_run: got 1000h0m0s, want a time from 0s to 168h0m0s"},
	} {
		cfg := jobselect.DefaultConfig()
		x.change(&cfg)
		err := cfg.Validate()
		if len(fault.All(err)) != 1 || !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), x.want) {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
	cfg := jobselect.DefaultConfig()
	if preempting(&cfg); cfg.Validate() != nil {
		t.Error(cfg.Validate())
	}
	if got, want := cfg.Price(), "running gangs can be stopped, and pay 15s and 1s for each GPU at the next start"; got !=
		want {
		t.Errorf("price %q, want %q", got, want)
	}
	cfg.MinRun, cfg.CheckpointPerGPU, cfg.RestartPerGPU = 5*time.Minute, 0, 0
	if got, want := cfg.Price(), "a gang that has run for 5m0s can be stopped, and pays 15s at the next start"; got !=
		want {
		t.Errorf("price %q, want %q", got, want)
	}
	if _, err := jobselect.NewRule("srtf", room(t, "pool:3", 6, "exact", six)); err == nil ||
		!strings.Contains(err.Error(), "want preempt: true") {
		t.Errorf("srtf where no job can be stopped: %v", err)
	}
}
