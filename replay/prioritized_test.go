package replay

import (
	"math"
	"math/rand/v2"
	"testing"

	"clustergym/env"

	"pgregory.net/rapid"
)

// Every node is exactly the sum of its children, and find agrees with a walk along the leaves.
func TestSumTreeEqualsItsLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 33).Draw(t, "leaves")
		tree := newSumTree(n)
		for k := rapid.IntRange(1, 200).Draw(t, "updates"); k > 0; k-- {
			v := rapid.Float64Range(0, 1e6).Draw(t, "value")
			if rapid.IntRange(0, 3).Draw(t, "zero") == 0 {
				v = 0
			}
			tree.set(rapid.IntRange(0, n-1).Draw(t, "leaf"), v)
		}
		var sum func(k int) float64
		sum = func(k int) float64 {
			if k >= tree.leaves {
				return tree.node[k]
			}
			return sum(2*k) + sum(2*k+1)
		}
		for k := 1; k < tree.leaves; k++ {
			if tree.node[k] != sum(k) {
				t.Fatalf("node %d is %v, its leaves sum to %v", k, tree.node[k], sum(k))
			}
		}
		if tree.total() == 0 {
			return
		}
		x := rapid.Float64Range(0, 1).Draw(t, "share") * tree.total()
		got := tree.find(x)
		if tree.leaf(got) == 0 {
			t.Fatalf("found leaf %d, which is 0", got)
		}
		before := 0.0
		for i := 0; i < got; i++ {
			before += tree.leaf(i)
		}
		slack := 1e-12 * tree.total() // the walk rounds differently from the tree
		if x < before-slack || x > before+tree.leaf(got)+slack {
			t.Fatalf("%v fell in leaf %d, which covers [%v, %v)", x, got, before, before+tree.leaf(got))
		}
	})
}

func newPrioritized(t *testing.T, capacity, n int, alpha float64) *Prioritized {
	t.Helper()
	p, err := NewPrioritized(Config{Capacity: capacity, NStep: 1, Gamma: 0.5}, PriorityConfig{Alpha: alpha, Eps: 0.5},
		testSpec(), 1)
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]line, n)
	for i := range lines {
		lines[i].kind = env.Mid
	}
	script(t, p.Add, lines)
	return p
}

// Worked by hand: errors 0.5, 1.5, 3.5 and 7.5 with eps 0.5 and alpha 0.5 have priorities 1, √2, 2 and √8.
func TestPrioritiesByHand(t *testing.T) {
	p := newPrioritized(t, 4, 4, 0.5)
	for s := 0; s < 4; s++ {
		if p.tree.leaf(s) != 1 {
			t.Errorf("slot %d begins at %v, want 1", s, p.tree.leaf(s))
		}
	}
	if err := p.Update([]int{0, 1, 2, 3}, []float32{0.5, -1.5, 3.5, -7.5}); err != nil {
		t.Fatal(err)
	}
	want := []float64{1, math.Sqrt2, 2, math.Sqrt(8)}
	total := 0.0
	for s, w := range want {
		total += w
		if math.Abs(p.tree.leaf(s)-w) > 1e-12 {
			t.Errorf("slot %d has priority %v, want %v", s, p.tree.leaf(s), w)
		}
	}

	// Transitions are drawn in proportion, and weighted by (N·P)^-beta over the batch's largest.
	rng, dst := rand.New(rand.NewPCG(5, 6)), NewBatch(testSpec(), 4)
	count := make([]float64, 4)
	const draws = 20_000
	for k := 0; k < draws; k++ {
		if err := p.Sample(rng, 0.7, dst); err != nil {
			t.Fatal(err)
		}
		top := 0.0
		for _, s := range dst.Index {
			count[s]++
			top = max(top, math.Pow(4*want[s]/total, -0.7))
		}
		for i, s := range dst.Index {
			if w := math.Pow(4*want[s]/total, -0.7) / top; math.Abs(float64(dst.Weight[i])-w) > 1e-6 {
				t.Fatalf("weight of slot %d is %v, want %v", s, dst.Weight[i], w)
			}
		}
	}
	for s, c := range count {
		if got, w := c/(4*draws), want[s]/total; math.Abs(got-w) > 0.005 {
			t.Errorf("slot %d was drawn with frequency %.4f, want %.4f", s, got, w)
		}
	}

	// A new transition replaces the oldest, with the largest priority so far.
	script(t, p.Add, []line{{env.Mid, 1, 0}})
	if got := p.tree.leaf(0); math.Abs(got-math.Sqrt(8)) > 1e-12 {
		t.Errorf("the new transition has priority %v, want √8", got)
	}
}

func TestAlphaZeroIsUniformWithWeightsOne(t *testing.T) {
	p := newPrioritized(t, 8, 8, 0)
	if err := p.Update([]int{1, 2}, []float32{100, 0}); err != nil {
		t.Fatal(err)
	}
	dst := NewBatch(testSpec(), 8)
	if err := p.Sample(rand.New(rand.NewPCG(1, 1)), 1, dst); err != nil {
		t.Fatal(err)
	}
	for i, s := range dst.Index { // eight equal shares, one transition in each
		if s != i || dst.Weight[i] != 1 {
			t.Errorf("draw %d is slot %d with weight %v, want slot %d with 1", i, s, dst.Weight[i], i)
		}
	}
}

func TestUpdateRefusesWhatCannotBe(t *testing.T) {
	p := newPrioritized(t, 8, 4, 0.6)
	before := append([]float64(nil), p.tree.node...)
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		index []int
		delta []float32
	}{
		"lengths":    {[]int{0, 1}, []float32{1}},
		"empty slot": {[]int{0, 4}, []float32{1, 1}},
		"negative":   {[]int{0, -1}, []float32{1, 1}},
		"NaN":        {[]int{0, 1}, []float32{1, nan}},
	} {
		if err := p.Update(c.index, c.delta); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for k, v := range p.tree.node {
		if v != before[k] {
			t.Fatalf("node %d went from %v to %v", k, before[k], v)
		}
	}
	for _, beta := range []float64{-0.1, 1.1, math.NaN()} {
		if err := p.Sample(rand.New(rand.NewPCG(1, 1)), beta, NewBatch(testSpec(), 2)); err == nil {
			t.Errorf("beta %v: no error", beta)
		}
	}
}
