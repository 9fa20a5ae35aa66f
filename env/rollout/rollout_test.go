package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/internal/raced"
	"clustergym/internal/testseed"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

var ctx = context.Background()

// simulate plays one episode of the test part and returns what happened.
func simulate(t fatal, e *sched.Env, s sim.Scheduler, ep env.Episode) *log {
	t.Helper()
	l := &log{from: 0}
	if r, ok := s.(interface{ Reseed(uint64) }); ok {
		r.Reseed(ep.Seed)
	}
	if err := e.Simulate(ctx, ep, s, l); err != nil {
		t.Fatal(err)
	}
	return l
}

// The same seed gives the same schedule for any number of workers, and when a scheduler is used again.
func TestWorkersChangeNothing(t *testing.T) {
	jobs := generated(t, 3000, testseed.Or(11))
	for _, estimates := range []string{"exact", "history"} {
		e := environment(t, jobs, estimates, 48)
		ep := env.Episode{Seed: testseed.Or(5), Window: 1}
		var want string
		for _, workers := range []int{1, 2, 8} {
			s := scheduler(t, small(48), e, base("sjf", "skip", estimates), workers)
			got := simulate(t, e, s, ep).String()
			if want == "" {
				want = got
			}
			if got != want || simulate(t, e, s, ep).String() != want {
				t.Errorf("%s: %d workers, or playing again, give another schedule", estimates, workers)
			}
			if n := s.Tally(); n.Decisions == 0 || n.Rollouts == 0 {
				t.Errorf("%+v", n)
			}
		}
	}
}

// run plays jobs on a plain simulator, with futures from the run's own past.
func run(t fatal, jobs []traces.Job, estimates string, order string, seed uint64) *log {
	t.Helper()
	cfg := sim.DefaultConfig()
	if est, err := sim.ParseEstimates(estimates); err == nil && est.Causal() {
		cfg.Predictor, _ = foreseen{}.none()
	}
	s, err := sim.New(cfg, spec(t, "4x4"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	h := base(order, "skip", estimates)
	h.Seed = seed
	r, err := rollout.New(rollout.Setup{Config: small(32)}, h)
	if err != nil {
		t.Fatal(err)
	}
	r.Reseed(seed)
	l := new(log)
	if err := sim.Run(ctx, s, r, l); err != nil {
		t.Fatal(err)
	}
	return l
}

// crowded draws n jobs that keep 16 GPUs busy.
func crowded(r *rand.Rand, n int) []traces.Job {
	jobs := make([]traces.Job, n)
	at := time.Duration(0)
	for i := range jobs {
		at += time.Duration(r.IntN(200)) * time.Second
		work := time.Duration(1+r.IntN(60)*r.IntN(60)) * time.Second
		jobs[i] = traces.Job{ID: fmt.Sprint("j", i), User: fmt.Sprint("u", r.IntN(4)), Submit: at, Work: work,
			Estimate: work * time.Duration(1+r.IntN(4)), GPUs: 1 << r.IntN(4), GPUMilli: 1000}
	}
	return jobs
}

// before returns the lines of events up to, and not including, time t.
func before(text string, t time.Duration) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		at, _, _ := strings.Cut(line, " ")
		if d, err := time.ParseDuration(at); err != nil || d >= t {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// Until the first difference has arrived, nothing changes if all jobs that are to come are others, come in another
// order, are more or fewer: with any estimates, and futures of the run's past or of recorded windows.
func TestTheRealFutureChangesNothing(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestWorkersChangeNothing, which takes less time; make unit runs this test")
	}
	for k, way := range [][2]string{
		{"sjf", "exact"}, {"sjf", "history"}, {"sjf", "trace"}, {"sjf", "noisy:1"}, {"las", "exact"}, {"las-2d", "history"},
		{"srtf", "noisy:1"}, {"gittins", "history"},
	} {
		if checked && k%3 > 0 {
			continue // checking the books after every change takes long
		}
		order, estimates := way[0], way[1]
		seed := testseed.Or(1) + uint64(k)
		r := rand.New(rand.NewPCG(seed, 51))
		jobs := crowded(r, 90)
		want := run(t, jobs, estimates, order, seed).String()
		cut := 40 + r.IntN(20)
		others := map[string][]traces.Job{"none": jobs[:cut],
			"one after the end": append(slices.Clone(jobs),
				traces.Job{ID: "end", Submit: 1e6 * time.Second, Work: 1e9, GPUs: 1, GPUMilli: 1000, Estimate: 1e9})}
		permuted := slices.Clone(jobs)
		for i := cut; i < len(jobs); i++ {
			o := jobs[cut+(i-cut+7)%(len(jobs)-cut)]
			permuted[i].Work, permuted[i].GPUs, permuted[i].Estimate, permuted[i].User = o.Work, o.GPUs, o.Estimate, o.User
		}
		others["permuted"] = permuted
		for what, other := range others {
			got, until := run(t, other, estimates, order, seed).String(), jobs[cut].Submit
			if what == "one after the end" {
				until = 1e6 * time.Second
			}
			if before(got, until) != before(want, until) {
				t.Errorf("seed %d, %s, %s: with %s to come, decisions before %v differ", seed, order, estimates, what, until)
			}
		}
	}
}

// Where estimates are not exact, nothing changes if a job that ends later would run for longer.
func TestRunTimesOfRunningJobsAreNotKnown(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestWorkersChangeNothing, which takes less time; make unit runs this test")
	}
	for k, way := range [][2]string{{"sjf", "history"}, {"sjf", "trace"}, {"las", "history"}, {"las-2d", "trace"},
		{"srtf", "history"}, {"gittins", "history"}} {
		order, estimates := way[0], way[1]
		seed := testseed.Or(2) + uint64(k)
		r := rand.New(rand.NewPCG(seed, 52))
		jobs := crowded(r, 90)
		want := run(t, jobs, estimates, order, seed).String()
		moment := jobs[60].Submit
		other := slices.Clone(jobs)
		changed := 0
		ended := map[int]bool{}
		for line := range strings.Lines(before(want, moment)) {
			var at, kind string
			var pos int
			if n, _ := fmt.Sscan(line, &at, &kind, &pos); n == 3 && kind == "finish" {
				ended[pos] = true
			}
		}
		for i := range other {
			if !ended[i] && other[i].Submit < moment {
				other[i].Work += time.Duration(1+r.IntN(5000)) * time.Second
				changed++
			}
		}
		if changed == 0 {
			t.Fatalf("seed %d: nothing is in the system", seed)
		}
		if got := run(t, other, estimates, order, seed).String(); before(got, moment) != before(want, moment) {
			t.Errorf("seed %d, %s, %s: %d longer jobs change decisions before they would have ended", seed, order, estimates,
				changed)
		}
	}
}

// A run of the test part does not depend on what is in the rest of the test part, with futures of the training part.
func TestRecordedFuturesAreOfTheTrainingPart(t *testing.T) {
	seed := testseed.Or(21)
	jobs := generated(t, 3000, seed)
	e := environment(t, jobs, "exact", 48)
	ep := env.Episode{Seed: seed, Window: 1}
	want := simulate(t, e, scheduler(t, small(32), e, base("sjf", "skip", "exact"), 1), ep).String()
	other := slices.Clone(jobs)
	for i := len(jobs) * 8 / 10; i < len(jobs); i++ {
		if w := e.Window(); i > w.At+w.Jobs+200 {
			other[i].Work += time.Hour
		}
	}
	e2 := environment(t, other, "exact", 48)
	if got := simulate(t, e2, scheduler(t, small(32), e2, base("sjf", "skip", "exact"), 1), ep).String(); got != want {
		t.Error("jobs of later windows change decisions")
	}
}

// A long job of 16 GPUs and then many short ones: FIFO starts the long one first, a look ahead waits with it.
func TestLookingAheadBeatsFIFO(t *testing.T) {
	raced.Alone(t)
	better, same := 0, 0
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(testseed.Or(0)+seed, 53))
		jobs := crowded(r, 120)
		s, err := sim.New(sim.DefaultConfig(), spec(t, "4x4"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		var fifo log
		if err := sim.Run(ctx, s, policy(t, base("fifo", "skip", "exact")), &fifo); err != nil {
			t.Fatal(err)
		}
		l := run(t, jobs, "exact", "fifo", seed)
		if l.done != fifo.done {
			t.Errorf("%d jobs end, %d under FIFO", l.done, fifo.done)
		}
		switch {
		case l.mean() < fifo.mean()*95/100:
			better++
		case l.mean() <= fifo.mean()*105/100:
			same++
		}
	}
	if better < 4 || better+same < 6 {
		t.Errorf("looking ahead is better than FIFO by 5 %% in %d of 6 runs, and not worse in %d", better, better+same)
	}
}

// A rollout allocates nothing, and neither does a decision.
func TestDecisionsAllocateNothing(t *testing.T) {
	if checked {
		t.Skip("checking the books after every change allocates")
	}
	for _, x := range [][2]string{{"exact", rollout.OfForecasts}, {"history", rollout.OfForecasts},
		{"history", rollout.OfRecords}} {
		estimates, cfg := x[0], small(48)
		cfg.Lifetimes = x[1]
		e := environment(t, generated(t, 3000, 5), estimates, 48)
		src, err := rollout.RecordedOf(e)
		if err != nil {
			t.Fatal(err)
		}
		a, err := rollout.NewActor(rollout.Setup{Config: cfg, Source: src}, "sjf", e)
		if err != nil {
			t.Fatal(err)
		}
		if n := allocations(t, e, a, 25); n != 0 {
			t.Errorf("%s: %v allocations in a decision", x, n)
		}
	}
}

// allocations returns how many there are in a decision of p, after some decisions of a window.
func allocations(t *testing.T, e *sched.Env, p interface {
	Action(ctx context.Context, mask []bool) (int32, error)
}, after int) float64 {
	t.Helper()
	ts := env.NewTimeStep(e.Spec())
	err := e.Reset(ctx, env.Episode{Seed: 3, Window: 1}, ts)
	if err != nil {
		t.Fatal(err)
	}
	act := env.Action{Disc: make([]int32, 1)}
	for range after {
		if act.Disc[0], err = p.Action(ctx, ts.Mask); err != nil {
			t.Fatal(err)
		}
		if err := e.Step(ctx, act, ts); err != nil {
			t.Fatal(err)
		}
		if ts.Kind.Last() {
			t.Fatal("the window is over")
		}
	}
	return testing.AllocsPerRun(10, func() {
		if _, err := p.Action(ctx, ts.Mask); err != nil {
			t.Fatal(err)
		}
	})
}

// The actor takes legal actions, comes to the end of each episode, and decides alike when it is asked again.
func TestTheActorPlaysTheEnvironment(t *testing.T) {
	raced.Alone(t)
	for _, estimates := range []string{"exact", "history", "noisy:0.5"} {
		e := environment(t, generated(t, 2500, testseed.Or(4)), estimates, 32)
		a, err := rollout.NewActor(rollout.Setup{Config: small(32)}, "sjf", e)
		if err != nil {
			t.Fatal(err)
		}
		var runs [2][]int32
		for k := range runs {
			ts := env.NewTimeStep(e.Spec())
			if err := e.Reset(ctx, env.Episode{Seed: 8, Window: 0}, ts); err != nil {
				t.Fatal(err)
			}
			for !ts.Kind.Last() {
				i, err := a.Action(ctx, ts.Mask)
				if err != nil {
					t.Fatal(err)
				}
				if !ts.Mask[i] {
					t.Fatalf("action %d is illegal: %v", i, ts.Mask)
				}
				runs[k] = append(runs[k], i)
				if err := e.Step(ctx, env.Action{Disc: []int32{i}}, ts); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !slices.Equal(runs[0], runs[1]) {
			t.Errorf("%s: the same episode is played in two ways", estimates)
		}
		if n := a.Tally(); n.Decisions == 0 {
			t.Errorf("%s: %+v", estimates, n)
		}
	}
}

// An actor that never deviates, as its confidence is out of reach, plays the rule that it looks ahead with.
func TestTheActorBeginsWithItsRule(t *testing.T) {
	for _, rule := range []string{"fifo", "sjf", "hold"} {
		var acted [2][]int32
		for k := range acted {
			e := environment(t, generated(t, 2500, testseed.Or(4)), "history", 48)
			cfg := small(8)
			cfg.Confidence = 100
			a, err := rollout.NewActor(rollout.Setup{Config: cfg}, rule, e)
			if err != nil {
				t.Fatal(err)
			}
			r, err := jobselect.NewRule(rule, e)
			if err != nil {
				t.Fatal(err)
			}
			ts := env.NewTimeStep(e.Spec())
			if err := e.Reset(ctx, env.Episode{Seed: 8, Window: 0}, ts); err != nil {
				t.Fatal(err)
			}
			for !ts.Kind.Last() {
				var i int32
				if k == 0 {
					i, err = a.Action(ctx, ts.Mask)
				} else {
					i, err = r.Action(ts.Mask, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				acted[k] = append(acted[k], i)
				if err := e.Step(ctx, env.Action{Disc: []int32{i}}, ts); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(acted[0]) == 0 || !slices.Equal(acted[0], acted[1]) {
			t.Errorf("%s: the actor plays otherwise than the rule", rule)
		}
	}
}

// Where jobs can be stopped, the actor decides beside a policy that stops some: a job cannot start at the instant at
// which it was stopped, in rollouts either.
func TestTheActorPlaysBesideAPolicyThatStopsJobs(t *testing.T) {
	raced.Alone(t)
	stopped := 0
	for seed := range uint64(4) {
		seed += testseed.Or(31)
		r := rand.New(rand.NewPCG(seed, 54))
		e := environment(t, generated(t, 2500, seed), "exact", 32, func(c *jobselect.Config) {
			c.Preempt, c.Running, c.Checkpoint = true, 4, 20*time.Second
		})
		a, err := rollout.NewActor(rollout.Setup{Config: small(32)}, "sjf", e)
		if err != nil {
			t.Fatal(err)
		}
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(ctx, env.Episode{Seed: seed, Window: 0}, ts); err != nil {
			t.Fatal(err)
		}
		for steps := 0; !ts.Kind.Last() && steps < 400; steps++ {
			i, err := a.Action(ctx, ts.Mask)
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, steps, err)
			}
			for k := range 4 {
				if stop := 10 + k; ts.Mask[stop] && r.IntN(3) == 0 {
					i, stopped = int32(stop), stopped+1
				}
			}
			if !ts.Mask[i] {
				t.Fatalf("seed %d: action %d is illegal: %v", seed, i, ts.Mask)
			}
			if err := e.Step(ctx, env.Action{Disc: []int32{i}}, ts); err != nil {
				t.Fatal(err)
			}
		}
	}
	if stopped < 20 {
		t.Errorf("only %d jobs were stopped", stopped)
	}
}

func TestABudgetOfTimeStopsBetweenFutures(t *testing.T) {
	e := environment(t, generated(t, 2500, 6), "exact", 32)
	src, err := rollout.RecordedOf(e)
	if err != nil {
		t.Fatal(err)
	}
	play := func(tick time.Duration) rollout.Tally {
		var now time.Duration
		cfg := small(0)
		cfg.Budget.Time = 30 * time.Millisecond
		s, err := rollout.New(rollout.Setup{Config: cfg, Source: src, Clock: func() time.Duration { now += tick; return now }}, base("sjf", "skip", "exact"))
		if err != nil {
			t.Fatal(err)
		}
		simulate(t, e, s, env.Episode{Seed: 1})
		return s.Tally()
	}
	fast, slow := play(time.Millisecond), play(time.Hour)
	if f, s := float64(fast.Rollouts)/float64(fast.Decisions),
		float64(slow.Rollouts)/float64(slow.Decisions); f < 2*s || s < 2 {
		t.Errorf("%v rollouts a decision on a fast machine, %v on a slow one", f, s)
	}
	if slow.Deviated > 0 {
		t.Errorf("%d decisions deviate after a handful of futures", slow.Deviated)
	}
}

func TestACancelledDecisionEnds(t *testing.T) {
	e := environment(t, generated(t, 2500, 6), "exact", 32)
	s := scheduler(t, small(64), e, base("sjf", "skip", "exact"), 2)
	c, cancel := context.WithCancel(ctx)
	cancel()
	s.Cancel(c)
	if err := e.Simulate(ctx, env.Episode{Seed: 1}, s, new(log)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestWhatCannotSearchIsRefused(t *testing.T) {
	cfg := rollout.DefaultConfig()
	cfg.Budget.Rollouts, cfg.Candidates, cfg.Objective, cfg.Share = 0, 1, "jtc", 1
	err := cfg.Validate()
	for _, want := range []string{`budget: got "0", want a number of rollouts`, "candidates: got 1",
		"share: got 1, want 0 to below 1", `objective: got "jtc", want one of jct, slowdown`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, b := range []string{"0", "-3", "0s", "3h", "fast", ""} {
		if _, err := rollout.ParseBudget(b); err == nil {
			t.Errorf("budget %q is read", b)
		}
	}
	for _, b := range []string{"128", "30ms"} {
		if got, err := rollout.ParseBudget(b); err != nil || got.String() != b {
			t.Errorf("budget %q is %v, %v", b, got, err)
		}
	}
	for name, want := range map[string]string{
		"gittins-2d": "rollouts play on from any state, and gittins-2d remembers", "smallest-preempt": "remembers",
		"gandiva": "remembers what it has decided", "sjff": "unknown",
	} {
		h := base(name, "", "exact")
		if err := rollout.CheckBase(&h); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	h := base("fifo", "skip", "none")
	if err := rollout.CheckBase(&h); !errors.Is(err, rollout.ErrBlind) {
		t.Errorf("without run times: %v", err)
	}
	e := environment(t, generated(t, 2500, 6), "none", 32)
	if _, err := rollout.NewActor(rollout.Setup{Config: small(8)}, "fifo", e); !errors.Is(err, rollout.ErrBlind) {
		t.Errorf("an actor without run times: %v", err)
	}
	e = environment(t, generated(t, 2500, 6), "exact", 32)
	if _, err := rollout.NewActor(rollout.Setup{Config: small(8)}, "las", e); err == nil ||
		!strings.Contains(err.Error(), `JobSelect-v1: rollout:las@slots: no order "las"`) {
		t.Errorf("%v", err)
	}
}
