package woa

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/listsched"
)

func rankSettings() map[string]Config {
	all := map[string]Config{}
	for _, g := range []string{"greedy", "policy"} {
		for _, h := range []string{"whales", "random", "leader"} {
			c := DefaultConfig()
			c.Space, c.Generator, c.Hopes, c.Whales, c.Iterations = "ranks", g, h, 8, 6
			all[g+" "+h] = c
		}
	}
	return all
}

func TestASearchOfRanksIsRepeatedByAnyNumberOfWorkers(t *testing.T) {
	q := drawn(t, 60, 12, 1)
	heft := listsched.New(q, listsched.Options{}).HEFT(true).Clone()
	for name, c := range rankSettings() {
		var want *Result
		for _, workers := range []int{1, 2, 5} {
			r, err := Search(ctx, q, c, []*dag.Plan{heft}, 7, workers, hooks())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if want == nil {
				want = r
			}
			if !slices.Equal(r.Plan.Start, want.Plan.Start) || !slices.Equal(r.Curve, want.Curve) {
				t.Errorf("%s: %d workers find %v, one %v", name, workers, r.Plan.Makespan, want.Plan.Makespan)
			}
		}
		if err := dag.Check(q, want.Plan, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		last := want.Curve[len(want.Curve)-1]
		if want.Plan.Makespan > last*(1+1e-12) || want.Curve[0] > want.Initial || want.Plan.Makespan > heft.Makespan {
			t.Errorf("%s: from %v by %v to %v; HEFT's is %v", name, want.Initial, want.Curve, want.Plan.Makespan, heft.Makespan)
		}
		if want.Plans != 8+6*7 {
			t.Errorf("%s: %d plans", name, want.Plans)
		}
		r, err := Search(ctx, q, c, nil, 7, 1, hooks())
		if err != nil {
			t.Fatal(err)
		}
		if err := dag.Check(q, r.Plan, true); err != nil {
			t.Errorf("%s from noise: %v", name, err)
		}
	}
}

// Whales in rank space find shorter plans than HEFT, and than as many noisy plans of HEFT, on graphs that no table
// reports.
func TestASearchOfRanksBeatsAsManyNoisyPlans(t *testing.T) {
	against := 0.0
	const graphs = 12
	for seed := range uint64(graphs) {
		q := drawn(t, 120, 10, 50+seed)
		l := listsched.New(q, listsched.Options{})
		heft := l.HEFT(true).Clone()
		c := DefaultConfig()
		c.Space, c.Whales, c.Iterations = "ranks", 10, 20
		r, err := Search(ctx, q, c, []*dag.Plan{heft}, seed, 2, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		noisy, err := l.NoisyHEFT(context.Background(), r.Plans, 0.1, rng.Stream(seed, "woa/test"))
		if err != nil {
			t.Fatal(err)
		}
		against += math.Log(r.Plan.Makespan/noisy.Makespan) / graphs
	}
	t.Logf("against noisy HEFT: %+.2f %%", 100*against)
	if against > -0.002 {
		t.Errorf("against noisy HEFT: %+.2f %%", 100*against)
	}
}

// The critical chain starts at the last task and ends at one that waits for nothing.
func TestTheChainOfAPlanFillsItsMakespan(t *testing.T) {
	for seed := range uint64(5) {
		q := drawn(t, 60, 5, seed)
		c := rankSettings()["greedy whales"]
		s := &search{cfg: c, q: q, n: 60, m: 5, order: q.Graph.Order(), rank: q.UpwardRanks(dag.Pairs, nil)}
		r := &rankSearch{search: s, sides: [2]side{{q, s.rank}, {q, s.rank}}}
		w, err := r.newWorker(Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		x := r.newWhale()
		if err := w.evaluate(ctx, x); err != nil {
			t.Fatal(err)
		}
		if heft := listsched.New(q, listsched.Options{}).HEFT(true).Makespan; x.makespan != heft {
			t.Errorf("without noise %v, HEFT's is %v", x.makespan, heft)
		}
		if f := x.plan.Finish[x.chain[0]]; f != x.makespan {
			t.Errorf("the first task of the chain ends at %v of %v", f, x.makespan)
		}
		for k, i := range x.chain {
			if k == len(x.chain)-1 {
				if x.plan.Start[i] > 1e-9 {
					t.Errorf("the chain ends at %v", x.plan.Start[i])
				}
			} else if j := x.chain[k+1]; x.plan.Finish[j] > x.plan.Start[i]+1e-9*x.makespan {
				t.Errorf("task %d, which ends at %v, holds up task %d, which starts at %v", j, x.plan.Finish[j], i, x.plan.Start[i])
			}
		}
	}
}

func TestLateLeavesOutTheEarliestEnds(t *testing.T) {
	inf := math.Inf(1)
	finish := []float64{5, inf, 3, 4, 3, 9}
	for skip, want := range []int32{2, 4, 3, 0} {
		if got := late(finish, skip); got != want {
			t.Errorf("%d left out: %d, want %d", skip, got, want)
		}
	}
	if got := late([]float64{inf, 7, inf}, 3); got != 1 {
		t.Errorf("one processor: %d", got)
	}
}

func TestASearchOfRanksStops(t *testing.T) {
	stop, cancel := context.WithCancel(ctx)
	cancel()
	for name, c := range rankSettings() {
		if _, err := Search(stop, drawn(t, 20, 3, 1), c, nil, 1, 2, hooks()); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := DefaultConfig()
	c.Space, c.Generator = "ranks", "direct"
	if c.Validate() == nil {
		t.Error("direct in rank space")
	}
}
