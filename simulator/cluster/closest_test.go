package cluster_test

import (
	"fmt"
	"testing"

	"clustergym/simulator/cluster"
)

// All cases use 2 racks of 4 machines of 4 GPUs; free is by machine.
func TestClosestByHand(t *testing.T) {
	for _, x := range []struct {
		rule string
		free []int
		gang int
		want string
		why  string
	}{
		{"closest-a", []int{4, 4, 4, 4, 4, 4, 4, 4}, 6, "[4 on 0 2 on 1]", "the first machine, then its neighbours"},
		{"closest-a", []int{0, 1, 0, 4, 4, 4, 4, 4}, 3, "[1 on 1 2 on 3]",
			"the first free GPU is the anchor, however lonely"},
		{"closest-a", []int{0, 0, 0, 1, 4, 4, 0, 0}, 6, "[1 on 3 4 on 4 1 on 5]", "then the other rack"},
		{"closest-a", []int{0, 0, 0, 0, 0, 2, 0, 1}, 1, "[1 on 5]", "lowest number"},

		{"closest-b", []int{4, 4, 4, 4, 4, 4, 4, 4}, 8, "[4 on 0 4 on 1]", "an empty cluster: ties go to the lowest"},
		{"closest-b", []int{1, 0, 4, 0, 2, 3, 2, 0}, 5, "[3 on 5 2 on 4]",
			"above a machine: rack with most free (7), its freest machine"},
		{"closest-b", []int{4, 3, 0, 0, 4, 4, 4, 0}, 2, "[2 on 1]",
			"up to a machine: rack with fewest free (7), fullest machine that holds it"},
		{"closest-b", []int{1, 1, 1, 0, 4, 3, 4, 4}, 3, "[3 on 5]",
			"no machine of that rack holds it: the same in the rack with most free"},
		{"closest-b", []int{1, 1, 1, 0, 2, 2, 1, 1}, 3, "[2 on 4 1 on 5]",
			"none anywhere: the freest machine of the rack with most free"},
		{"closest-b", []int{0, 0, 0, 0, 2, 3, 1, 4}, 2, "[2 on 4]", "an exhausted rack does not count as the fewest"},
		{"closest-b", []int{1, 3, 2, 0, 4, 4, 4, 4}, 1, "[1 on 1]", "one GPU: rack with fewest free, machine with most"},
		{"closest-b", []int{4, 4, 4, 4, 4, 4, 4, 4}, 1, "[1 on 0]", ""},
		{"closest-b", []int{2, 0, 0, 1, 2, 1, 0, 1}, 6, "[2 on 4 1 on 5 1 on 7 2 on 0]",
			"the rack's others by number, then the other rack's"},

		{"closest-c", []int{1, 3, 2, 0, 2, 2, 2, 2}, 1, "[1 on 4]",
			"rack with most free (8), its freest machine, lowest on ties"},
		{"closest-c", []int{4, 0, 0, 3, 1, 1, 1, 3}, 5, "[4 on 0 1 on 3]", "rack 0 has 7, rack 1 has 6"},
		{"closest-c", []int{4, 0, 0, 2, 1, 1, 1, 3}, 5, "[4 on 0 1 on 3]", "6 each: the lowest rack"},
		{"closest-c", []int{1, 0, 0, 0, 1, 2, 3, 2}, 7, "[3 on 6 1 on 4 2 on 5 1 on 7]", ""},
	} {
		t.Run(fmt.Sprint(x.rule, x.free, x.gang), func(t *testing.T) {
			c := topdrl(t)
			occupy(t, c, x.free...)
			gpus, ok := rule(t, x.rule).Place(c, &cluster.Request{GPUs: x.gang, Milli: 1000}, nil)
			if got := taken(c, gpus); !ok || got != x.want {
				t.Errorf("got %s, %v; want %s: %s", got, ok, x.want, x.why)
			}
		})
	}
}

// "Free" means usable by the gang: here only the V100s, and only GPUs with enough of the GPU left.
func TestClosestCountsUsableGPUs(t *testing.T) {
	c := mustNew(t, "", cluster.Spec{Racks: []cluster.RackSpec{
		{Nodes: []cluster.NodeSpec{{GPUs: 4, GPUType: "k80"}, {GPUs: 1, GPUType: "v100"}}},
		{Nodes: []cluster.NodeSpec{{GPUs: 3, GPUType: "v100"}}},
	}})
	r := cluster.Request{GPUs: 2, Milli: 1000, Types: 2}
	for variant, want := range map[string]string{"closest-a": "[1 on 1 1 on 2]", "closest-b": "[2 on 2]",
		"closest-c": "[2 on 2]"} {
		gpus, ok := rule(t, variant).Place(c, &r, nil)
		if got := taken(c, gpus); !ok || got != want {
			t.Errorf("%s: got %s, %v; want %s", variant, got, ok, want)
		}
	}
	if err := c.Allocate(&cluster.Request{GPUs: 2, Milli: 800}, []cluster.GPU{5, 6}); err != nil {
		t.Fatal(err)
	}
	share := cluster.Request{GPUs: 1, Milli: 300, Types: 2}
	gpus, ok := rule(t, "closest-b").Place(c, &share, nil)
	if !ok || gpus[0] != 4 {
		t.Errorf("got %v, %v; want GPU 4, alone in the rack with fewest usable", gpus, ok)
	}
}

// For gangs of 2 to 8 on the empty cluster, variant b finds the lowest possible cost.
func TestClosestBIsOptimalOnTheEmptyCluster(t *testing.T) {
	c := topdrl(t)
	for n := 1; n <= 8; n++ {
		gpus, _ := rule(t, "closest-b").Place(c, &cluster.Request{GPUs: n, Milli: 1000}, nil)
		if got, want := c.Cost(gpus), c.BestCost(n); got != want {
			t.Errorf("%d GPUs cost %v, the best is %v", n, got, want)
		}
	}
}
