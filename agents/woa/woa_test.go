package woa

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/synth"
)

var ctx = context.Background()

func drawn(tb testing.TB, tasks, gpus int, seed uint64) *dag.Problem {
	tb.Helper()
	src := rng.Stream(seed, "woa/test")
	p, err := synth.Platform(synth.PlatformConfig{GPUs: gpus, Speeds: "spread", Links: "racks", Bandwidth: 2000}, src)
	if err != nil {
		tb.Fatal(err)
	}
	c := synth.DefaultConfig()
	c.Tasks = tasks
	q, err := synth.Problem(c, p, "drawn", src)
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

// first is a policy that takes the first legal slot.
type first struct{}

func (first) Act(_ context.Context, b *env.Batch, dst *env.Actions, _ []*rand.Rand) error {
	for i := range b.N {
		dst.Disc[i] = int32(slices.Index(b.Mask[i*len(b.Mask)/b.N:(i+1)*len(b.Mask)/b.N], true))
	}
	return nil
}

func hooks() Hooks { return Hooks{Policy: func() (agents.Policy, error) { return first{}, nil }} }

func settings() map[string]Config {
	all := map[string]Config{}
	for _, g := range []string{"direct", "greedy", "policy"} {
		for _, p := range []string{"final", "prefix"} {
			c := DefaultConfig()
			c.Generator, c.Position, c.Whales, c.Iterations = g, p, 8, 6
			all[g+" "+p] = c
			c.Order, c.Insert, c.Moves = "index", false, 10
			all[g+" "+p+" with moves, without gaps"] = c
		}
	}
	return all
}

func TestWorkersChangeNothing(t *testing.T) {
	q := drawn(t, 60, 12, 1)
	for name, c := range settings() {
		var want *Result
		for _, workers := range []int{1, 2, 5} {
			r, err := Search(ctx, q, c, nil, 7, workers, hooks())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if want == nil {
				want = r
			}
			if fmt.Sprintf("%+v %+v", r.Plan, r.Curve) != fmt.Sprintf("%+v %+v", want.Plan, want.Curve) {
				t.Errorf("%s: %d workers find %v, one %v", name, workers, r.Plan.Makespan, want.Plan.Makespan)
			}
		}
		if err := dag.Check(q, want.Plan, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want.Plan.Makespan > want.Curve[len(want.Curve)-1] || want.Curve[0] > want.Initial ||
			!slices.IsSortedFunc(want.Curve, func(a, b float64) int {
				switch {
				case a > b:
					return -1
				case a < b:
					return 1
				}
				return 0
			}) {
			t.Errorf("%s: the leader gets worse: from %v by %v to %v", name, want.Initial, want.Curve, want.Plan.Makespan)
		}
		other, err := Search(ctx, q, c, nil, 8, 1, hooks())
		if err != nil {
			t.Fatal(err)
		}
		if other.Initial == want.Initial {
			t.Errorf("%s: another seed begins with the same plans", name)
		}
	}
}

func TestASearchIsNeverWorseThanItsSeeds(t *testing.T) {
	for seed := range uint64(5) {
		q := drawn(t, 40, 6, seed)
		b := dagplace.NewBuilder(q, dag.SortedOrder(q.Graph, q.UpwardRanks(dag.Pairs, nil), nil), true)
		for b.Task() >= 0 {
			b.Place(b.Earliest())
		}
		for name, c := range settings() {
			r, err := Search(ctx, q, c, []*dag.Plan{b.Plan()}, seed, 1, hooks())
			if err != nil {
				t.Fatal(err)
			}
			if r.Plan.Makespan > b.Makespan() {
				t.Errorf("%s: %v from %v", name, r.Plan.Makespan, b.Makespan())
			}
			if err := dag.Check(q, r.Plan, true); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestEverySearchImproves(t *testing.T) {
	q := drawn(t, 60, 10, 3)
	for _, c := range []struct{ generator, position string }{{"direct", "final"}, {"greedy", "prefix"}} {
		cfg := DefaultConfig()
		cfg.Generator, cfg.Position, cfg.Iterations = c.generator, c.position, 60
		r, err := Search(ctx, q, cfg, nil, 1, 2, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %v to %v", c.generator, r.Initial, r.Plan.Makespan)
		if r.Plan.Makespan > 0.95*r.Initial || r.Plans != 30+60*29 {
			t.Errorf("%s: %v to %v with %d plans", c.generator, r.Initial, r.Plan.Makespan, r.Plans)
		}
	}
}

// Three tasks, two processors of speed 1 and 2: tasks go where loads come nearest to hopes, worked by hand.
func TestTheGreedyGeneratorByHand(t *testing.T) {
	g, err := dag.NewGraph("g", []dag.Task{{ID: "a", Work: 4}, {ID: "b", Work: 4}, {ID: "c", Work: 4}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dag.NewPlatform([]dag.Processor{{ID: "0", Speed: 1}, {ID: "1", Speed: 2}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	q, err := dag.NewProblem(g, p)
	if err != nil {
		t.Fatal(err)
	}
	c := DefaultConfig()
	s := &search{cfg: c, q: q, n: 3, m: 2, order: q.Graph.Order(), rank: q.UpwardRanks(dag.Pairs, nil)}
	w, err := s.newWorker(Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		hope []float64
		want []int32
	}{
		{[]float64{0, 0, 0}, []int32{1, 0, 1}},  // 2 or 4; then 4 or 4: the first; then 8 or 4
		{[]float64{9, 9, 9}, []int32{0, 0, 0}},  // 4 or 2; 8 or 2; 12 or 2: 3 from 9 beats 7
		{[]float64{3, 4, 5}, []int32{0, 1, 1}},  // 4 or 2, a tie; then 8 or 2: 2 is nearer to 4; then 8 or 4
		{[]float64{-5, 2, 6}, []int32{1, 0, 0}}, // then 4 or 4; then 8 or 4, both 2 away
	} {
		proc := make([]int32, 3)
		copy(w.hope, x.hope)
		w.greedy(proc)
		if !slices.Equal(proc, x.want) {
			t.Errorf("hopes %v: %v, want %v", x.hope, proc, x.want)
		}
	}
}

func TestSearchesStopWhenAsked(t *testing.T) {
	q := drawn(t, 50, 5, 1)
	for name, c := range settings() {
		stop, cancel := context.WithCancel(ctx)
		h := hooks()
		calls := 0
		h.Progress = func(share, makespan float64) {
			calls++
			if !(share > 0 && share <= 1) || !(makespan > 0) {
				t.Errorf("%s: progress %v, %v", name, share, makespan)
			}
			cancel()
		}
		if _, err := Search(stop, q, c, nil, 1, 2, h); !errors.Is(err, context.Canceled) || calls != 1 {
			t.Errorf("%s: %v after %d calls", name, err, calls)
		}
		cancel()
	}
	if _, err := Search(ctx, q, Config{}, nil, 1, 1, Hooks{}); err == nil || len(strings.Split(err.Error(), "\n")) != 8 {
		t.Errorf("%v", err)
	}
	c := DefaultConfig()
	c.Generator = "policy"
	if _, err := Search(ctx, q, c, nil, 1, 1, Hooks{}); err == nil {
		t.Error("a generator without a policy")
	}
}

func TestCriticalTasksAreOnTheChain(t *testing.T) {
	q := drawn(t, 60, 5, 2)
	c := DefaultConfig()
	c.Moves = 1
	s := &search{cfg: c, q: q, n: 60, m: 5, order: q.Graph.Order(), rank: q.UpwardRanks(dag.Pairs, nil)}
	w, err := s.newWorker(Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	src := rng.Stream(1, "woa/test")
	proc := make([]int32, 60)
	for i := range proc {
		proc[i] = int32(src.IntN(5))
	}
	makespan := w.moves.Makespan(proc)
	f := w.moves.Finish()
	for range 50 {
		at := w.critical(w.moves, src)
		if f[at] > makespan {
			t.Fatal("a task behind the end")
		}
		if b := w.moves.Blocker(at); b >= 0 {
			wait := f[at] - q.Exec(at, proc[at])
			if math.Abs(f[b]-wait) > 1e-9 && f[b] > wait {
				t.Errorf("task %d waits until %v for one that ends at %v", at, wait, f[b])
			}
		}
	}
}
