package rollout_test

import (
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
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// priced returns a simulator of jobs where a stopped gang pays 30 s at its next start.
func priced(t fatal, name string, jobs []traces.Job) *sim.Simulator {
	t.Helper()
	cfg := sim.DefaultConfig()
	cfg.Overhead.Stop = 30 * time.Second
	s, err := sim.New(cfg, spec(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	return s
}

// stopping plays jobs with rollout:ORDER+skip and futures in which nothing arrives, with exact run times.
func stopping(t fatal, name, order string, budget int, jobs ...traces.Job) string {
	t.Helper()
	cfg := rollout.DefaultConfig()
	cfg.Budget.Rollouts = budget
	r, err := rollout.New(rollout.Setup{Config: cfg, Source: quiet{}}, base(order, "skip", "exact"))
	if err != nil {
		t.Fatal(err)
	}
	var l log
	if err := sim.Run(ctx, priced(t, name, jobs), r, &l); err != nil {
		t.Fatal(err)
	}
	return l.String()
}

// ends returns when each job finishes, and how often one is stopped.
func ends(t fatal, text string) (at map[int]time.Duration, stops int) {
	t.Helper()
	at = map[int]time.Duration{}
	for line := range strings.Lines(text) {
		var when, kind string
		var pos int
		if n, _ := fmt.Sscan(line, &when, &kind, &pos); n < 3 {
			continue
		}
		d, err := time.ParseDuration(when)
		if err != nil {
			t.Fatal(err)
		}
		switch kind {
		case "finish":
			at[pos] = d
		case "preempt":
			stops++
		}
	}
	return at, stops
}

// A, of 5010 s, has 10 s left when B, of 1000 s, arrives. LAS stops A for B, as A has run for more than 3250 s: A ends
// at 5000 + 1000 + 30 + 10 s. Looking ahead waits for A.
func TestAStopThatDoesNotPayByHand(t *testing.T) {
	jobs := []traces.Job{seconds("A", 0, 5010), seconds("B", 5000, 1000)}
	got, stops := ends(t, stopping(t, "1x1", "las", 1, jobs...))
	if got[0] != 6040*time.Second || got[1] != 6000*time.Second || stops != 1 {
		t.Errorf("LAS: %v, %d stops", got, stops)
	}
	got, stops = ends(t, stopping(t, "1x1", "las", 64, jobs...))
	if got[0] != 5010*time.Second || got[1] != 6010*time.Second || stops != 0 {
		t.Errorf("looking ahead: %v, %d stops, want A at 5010 s and B at 6010 s", got, stops)
	}
}

// A, of 10,000 s, has run for 100 s when B, of 10 s, arrives. Under LAS both are in the first queue, so B waits until A
// falls to the second, at 3250 s. Looking ahead stops A, starts B and goes on with A, which pays 30 s.
func TestAMoveThatPaysByHand(t *testing.T) {
	jobs := []traces.Job{seconds("A", 0, 10000), seconds("B", 100, 10)}
	got, _ := ends(t, stopping(t, "1x1", "las", 1, jobs...))
	if got[1] != 3260*time.Second || got[0] != 10040*time.Second {
		t.Errorf("LAS: %v", got)
	}
	got, stops := ends(t, stopping(t, "1x1", "las", 64, jobs...))
	if got[1] != 110*time.Second || got[0] != 10040*time.Second || stops != 1 {
		t.Errorf("looking ahead: %v, %d stops, want B at 110 s and A at 10040 s", got, stops)
	}
}

// A move of two gangs: C wants both GPUs for 10 s while A and B hold one each for long.
func TestAMoveStopsSeveralGangs(t *testing.T) {
	c := seconds("C", 100, 10)
	c.GPUs = 2
	jobs := []traces.Job{seconds("A", 0, 9000), seconds("B", 0, 9000), c}
	got, stops := ends(t, stopping(t, "1x2", "las", 64, jobs...))
	if got[2] != 110*time.Second || stops != 2 || got[0] != 9040*time.Second || got[1] != 9040*time.Second {
		t.Errorf("%v, %d stops, want C at 110 s, the others at 9040 s", got, stops)
	}
}

// Where nothing deviates, the base is the order of package schedulers.
func TestTheBaseThatStopsIsTheHeuristic(t *testing.T) {
	stops := 0
	for k, order := range []string{"srtf", "srsf", "gittins"} {
		seed := testseed.Or(61) + uint64(k)
		jobs := crowded(rand.New(rand.NewPCG(seed, 61)), 120)
		cfg := small(1)
		r, err := rollout.New(rollout.Setup{Config: cfg, Source: quiet{}}, base(order, "skip", "exact"))
		if err != nil {
			t.Fatal(err)
		}
		var want, got log
		for _, x := range []struct {
			l *log
			s sim.Scheduler
		}{{&want, policy(t, base(order, "skip", "exact"))}, {&got, r}} {
			if err := sim.Run(ctx, priced(t, "4x4", jobs), x.s, x.l); err != nil {
				t.Fatal(err)
			}
		}
		if got.String() != want.String() {
			t.Errorf("seed %d: %s plays otherwise when it looks ahead and never deviates", seed, order)
		}
		_, n := ends(t, want.String())
		stops += n
	}
	if stops < 20 {
		t.Errorf("only %d stops", stops)
	}
}

// actions plays one episode of e with a policy and returns what it does, each action with its time.
func actions(t fatal, e *sched.Env, ep env.Episode, act func(mask []bool) (int32, error)) string {
	t.Helper()
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, ep, ts); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for !ts.Kind.Last() {
		a, err := act(ts.Mask)
		if err != nil {
			t.Fatal(err)
		}
		if !ts.Mask[a] {
			t.Fatalf("action %d is illegal: %v", a, ts.Mask)
		}
		fmt.Fprintf(&b, "%v %d\n", e.View().Now(), a)
		if err := e.Step(ctx, env.Action{Disc: []int32{a}}, ts); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// rollouts plays an episode with rollout:ORDER@slots.
func rollouts(t fatal, s *rollout.Stopper, e *sched.Env, ep env.Episode) string {
	t.Helper()
	return actions(t, e, ep, func(mask []bool) (int32, error) { return s.Action(ctx, mask) })
}

// The same seed gives the same actions for any number of workers, and when an actor is used again; without deviations
// they are the rule's.
func TestStoppingThroughSlots(t *testing.T) {
	seed := testseed.Or(71)
	moved := 0
	for k, order := range []string{"srtf", "srsf", "gittins", "las", "las-2d"} {
		estimates := []string{"history", "exact"}[k%2]
		e := stoppable(t, generated(t, 2500, seed+uint64(k)), estimates, 32)
		ep := env.Episode{Seed: seed, Window: 1}
		var want string
		for _, workers := range []int{1, 3} {
			cfg := small(32)
			cfg.Confidence, cfg.Share = 0, 0
			s := stopper(t, cfg, e, order, workers)
			got := rollouts(t, s, e, ep)
			if want == "" {
				want = got
			}
			if got != want || rollouts(t, s, e, ep) != want {
				t.Errorf("seed %d, %s: %d workers, or playing again, give other actions", seed, order, workers)
			}
			if n := s.Tally(); n.Decisions == 0 || n.Rollouts == 0 {
				t.Errorf("%s: %+v", order, n)
			}
		}
		rule, err := jobselect.NewRule(order, e)
		if err != nil {
			t.Fatal(err)
		}
		own := actions(t, e, ep, func(mask []bool) (int32, error) { return rule.Action(mask, nil) })
		if own != want {
			moved++
		}
		if got := rollouts(t, stopper(t, small(1), e, order, 1), e, ep); got != own {
			t.Errorf("seed %d: without enough futures %s@slots plays otherwise than its rule", seed, order)
		}
	}
	if moved == 0 {
		t.Error("none of 5 searches deviates")
	}
}

// Full-queue searches over orders that stop jobs do not depend on the number of workers.
func TestStoppingOverTheWholeQueue(t *testing.T) {
	seed := testseed.Or(73)
	jobs := generated(t, 2500, seed)
	for _, estimates := range []string{"exact", "history"} {
		e := stoppable(t, jobs, estimates, 32)
		ep := env.Episode{Seed: seed, Window: 1}
		var want string
		for _, workers := range []int{1, 3} {
			s := scheduler(t, small(32), e, base("las", "skip", estimates), workers)
			got := simulate(t, e, s, ep).String()
			if want == "" {
				want = got
			}
			if got != want || simulate(t, e, s, ep).String() != want {
				t.Errorf("seed %d, %s: %d workers, or playing again, give another schedule", seed, estimates, workers)
			}
		}
	}
}

// Through slots and with forecasts, no action before a moment changes if the jobs in the system at that moment would
// run for longer, and those after it are others.
func TestStoppingKnowsNeitherRunTimesNorTheFuture(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestStoppingThroughSlots, which takes less time; make unit runs this test")
	}
	compared := 0
	for k, order := range []string{"las", "srtf", "gittins"} {
		seed := testseed.Or(81) + uint64(k)
		r := rand.New(rand.NewPCG(seed, 81))
		jobs := generated(t, 2500, seed)
		unscaled := func(c *jobselect.Config) { c.Load = 0 }
		e := stoppable(t, jobs, "history", 64, unscaled)
		ep := env.Episode{Seed: seed, Window: 0}
		var l log
		e.Watch(&l)
		want := rollouts(t, stopper(t, small(32), e, order, 1), e, ep)
		w := *e.Window()
		moment := w.Traced[w.First+w.Jobs/2].Submit
		ended := map[int]bool{}
		done, _ := ends(t, before(l.String(), moment))
		for pos := range done {
			ended[pos] = true
		}
		other, changed := slices.Clone(jobs), 0
		for i := range w.Jobs {
			pos := w.First + i
			id := w.Traced[pos].ID
			at := slices.IndexFunc(other, func(j traces.Job) bool { return j.ID == id })
			switch {
			case i > w.Jobs/2:
				other[at].Work, other[at].GPUs = time.Duration(1+r.IntN(9000))*time.Second, 1+r.IntN(4)
			case i < w.Jobs/2 && !ended[pos]:
				other[at].Work += time.Duration(1+r.IntN(90000)) * time.Second
				changed++
			}
		}
		e2 := stoppable(t, other, "history", 64, unscaled)
		got := rollouts(t, stopper(t, small(32), e2, order, 1), e2, ep)
		if before(got, moment) != before(want, moment) {
			t.Errorf("seed %d, %s: %d longer jobs and another future change actions before %v", seed, order, changed, moment)
		}
		if before(want, moment) != "" && got != want {
			compared++
		}
	}
	if compared == 0 {
		t.Error("nothing is compared")
	}
}

// A decision allocates nothing.
func TestStoppingAllocatesNothing(t *testing.T) {
	raced.Alone(t)
	if checked {
		t.Skip("checking the books after every change allocates")
	}
	for _, order := range []string{"las", "srtf", "gittins"} {
		e := stoppable(t, generated(t, 3000, 5), "history", 48)
		s := stopper(t, small(48), e, order, 1)
		if n := allocations(t, e, s, 40); n != 0 {
			t.Errorf("%s: %v allocations in a decision", order, n)
		}
	}
}

func TestWhatCannotStopIsRefused(t *testing.T) {
	jobs := generated(t, 2500, 6)
	e := stoppable(t, jobs, "exact", 32)
	rule, err := jobselect.NewRule("las", e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rollout.NewStopper(rollout.Setup{Config: small(8)}, "gittins-2d", rule, e); err == nil ||
		!strings.Contains(err.Error(),
			`rollout:gittins-2d@slots: no order "gittins-2d" that stops jobs to play on with, want`) {
		t.Errorf("%v", err)
	}
	plain := environment(t, jobs, "exact", 32)
	if _, err := rollout.NewStopper(rollout.Setup{Config: small(8)}, "las", rule, plain); err == nil ||
		!strings.Contains(err.Error(),
			"rollout:las@slots stops running jobs, which preempt: false does not allow; want preempt: true") {
		t.Errorf("%v", err)
	}
	blind := stoppable(t, jobs, "none", 32)
	if _, err := rollout.NewStopper(rollout.Setup{Config: small(8)}, "las", rule, blind); !errors.Is(err,
		rollout.ErrBlind) {
		t.Errorf("%v", err)
	}
	for want, change := range map[string]func(c *schedulers.Config){
		"": func(*schedulers.Config) {},
		"gittins-2d remembers which jobs it stops":           func(c *schedulers.Config) { c.Order = "gittins-2d" },
		"las remembers which jobs it stops":                  func(c *schedulers.Config) { c.Admission = "strict" },
		"placement least-interference looks at running jobs": func(c *schedulers.Config) { c.Placement = "least-interference" },
		"placement random remembers":                         func(c *schedulers.Config) { c.Placement = "random" },
		"hides run times": func(c *schedulers.Config) {
			c.Estimates = sim.MustEstimates(
				"none")
		},
	} {
		h := base("las", "skip", "exact")
		change(&h)
		if err := rollout.CheckBase(&h); want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
