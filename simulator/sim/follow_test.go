package sim_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/internal/testseed"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// everything describes all that v shows of a run, but for whether it is over.
func everything(v *sim.View, p *sim.Point) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %v %v|%v %v|%d %d %v %v|%d %d %d\n", v.Now(), *p, v.DecisionEvents(), v.Waiting(), v.Running(),
		v.Arrived(), v.Ended(), v.Arriving(),
		v.CanWait(), v.Cluster().FreeMilli(), v.Cluster().Free(), v.Cluster().DownGPUs())
	for _, list := range [][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			fmt.Fprintf(&b, "%d %s %d %v %v %v %v|%v %v %v %v|%v %v %v %v|%v %d %d %d %d %v\n", j, v.Trace(j).ID, v.Pos(j),
				v.State(j), v.GPUs(j), *v.Request(j), v.Asked(j),
				v.Left(j), v.Rate(j), v.Ran(j), v.GPUTime(j), v.Started(j), v.FirstStart(j), v.Decided(j), v.Fits(j),
				v.Lost(j), v.Preemptions(j), v.Failures(j), v.Migrations(j), v.Resizes(j), v.Forecast(j))
			if v.State(j) == sim.Running {
				fmt.Fprintln(&b, v.Finished(j))
			}
		}
	}
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == sim.Submit {
			user, vc := v.Past(e.Job)
			fmt.Fprintln(&b, e.Job, user, vc)
		}
	}
	if c := v.Cluster(); !c.Pool() {
		for g := range c.GPUs() {
			fmt.Fprint(&b, c.GPUFree(cluster.GPU(g)), " ")
		}
	}
	return b.String()
}

// told is what a run has told: facts, then either the point at which they are seen or a decision of an open point.
type told struct {
	facts []sim.Fact
	look  bool
	at    time.Duration
	more  bool
	shows string
}

// recorder writes down a run for a simulator that follows.
type recorder struct {
	told []told
	seen int // events of the current point's decisions that are written down
}

func (r *recorder) facts(v *sim.View, events []sim.Event) (facts []sim.Fact) {
	for i := range events {
		f := v.Fact(&events[i])
		f.GPUs = slices.Clone(f.GPUs)
		facts = append(facts, f)
	}
	return facts
}

func (r *recorder) point(v *sim.View, p *sim.Point) {
	r.told = append(r.told,
		told{facts: r.facts(v, p.Events[r.seen:]), look: true, at: p.Now, more: v.Arriving(), shows: everything(v, p)})
	r.seen = 0
}

// decision writes down what has been decided since the last call.
func (r *recorder) decision(v *sim.View, p *sim.Point) {
	events := v.DecisionEvents()
	if len(events) == r.seen {
		return
	}
	r.told = append(r.told, told{facts: r.facts(v, events[r.seen:]), shows: everything(v, p), more: v.Arriving()})
	r.seen = len(events)
}

// record plays s with decide and writes it down. decide makes one decision.
func record(t fatal, s *sim.Simulator, decide func(v *sim.View, p *sim.Point, d *sim.Decision) error) *recorder {
	t.Helper()
	r, v := new(recorder), s.View()
	for {
		p, err := s.Advance(ctx)
		if ended(t, err) {
			return r
		}
		r.point(v, p)
		for !v.Over() {
			var d sim.Decision
			if err := decide(v, p, &d); err != nil {
				t.Fatal(err)
			}
			if err := s.Apply(&d); err != nil && !errors.Is(err, sim.ErrDecision) {
				t.Fatal(err)
			} else if err == nil && d.Op == sim.Wait {
				break
			}
			r.decision(v, p)
		}
	}
}

// follow tells s what was recorded. between is called whenever s shows what the run has shown.
func follow(t fatal, s *sim.Simulator, r *recorder, between func(p *sim.Point, look bool)) {
	t.Helper()
	var p *sim.Point
	for i, x := range r.told {
		s.More(x.more)
		for k := range x.facts {
			open, err := s.Tell(&x.facts[k])
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			if open == x.look {
				t.Fatalf("step %d: %v leaves the point open: %v", i, &x.facts[k], open)
			}
		}
		if x.look {
			var err error
			if p, err = s.Look(x.at); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		if err := s.CheckInvariants(); err != nil {
			t.Fatal(err)
		}
		if got := everything(s.View(), p); got != x.shows {
			t.Fatalf("step %d (%v): the run has shown\n%s\nand the simulator that follows shows\n%s", i, x.facts, x.shows, got)
		}
		if between != nil {
			between(p, x.look)
		}
	}
}

// predictors are those of test number k; nil = none.
func predictors(k uint64, r *rand.Rand) predict.Maker {
	switch k % 4 {
	case 1:
		return history.NewArchive(owned(r, mixed(r, 40, 4, second)))
	case 2:
		return history.NewArchive(nil)
	case 3:
		return gbdt.New(1)
	}
	return nil
}

// A simulator that is told what happened in a run shows the same as the run at every point and after every decision:
// with stops, moves, resizes, failures, checkpoints, interference, forecasts and any communication. What is imagined in
// between changes nothing, nor do facts that cannot be.
func TestFactsShowWhatTheRunHasShown(t *testing.T) {
	raced.Alone(t)
	for k := range uint64(48) {
		seed := testseed.Or(41) + k
		r := rand.New(rand.NewPCG(seed, 41))
		spec, cfg := richSpec(r), richConfig(r, second)
		cfg.Predictor = predictors(k, r)
		if r.IntN(4) == 0 {
			spec, cfg.Failures.MTBF = short(t, "pool:9"), 0
		}
		if r.IntN(4) == 0 {
			cfg.Horizon = time.Duration(1+r.IntN(500)) * second
		}
		jobs := owned(r, rich(r, 40, 4, second))
		origin := time.Duration(r.IntN(100)) * second
		s := start(t, cfg, spec, nil)
		stream := new(traces.Slice)
		stream.ResetAt(jobs, origin)
		if err := s.Reset(stream); err != nil {
			t.Fatal(err)
		}
		c := newChaos(t, r)
		c.moves = true
		rec := record(t, s, func(v *sim.View, _ *sim.Point, d *sim.Decision) error { c.one(v, d); return nil })

		cfg.Horizon = 0
		f := start(t, cfg, spec, nil)
		for round := range 2 { // the second time the simulator has been used
			if err := f.Follow(sim.Following{Origin: origin, Works: true}); err != nil {
				t.Fatal(err)
			}
			dream := newChaos(t, r)
			dream.moves = true
			follow(t, f, rec, func(p *sim.Point, _ bool) {
				if round == 0 {
					return
				}
				imagined(t, f, dream, p)
				refused(t, f, r)
			})
		}
	}
}

// imagined makes random decisions in imagination, and forgets them.
func imagined(t fatal, s *sim.Simulator, c *chaos, p *sim.Point) {
	t.Helper()
	before := everything(s.View(), p)
	saved := s.AppendSnapshot(nil)
	if err := s.Imagine(); err != nil {
		t.Fatal(err)
	}
	for range c.r.IntN(6) {
		var d sim.Decision
		c.one(s.View(), &d)
		if err := s.Apply(&d); err != nil && !errors.Is(err, sim.ErrDecision) {
			t.Fatal(err)
		}
		if err := s.CheckInvariants(); err != nil {
			t.Fatal(err)
		}
		if d.Op == sim.Wait {
			break
		}
	}
	s.Forget()
	if err := s.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	if after := everything(s.View(), p); after != before {
		t.Fatalf("before:\n%s\nafter an imagination:\n%s", before, after)
	}
	if !bytes.Equal(saved, s.AppendSnapshot(nil)) {
		t.Fatal("an imagination has changed what is not shown")
	}
}

// refused tells facts that cannot be.
func refused(t fatal, s *sim.Simulator, r *rand.Rand) {
	t.Helper()
	v := s.View()
	one := func(list []sim.Job) string {
		if len(list) == 0 {
			return "nobody"
		}
		return v.Trace(list[r.IntN(len(list))]).ID
	}
	now := v.Now()
	j := job("new", now+second, second, 1)
	facts := []sim.Fact{
		{At: now - 1, Kind: sim.Timer},
		{At: now, Kind: sim.Submit},
		{At: now, Kind: sim.Submit, Job: &j},
		{At: now, Kind: sim.Start, ID: one(v.Running())},
		{At: now, Kind: sim.Start, ID: one(v.Waiting()), GPUs: []cluster.GPU{-100, 1 << 20}, N: 1 << 20},
		{At: now, Kind: sim.Finish, ID: one(v.Waiting())},
		{At: now, Kind: sim.Fail, ID: "nobody"},
		{At: now, Kind: sim.Preempt, ID: one(v.Waiting())},
		{At: now, Kind: sim.Migrate, ID: one(v.Running()), GPUs: []cluster.GPU{0, 0}, N: 1 << 20},
		{At: now, Kind: sim.Resize, ID: one(v.Running()), GPUs: []cluster.GPU{0, 0}, N: 1 << 20},
		{At: now, Kind: sim.Drop, ID: one(v.Running())},
		{At: now, Kind: sim.NodeFail, Node: -1},
		{At: now, Kind: sim.NodeRecover, Node: 1 << 20},
		{At: now, Kind: sim.EventKind(77), ID: one(v.Running())},
		{At: traces.MaxTime + 1, Kind: sim.Timer},
	}
	if w := v.Waiting(); len(w) > 0 {
		again := *v.Trace(w[0])
		facts = append(facts, sim.Fact{At: now, Kind: sim.Submit, Job: &again})
	}
	f := &facts[r.IntN(len(facts))]
	before := s.AppendSnapshot(nil)
	_, err := s.Tell(f)
	if err == nil || !errors.Is(err, sim.ErrFact) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("%+v: %v", f, err)
	}
	if !bytes.Equal(before, s.AppendSnapshot(nil)) {
		t.Fatalf("%+v was refused and has changed the run", f)
	}
	if d := (sim.Decision{Until: now + 1}); !errors.Is(s.Apply(&d), sim.ErrFollows) {
		t.Fatal("a decision was carried out")
	}
	if _, err := s.Advance(ctx); !errors.Is(err, sim.ErrFollows) {
		t.Fatal(err)
	}
}

// The facts of every heuristic's run show what the run has shown. A heuristic that looks at the state alone and is
// asked at each point, in imagination, decides what it has decided in the run.
func TestHeuristicsAreAskedOverFacts(t *testing.T) {
	raced.Alone(t)
	asked := 0
	for i, order := range schedulers.Orders() {
		if order == "exact" { // it plans with the jobs of a whole run
			continue
		}
		for _, est := range []sim.Estimates{{Mode: sim.EstimateHistory}, {Mode: sim.EstimateExact}} {
			seed := testseed.Or(42) + uint64(i)
			r := rand.New(rand.NewPCG(seed, 42))
			h := schedulers.Passing(order)
			h.Estimates = est
			if h.Validate() != nil {
				h = schedulers.DefaultConfig()
				h.Order, h.Estimates = order, est
			}
			policy, err := schedulers.New(h)
			if err != nil {
				t.Fatal(err)
			}
			cfg := sim.DefaultConfig()
			cfg.Predictor = history.NewArchive(owned(r, mixed(r, 40, 4, second)))
			cfg.Checkpoint, cfg.Failures = 20*second, sim.Failures{MTBF: 900 * second, MTTR: 50 * second}
			spec := mixedSpec(r)
			s := start(t, cfg, spec, owned(r, mixed(r, 50, 4, second)))
			policy.Reset(s.View())
			var decided [][]sim.Decision // by point
			open := false
			rec := record(t, s, func(v *sim.View, p *sim.Point, d *sim.Decision) error {
				if !open {
					decided, open = append(decided, nil), true
				}
				err := policy.Decide(v, p, d)
				if d.Op != sim.Wait {
					c := *d
					c.GPUs = slices.Clone(d.GPUs)
					decided[len(decided)-1] = append(decided[len(decided)-1], c)
				} else {
					open = false
				}
				return err
			})
			f := start(t, cfg, spec, nil)
			if err := f.Follow(sim.Following{Works: true, Estimates: est}); err != nil {
				t.Fatal(err)
			}
			points, ask := 0, h.Forgets() == ""
			var d sim.Decision
			follow(t, f, rec, func(p *sim.Point, look bool) {
				if !look || points >= len(decided) {
					return
				}
				want := decided[points]
				points++
				if !ask {
					return
				}
				got := 0
				asked += len(want)
				if err := f.Ask(policy, &d, func(d *sim.Decision) error {
					if got >= len(want) || d.Op != want[got].Op || d.Job != want[got].Job || !slices.Equal(d.GPUs, want[got].GPUs) {
						return fmt.Errorf("decision %d at %v is %+v, the run's were %+v", got, p.Now, *d, want)
					}
					got++
					return nil
				}); err != nil {
					t.Fatalf("%s %s: %v", order, est, err)
				}
				f.Forget()
				if got != len(want) {
					t.Fatalf("%s %s: %d decisions at %v, the run's were %+v", order, est, got, p.Now, want)
				}
			})
		}
	}
	if asked < 500 {
		t.Errorf("only %d decisions were asked again", asked)
	}
}
