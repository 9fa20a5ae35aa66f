package jobselect_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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

// wantSlots ranks the queue anew: the K/2 oldest, the K/2 others of least e·n that fit now, then the next oldest.
func wantSlots(s *sched.State, k int, oldest bool) []sim.Job {
	var queue []sim.Job
	for _, j := range s.View.Waiting() {
		if s.Known[j].Counted {
			queue = append(queue, j)
		}
	}
	slices.SortFunc(queue, func(a, b sim.Job) int { return s.View.Pos(a) - s.View.Pos(b) })
	if oldest {
		return queue[:min(k, len(queue))]
	}
	slots := slices.Clone(queue[:min(k/2, len(queue))])
	rest := slices.Clone(queue[len(slots):])
	small := slices.DeleteFunc(slices.Clone(rest), func(j sim.Job) bool { return !s.View.Fits(j) })
	area := func(j sim.Job) float64 {
		n := float64(s.View.Trace(j).Milli()) / 1000
		if s.Blind {
			return n
		}
		return float64(s.Known[j].Estimate) * n
	}
	slices.SortStableFunc(small, func(a, b sim.Job) int { return cmp.Compare(area(a), area(b)) })
	slots = append(slots, small[:min(k/2, len(small))]...)
	for _, j := range rest {
		if len(slots) < k && !slices.Contains(slots, j) {
			slots = append(slots, j)
		}
	}
	return slots
}

// At every decision: the slots are those of the rule, legal is what fits, one start at least is legal, waiting is
// legal unless nothing would ever happen; a start takes no time while something visible still fits; a wait ends
// at the next event at which something visible fits, and no earlier point was passed over.
func TestDecisionRules(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(c *jobselect.Config)
	}{
		{"default", func(*jobselect.Config) {}},
		{"four slots", func(c *jobselect.Config) { c.Visible = 4 }},
		{"oldest", func(c *jobselect.Config) { c.Slots, c.Visible = "oldest", 4 }},
		{"no estimates", func(c *jobselect.Config) { c.Estimates, c.Visible = sim.MustEstimates("none"), 6 }},
		{"noisy", func(c *jobselect.Config) { c.Estimates, c.Visible = sim.MustEstimates("noisy:1"), 6 }},
		{"from the trace", func(c *jobselect.Config) { c.Estimates = sim.MustEstimates("trace") }},
		{"overload", func(c *jobselect.Config) { c.Load = 5 }},
		{"cold", func(c *jobselect.Config) { c.Warm, c.Load = 0, 0 }},
	} {
		t.Run(x.name, func(t *testing.T) {
			cfg := jobselect.DefaultConfig()
			cfg.Window, cfg.Warm = 60, 60
			x.change(&cfg)
			e := newEnv(t, cfg, topdrl(), tangled(rand.New(rand.NewPCG(6, 6)), 500))
			r := rand.New(rand.NewPCG(7, 7))
			backlog := 0
			for seed := range uint64(5) {
				var f facts
				e.Watch(&f)
				ts := env.NewTimeStep(e.Spec())
				reset(t, e, env.Episode{Seed: seed, Window: -1}, ts)
				for !ts.Kind.Last() {
					s := e.State()
					v := s.View
					if got, want := s.Slots, wantSlots(s, cfg.Visible, cfg.Slots == "oldest"); !slices.Equal(got, want) {
						t.Fatalf("at %v: slots %v, want %v", v.Now(), got, want)
					}
					waiting, gpus, starts := 0, 0.0, 0
					for _, j := range v.Waiting() {
						if s.Known[j].Counted {
							waiting++
							gpus += s.Known[j].GPUs
						}
					}
					backlog = max(backlog, waiting-len(s.Slots))
					if waiting != s.Waiting || s.WaitingGPUs < gpus-1e-9 || s.WaitingGPUs > gpus+1e-9 {
						t.Fatalf("%d jobs and %v GPUs wait, the state says %d and %v", waiting, gpus, s.Waiting, s.WaitingGPUs)
					}
					for i := range cfg.Visible {
						want := i < len(s.Slots) && v.Fits(s.Slots[i])
						if ts.Mask[i] != want {
							t.Fatalf("slot %d: legal %v, want %v", i, ts.Mask[i], want)
						}
						if want {
							starts++
						}
					}
					if starts == 0 {
						t.Fatalf("asked at %v where no start is legal", v.Now())
					}
					if want := len(v.Running()) > 0 || v.Arriving(); ts.Mask[cfg.Visible] != want {
						t.Fatalf("waiting is legal: %v, want %v", ts.Mask[cfg.Visible], want)
					}

					now, points := v.Now(), len(f.points)
					a := anyLegal(r, ts.Mask)
					step(t, e, a, ts)
					if ts.Elapsed != v.Now()-now {
						t.Fatalf("elapsed %v, the clock went on by %v", ts.Elapsed, v.Now()-now)
					}
					if a == cfg.Visible {
						if len(f.points) == points {
							t.Fatal("a wait without an event")
						}
					} else if more := slices.Contains(s.Fits, true) && ts.Elapsed == 0; starts > 1 && !more &&
						len(f.points) == points && !ts.Kind.Last() {
						t.Fatalf("a start ended the point at %v although something may fit", now)
					}
				}
			}
			if x.name == "overload" && backlog == 0 {
				t.Error("no episode had a backlog")
			}
		})
	}
}

// Points where only waiting is possible are stepped over; their reward comes with the next step. Wait at the very
// end is masked.
func TestPointsWithoutAChoiceAreSteppedOver(t *testing.T) {
	// A takes all; B and C arrive while it runs and are asked for when it has finished at 100.
	e, ts := hand(t, small(3), cluster.Spec{Pool: 2},
		[]traces.Job{job("A", 0, 100*second, 2), job("B", 10*second, 50*second, 2), job("C", 20*second, 5*second, 1)})
	wantLegal(t, ts, 0, 10)
	step(t, e, 0, ts)
	if ts.Elapsed != 100*second {
		t.Errorf("the next choice is at %v, want 1m40s", ts.Elapsed)
	}
	closeTo(t, "reward", ts.Reward, -(100.0+90+80)/10800)
	wantLegal(t, ts, 0, 1)
	step(t, e, 1, ts) // C; then B is alone and does not fit: at 105 it does
	closeTo(t, "reward", ts.Reward, -(5.0+5)/10800)
	wantLegal(t, ts, 0)
	step(t, e, 0, ts)
	if ts.Kind != env.Terminated || ts.Elapsed != 50*second {
		t.Errorf("%v after %v", ts.Kind, ts.Elapsed)
	}
	if err := e.Step(ctx, env.Action{Disc: []int32{0}}, ts); err != env.ErrResetNeeded {
		t.Errorf("after the end: %v", err)
	}
}

// A decision to wait goes to the next event, not further.
func TestWaitGoesToTheNextEvent(t *testing.T) {
	e, ts := hand(t, small(3), cluster.Spec{Pool: 4},
		[]traces.Job{job("A", 0, 100*second, 1), job("B", 7*second, second, 1), job("C", 30*second, second, 1)})
	step(t, e, 10, ts)
	if ts.Elapsed != 7*second {
		t.Errorf("waited %v, want 7s", ts.Elapsed)
	}
	closeTo(t, "reward", ts.Reward, -7.0/10800)
	step(t, e, 10, ts)
	if ts.Elapsed != 23*second {
		t.Errorf("waited %v, want 23s", ts.Elapsed)
	}
	wantLegal(t, ts, 0, 1, 2) // nothing runs and nothing will arrive
}

func TestMaxStepsTruncates(t *testing.T) {
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm, cfg.MaxSteps = 40, 20, 15
	e := newEnv(t, cfg, topdrl(), tangled(rand.New(rand.NewPCG(8, 8)), 300))
	var f facts
	_, steps, ts := play(t, e, env.Episode{Seed: 1, Window: -1}, 1, &f)
	if steps != 15 || ts.Kind != env.Truncated || e.Spec().MaxSteps != 15 {
		t.Errorf("%v after %d steps", ts.Kind, steps)
	}
	if n := ts.Info[sched.InfoUnfinished]; n < 25 {
		t.Errorf("%v unfinished after 15 steps of 40 jobs", n)
	}
	// An episode that ends with the last step allowed has terminated, not been cut off.
	cfg.MaxSteps = 0
	_, steps, _ = play(t, newEnv(t, cfg, topdrl(), tangled(rand.New(rand.NewPCG(8, 8)), 300)),
		env.Episode{Seed: 1, Window: -1}, 1, &f)
	cfg.MaxSteps = steps
	_, again, ts := play(t, newEnv(t, cfg, topdrl(), tangled(rand.New(rand.NewPCG(8, 8)), 300)),
		env.Episode{Seed: 1, Window: -1}, 1, &f)
	if again != steps || ts.Kind != env.Terminated {
		t.Errorf("%v after %d steps, want Terminated after %d", ts.Kind, again, steps)
	}
}

// A finish right at the horizon still counts.
func TestHorizonByHand(t *testing.T) {
	cfg := small(2)
	cfg.Horizon = 10 * second
	two := []traces.Job{job("A", 5*second, 10*second, 1), job("B", 5*second, 11*second, 1)}
	e, ts := hand(t, cfg, cluster.Spec{Pool: 2}, two)
	step(t, e, 0, ts)
	step(t, e, 0, ts)
	if ts.Kind != env.Truncated || ts.Info[sched.InfoUnfinished] != 1 || ts.Info[sched.InfoJCT] != 10 ||
		ts.Elapsed != 10*second {
		t.Errorf("%v, %v after %v", ts.Kind, ts.Info, ts.Elapsed)
	}
	closeTo(t, "reward", ts.Reward, -20.0/7200)
	two[1].Work = 10 * second
	e, ts = hand(t, cfg, cluster.Spec{Pool: 2}, two)
	step(t, e, 0, ts)
	step(t, e, 0, ts)
	if ts.Kind != env.Terminated || ts.Info[sched.InfoUnfinished] != 0 {
		t.Errorf("%v, %v", ts.Kind, ts.Info)
	}
}

// Submit times are stretched so that the offered load is the configured one, and the rows before the window by
// the same factor.
func TestLoadAndWarmStart(t *testing.T) {
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm, cfg.Load = 50, 30, 0.7
	jobs := tangled(rand.New(rand.NewPCG(9, 9)), 400)
	e := newEnv(t, cfg, topdrl(), jobs)
	ts := env.NewTimeStep(e.Spec())
	for _, ep := range []env.Episode{{Window: 0}, {Window: 1}, {Seed: 5, Window: -1}} {
		reset(t, e, ep, ts)
		w := e.Window()
		if w.First != 30 || w.Jobs != 50 || len(w.Traced) != 80 || w.GPUs != 32 || w.Tau != time.Hour {
			t.Fatalf("window %+v", w)
		}
		area := 0.0
		for _, j := range w.Traced[30:] {
			area += float64(j.Milli()) / 1000 * j.Work.Seconds()
		}
		span := (w.Traced[79].Submit - w.Traced[30].Submit).Seconds()
		if load := area / 32 / span; load < 0.7-1e-6 || load > 0.7+1e-6 {
			t.Errorf("the load is %v, want 0.7", load)
		}
		at := slices.IndexFunc(jobs, func(j traces.Job) bool { return j.ID == w.Traced[0].ID })
		f := float64(w.Traced[79].Submit-w.Traced[30].Submit) / float64(jobs[at+79].Submit-jobs[at+30].Submit)
		for i, j := range w.Traced {
			if j.ID != jobs[at+i].ID || j.Work != jobs[at+i].Work {
				t.Fatalf("job %d of the window is %+v, want %+v", i, j, jobs[at+i])
			}
			want := float64(jobs[at+i].Submit-jobs[at].Submit) * f
			if d := float64(j.Submit) - want; d < -10 || d > 10 {
				t.Fatalf("job %d is submitted at %v, want %v", i, j.Submit, time.Duration(want))
			}
		}
		// No job from before the window waits; those running continue uncounted.
		for _, j := range e.State().View.Waiting() {
			if e.State().View.Pos(j) < 30 {
				t.Errorf("job %d waits and is not counted", e.State().View.Pos(j))
			}
		}
	}
	reset(t, e, env.Episode{Seed: 5, Window: -1}, ts)
	a := fmt.Sprint(e.Window().Traced)
	reset(t, e, env.Episode{Seed: 6, Window: -1}, ts)
	if fmt.Sprint(e.Window().Traced) == a {
		t.Error("another seed draws the same window")
	}
}

// Contested windows are those where FIFO and SJF, both skip, differ by a percent; where there are none, one is
// taken as it is.
func TestContestedWindows(t *testing.T) {
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm, cfg.Load, cfg.Contested = 30, 0, 0.35, true
	jobs := tangled(rand.New(rand.NewPCG(10, 10)), 2000)
	e := newEnv(t, cfg, topdrl(), jobs)
	cfg.Contested = false
	plain := newEnv(t, cfg, topdrl(), jobs)
	mean := func(order string, w *sched.Window) float64 {
		s, err := sim.New(sim.Config{Comm: cfg.Comm}, topdrl())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(&traces.Slice{Jobs: w.Traced}); err != nil {
			t.Fatal(err)
		}
		hc := schedulers.DefaultConfig()
		hc.Order, hc.Admission, hc.Placement = order, "skip", cfg.Placement
		h, err := schedulers.New(hc)
		if err != nil {
			t.Fatal(err)
		}
		var c metrics.Collector
		if err := sim.Run(ctx, s, h, &c); err != nil {
			t.Fatal(err)
		}
		return c.Summary(0, 0).JCT.Mean
	}
	contested := func(w *sched.Window) bool {
		a, b := mean("fifo", w), mean("sjf", w)
		return a-b >= 0.01*max(a, b) || b-a >= 0.01*max(a, b)
	}
	ts := env.NewTimeStep(e.Spec())
	redrawn := 0
	for seed := range uint64(12) {
		ep := env.Episode{Seed: seed, Window: -1}
		reset(t, plain, ep, ts)
		first := contested(plain.Window())
		before := plain.Window().Traced[0].ID
		reset(t, e, ep, ts)
		if !contested(e.Window()) {
			t.Errorf("seed %d: FIFO and SJF tie", seed)
		}
		if same := e.Window().Traced[0].ID == before; first != same {
			t.Errorf("seed %d: the first draw is contested: %v, and taken: %v", seed, first, same)
		}
		if !first {
			redrawn++
		}
	}
	if redrawn == 0 || redrawn == 12 {
		t.Errorf("%d of 12 windows were drawn again: the workload does not test the rule", redrawn)
	}

	cfg.Contested = true
	same := make([]traces.Job, 100) // one job after the other: every order is the same
	for i := range same {
		same[i] = job(fmt.Sprint(i), time.Duration(i)*time.Hour, second, 1)
	}
	cfg.Window, cfg.Load = 10, 0
	reset(t, newEnv(t, cfg, topdrl(), same), env.Episode{Window: -1}, ts)
}

func TestWorkloadErrorsCountAndName(t *testing.T) {
	cfg := small(2)
	jobs := padded([]traces.Job{job("a", 0, second, 1), job("b", second, second, 2)})
	spec := cluster.Spec{Name: "pair", Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 2, GPUType: "v100"}}}}}
	wide := append(slices.Clone(jobs), job("zero", 2000*time.Hour, 0, 1), job("big", 2000*time.Hour, second, 99))
	w, err := jobselect.NewWorkload(cfg, spec, wide)
	if err != nil || w.Left.Large != 1 || w.Left.Workless != 1 || w.Left.Of != len(wide) {
		t.Errorf("left out %+v, %v; want one too large and one without work", w, err)
	}

	never := slices.Clone(jobs)
	for i := range 12 {
		j := job(fmt.Sprint("never", i), 2000*time.Hour, second, 1)
		if j.GPUTypes = []string{"a100"}; i%2 == 0 {
			j.GPUTypes, j.GPUs = nil, 3
		}
		never = append(never, j)
	}
	w, err = jobselect.NewWorkload(cfg, spec, never)
	if err != nil || w.Left.Never != 12 || len(w.Left.NeverIDs) != 10 || w.Left.NeverIDs[9] != "never9" {
		t.Fatalf("left out %+v, %v; want twelve that never fit", w, err)
	}
	// Each of them asks for 1 or 3 GPUs for a second.
	all := 0.0
	for i := range never {
		all += float64(never[i].GPUs) * never[i].Work.Seconds()
	}
	if want := (6*1 + 6*3) / all; math.Abs(w.Left.NeverShare-want) > 1e-12 {
		t.Errorf("they are %v of the GPU time, want %v", w.Left.NeverShare, want)
	}
	_, err = jobselect.NewWorkload(cfg, spec, never[len(jobs):])
	if want := "12 of 12 jobs can never fit cluster pair (2 GPUs), and none is left: never0, never1, never2, never3, never4, never5, never6, never7, never8, never9 and 2 more; 6 ask for more than its 2 GPUs; 6 ask for GPU type a100, and it has v100"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}

	cfg.Estimates = sim.MustEstimates("trace")
	if _, err := jobselect.NewWorkload(cfg, spec, jobs); err == nil ||
		err.Error() !=
			"2 of 3 jobs have no estimate in their trace, the first is a; use estimates none, history, gbdt, exact or noisy:SIGMA, or trace.limit (limit), a time that stands for those that are missing" {
		t.Errorf("estimates of the trace: %v", err)
	}
	cfg = small(50)
	if _, err := jobselect.NewWorkload(cfg, spec, jobs); err == nil {
		t.Error("two jobs are a window of 50")
	}
	if _, err := jobselect.NewWorkload(small(1), cluster.Spec{}, jobs); err == nil {
		t.Error("no cluster")
	}
	// A counter wider than an image is refused when the environment is made.
	w, err = jobselect.NewWorkload(small(2), cluster.Spec{Pool: 513}, jobs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jobselect.New(small(2), cluster.Spec{Pool: 513}, w.Windows, traces.Training); err == nil {
		t.Error("a counter of 513 GPUs has no machines to draw")
	}
}
