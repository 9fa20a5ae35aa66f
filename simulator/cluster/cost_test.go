package cluster_test

import (
	"math"
	"math/bits"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
)

// The table of best and worst costs that TopDRL's precursor gives for 2 racks of 4 machines of 4 GPUs.
func TestCostTableOfThePrecursor(t *testing.T) {
	c := topdrl(t)
	for i, want := range [][2]string{{"0.775", "0.775"}, {"0.8", "1.55"}, {"0.825", "1.825"}, {"0.85", "2.1"},
		{"1.125", "2.375"}, {"1.15", "2.65"}, {"1.175", "2.925"}, {"1.2", "3.2"}} {
		three := func(v float64) string { return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64) }
		best, worst := c.BestCost(i+1), c.WorstCost(i+1)
		if three(best) != want[0] || three(worst) != want[1] || math.Abs(best-mustFloat(want[0])) > 1e-15 ||
			math.Abs(worst-mustFloat(want[1])) > 1e-15 {
			t.Errorf("%d GPUs: best %v, worst %v, want %s and %s", i+1, best, worst, want[0], want[1])
		}
	}
}

func mustFloat(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(err)
	}
	return v
}

func TestCostByHand(t *testing.T) {
	c := topdrl(t)
	for _, x := range []struct {
		gpus []cluster.GPU
		want float64
	}{
		{[]cluster.GPU{31}, 0.775},
		{[]cluster.GPU{0, 3}, 0.8},
		{[]cluster.GPU{0, 4}, 1.05},           // two machines of one rack
		{[]cluster.GPU{0, 16}, 1.55},          // two racks
		{[]cluster.GPU{15, 16, 17, 0}, 1.85},  // racks 2, machines 3
		{[]cluster.GPU{4, 5, 6, 7, 8}, 1.125}, // 1, 2
		{nil, 1},
	} {
		for range 3 { // marks of an earlier call must not count
			if got := c.Cost(x.gpus); math.Abs(got-x.want) > 1e-15 {
				t.Errorf("Cost(%v) = %v, want %v", x.gpus, got, x.want)
			}
		}
	}
	pool := mustNew(t, "pool:4", cluster.Spec{})
	if pool.Cost(nil) != 1 || pool.BestCost(3) != 1 || pool.WorstCost(4) != 1 {
		t.Error("on a counter every cost is 1")
	}
}

// Every set of GPUs of small random clusters costs between BestCost and WorstCost, and both are attained.
func TestCostBoundsAgainstAllSubsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := cluster.Spec{}
		left := 11
		for range rapid.IntRange(1, 3).Draw(t, "racks") {
			var r cluster.RackSpec
			for range rapid.IntRange(1, 4).Draw(t, "nodes") {
				n := rapid.IntRange(0, min(4, left)).Draw(t, "gpus")
				left -= n
				r.Nodes = append(r.Nodes, cluster.NodeSpec{GPUs: n})
			}
			spec.Racks = append(spec.Racks, r)
		}
		if left == 11 {
			spec.Racks[0].Nodes[0].GPUs = 1
		}
		c, err := cluster.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		best, worst := make([]float64, c.GPUs()+1), make([]float64, c.GPUs()+1)
		var gpus []cluster.GPU
		for set := uint(1); set < 1<<c.GPUs(); set++ {
			gpus = gpus[:0]
			for s := set; s != 0; s &= s - 1 {
				gpus = append(gpus, cluster.GPU(bits.TrailingZeros(s)))
			}
			n, v := len(gpus), c.Cost(gpus)
			if best[n] == 0 || v < best[n] {
				best[n] = v
			}
			worst[n] = max(worst[n], v)
		}
		for n := c.GPUs(); n >= 1; n-- { // the table must be the same downwards and upwards
			if c.BestCost(n) != best[n] || c.WorstCost(n) != worst[n] {
				t.Fatalf("%d of %d GPUs: best %v, worst %v; enumeration finds %v and %v", n, c.GPUs(), c.BestCost(n),
					c.WorstCost(n), best[n], worst[n])
			}
		}
	})
}

// The table grows on demand; growing must not change earlier values.
func TestCostTableGrows(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Count: 4,
		Nodes: []cluster.NodeSpec{{Count: 8, GPUs: 8}, {Count: 3, GPUs: 2}}}}}
	up, down := mustNew(t, "", spec), mustNew(t, "", spec)
	down.BestCost(down.GPUs())
	for n := 1; n <= up.GPUs(); n++ {
		if up.BestCost(n) != down.BestCost(n) || up.WorstCost(n) != down.WorstCost(n) {
			t.Fatalf("%d GPUs: %v and %v, then %v and %v", n, up.BestCost(n), up.WorstCost(n), down.BestCost(n),
				down.WorstCost(n))
		}
		if n > 1 && up.BestCost(n) < up.BestCost(n-1) {
			t.Fatalf("%d GPUs cost less than %d", n, n-1)
		}
	}
	// 64 GPUs fill a rack's 8 large nodes; one more needs a ninth node, a small one of the same rack.
	if got, want := up.BestCost(64), 0.5+8*0.25+64.0/40; got != want {
		t.Errorf("64 GPUs: %v, want %v", got, want)
	}
	if got, want := up.BestCost(65), 0.5+9*0.25+65.0/40; got != want {
		t.Errorf("65 GPUs: %v, want %v", got, want)
	}
	// All 70 GPUs of a rack and one of a second rack.
	if got, want := up.BestCost(71), 2*0.5+9*0.25+71.0/40; got != want {
		t.Errorf("71 GPUs: %v, want %v (two racks, nine large nodes)", got, want)
	}
}
