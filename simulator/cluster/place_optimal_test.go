package cluster_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
)

// least tries every set of free GPUs of the gang's size.
func least(c *cluster.Cluster, r *cluster.Request) float64 {
	best := math.Inf(1)
	var set []cluster.GPU
	var try func(g cluster.GPU)
	try = func(g cluster.GPU) {
		if len(set) == r.GPUs {
			if c.Allocate(r, set) == nil { // fails if cores or memory do not suffice
				c.Release(r, set)
				best = min(best, c.Cost(set))
			}
			return
		}
		if int(g) == c.GPUs() {
			return
		}
		if c.GPUFree(g) >= r.Milli {
			set = append(set, g)
			try(g + 1)
			set = set[:len(set)-1]
		}
		try(g + 1)
	}
	try(0)
	return best
}

func TestOptimalAgainstEverySet(t *testing.T) {
	compared, many := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c, err := cluster.New(drawSpec(t))
		if err != nil {
			t.Fatal(err)
		}
		if c.GPUs() > 14 {
			return
		}
		drawn := drawUse(t, c)
		for gang := range 7 {
			r := cluster.Request{GPUs: gang, Milli: 1000}
			if gang == 0 {
				r = drawn
			}
			gpus, ok := rule2(t, "optimal").Place(c, &r, nil)
			if !ok || r.GPUs == 0 {
				continue
			}
			if got, want := c.Cost(gpus), least(c, &r); math.Abs(got-want) > 1e-12 {
				t.Fatalf("%v costs %v, the least is %v", gpus, got, want)
			}
			if compared++; r.GPUs > 1 {
				many++
			}
		}
	})
	if compared < 10 || many < 5 {
		t.Errorf("%d placements were compared, %d of gangs", compared, many)
	}
}

func rule2(t *rapid.T, name string) cluster.Placement {
	p, err := cluster.NewPlacement(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// On random states of 2 racks of 4 nodes of 4 GPUs no rule is cheaper than optimal; the mean gaps are printed.
func TestGapToOptimal(t *testing.T) {
	names := []string{"optimal", "closest-a", "closest-b", "closest-c", "best-fit", "rack", "pack", "first-fit",
		"worst-fit", "random"}
	gap, worse, n := map[string]float64{}, map[string]int{}, 0
	c := topdrl(t)
	one := cluster.Request{GPUs: 1, Milli: 1000}
	random := rand.New(rand.NewPCG(8, 8))
	for range 2000 {
		c.Reset()
		for node := range 8 {
			from, to := c.NodeGPUs(node)
			for g := from + cluster.GPU(random.IntN(5)); g < to; g++ {
				if err := c.Allocate(&one, []cluster.GPU{g}); err != nil {
					t.Fatal(err)
				}
			}
		}
		r := cluster.Request{GPUs: 1 + random.IntN(8), Milli: 1000}
		if !c.Fits(&r) {
			continue
		}
		n++
		best := 0.0
		for _, name := range names {
			gpus, ok := rule(t, name).Place(c, &r, nil)
			if !ok {
				t.Fatalf("%s refuses %d GPUs", name, r.GPUs)
			}
			cost := c.Cost(gpus)
			if name == "optimal" {
				best = cost
			}
			if cost < best-1e-12 {
				t.Fatalf("%s: %v costs %v, optimal says %v", name, gpus, cost, best)
			}
			if gap[name] += cost/best - 1; cost > best+1e-12 {
				worse[name]++
			}
		}
	}
	line := fmt.Sprintf("mean gap over %d states:", n)
	for _, name := range names[1:] {
		line += fmt.Sprintf(" %s %.2f %% (worse in %d)", name, 100*gap[name]/float64(n), worse[name])
	}
	t.Log(line)
	if n < 1000 || gap["random"] == 0 {
		t.Error("the states say nothing")
	}
}
