package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"clustergym/env"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/internal/raced"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// told is a run for a simulator that follows: what happened up to each point, and what a scheduler has decided there.
type told struct {
	facts   [][]sim.Fact
	at      []sim.Point
	more    []bool
	decided [][]sim.Decision
}

// Observe implements sim.Observer.
func (r *told) Observe(v *sim.View, p *sim.Point) error {
	var facts []sim.Fact
	for i := range p.Events {
		f := v.Fact(&p.Events[i])
		f.GPUs = slices.Clone(f.GPUs)
		facts = append(facts, f)
	}
	r.facts, r.at, r.more, r.decided = append(r.facts,
		facts), append(r.at, sim.Point{Now: p.Now}), append(r.more, v.Arriving()), append(r.decided, nil)
	return nil
}

// noted is a scheduler whose decisions are written down.
type noted struct {
	sim.Scheduler
	told *told
}

func (n *noted) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	err := n.Scheduler.Decide(v, p, d)
	if d.Op != sim.Wait {
		c := *d
		c.GPUs = slices.Clone(d.GPUs)
		last := len(n.told.decided) - 1
		n.told.decided[last] = append(n.told.decided[last], c)
	}
	return err
}

// A search that is asked over facts decides what it has decided in the run, from recorded futures as from its own past.
func TestSearchesAreAskedOverFacts(t *testing.T) {
	for _, x := range []struct {
		order, estimates string
		own              bool
	}{{"sjf", "exact", false}, {"sjf", "history", true}, {"srtf", "history", false}, {"srtf", "exact", true}} {
		t.Run(fmt.Sprint(x.order, " ", x.estimates, " own past ", x.own), func(t *testing.T) {
			raced.Alone(t)
			testASearchIsAsked(t, x.order, x.estimates, x.own)
		})
	}
}

func testASearchIsAsked(t *testing.T, order, estimates string, own bool) {
	t.Helper()
	jobs := generated(t, 70, 5)
	cfg := sim.DefaultConfig()
	maker, err := foreseen{}.none()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Predictor = maker
	est, err := sim.ParseEstimates(estimates)
	if err != nil {
		t.Fatal(err)
	}
	machine := spec(t, "2x4")
	source := func() (rollout.Source, *rollout.Past) {
		if own {
			p := rollout.NewPast(est)
			p.Reset(0)
			return p, p
		}
		return rollout.NewRecorded(generated(t, 300, 6), 40, 1, maker), nil
	}
	search := func(src rollout.Source) *rollout.Scheduler {
		s, err := rollout.New(rollout.Setup{Config: small(16), Source: src, Workers: 1}, base(order, "skip", estimates))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, err := sim.New(cfg, machine)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	src, past := source()
	run, all := search(src), new(told)
	observers := []sim.Observer{all}
	if past != nil {
		observers = append(observers, past)
	}
	if err := sim.Run(context.Background(), s, &noted{run, all}, observers...); err != nil {
		t.Fatal(err)
	}
	if run.Tally().Deviated == 0 {
		t.Error("the search has never decided otherwise than its base")
	}

	f, err := sim.New(cfg, machine)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Follow(sim.Following{Works: true, Estimates: est}); err != nil {
		t.Fatal(err)
	}
	src, past = source()
	asked := search(src)
	var d sim.Decision
	for i := range all.facts {
		f.More(all.more[i])
		for k := range all.facts[i] {
			if _, err := f.Tell(&all.facts[i][k]); err != nil {
				t.Fatal(err)
			}
		}
		p, err := f.Look(all.at[i].Now)
		if err != nil {
			t.Fatal(err)
		}
		if past != nil {
			if err := past.Observe(f.View(), p); err != nil {
				t.Fatal(err)
			}
		}
		var got []sim.Decision
		if err := f.Ask(asked, &d, func(d *sim.Decision) error {
			c := *d
			c.GPUs = slices.Clone(d.GPUs)
			got = append(got, c)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		f.Forget()
		if !slices.EqualFunc(got, all.decided[i], func(a, b sim.Decision) bool {
			return a.Op == b.Op && a.Job == b.Job && slices.Equal(a.GPUs, b.GPUs)
		}) {
			t.Fatalf("at %v over facts: %+v, in the run: %+v", p.Now, got, all.decided[i])
		}
	}
}

// A search through the slots is asked about a cluster in the middle of its life.
func TestASearchThroughTheSlotsIsAsked(t *testing.T) {
	jobs := generated(t, 400, 3)
	e, f := environment(t, jobs, "history", 24), environment(t, jobs, "history", 24)
	actor := func(e *sched.Env) *rollout.Actor {
		a, err := rollout.NewActor(rollout.Setup{Config: small(16), Workers: 1}, "sjf", e)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	b := actor(f)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(context.Background(), env.Episode{Seed: 4, Window: 0}, ts); err != nil {
		t.Fatal(err)
	}
	// The state at the first decision, without the history that led there.
	v := e.View()
	x := sim.Present{Now: v.Now()}
	for _, list := range [][]sim.Job{v.Running(), v.Waiting()} {
		for _, j := range list {
			x.Jobs = append(x.Jobs,
				sim.PresentJob{Job: v.Trace(j), Runs: v.State(j) == sim.Running, Start: v.Started(j), GPUs: v.GPUs(j)})
		}
	}
	if err := f.Follow(sched.Following{Seed: e.State().Seed, Origin: e.Window().Origin}); err != nil {
		t.Fatal(err)
	}
	for _, fact := range x.Facts(nil) {
		if err := f.Tell(&fact); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Look(v.Now()); err != nil {
		t.Fatal(err)
	}
	shown := env.NewTimeStep(f.Spec())
	for range 12 {
		asks, err := f.Observe(shown)
		if err != nil {
			t.Fatal(err)
		}
		if !asks {
			break
		}
		got, err := b.Action(context.Background(), shown.Mask)
		if err != nil {
			t.Fatal(err)
		}
		if _, waits, err := f.Imagine(env.Action{Disc: []int32{got}}); err != nil || waits {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	f.Forget()
	if b.Tally().Rollouts == 0 {
		t.Error("nothing was searched")
	}
}
