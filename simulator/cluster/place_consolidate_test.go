package cluster_test

import (
	"fmt"
	"testing"

	"clustergym/simulator/cluster"
)

func TestConsolidateByHand(t *testing.T) {
	for _, x := range []struct {
		rule string
		free []int // by node of 4 GPUs
		gang int
		want string // "" = refused
	}{
		{"consolidate-first", []int{1, 3, 4, 2}, 2, "[2 on 1]"},
		{"consolidate-best", []int{1, 3, 4, 2}, 2, "[2 on 3]"},
		{"consolidate-best", []int{2, 3, 4, 2}, 2, "[2 on 0]"}, // a tie goes to the lowest number
		{"consolidate-first", []int{3, 3, 3, 3}, 4, ""},        // 12 are free, but no single node has 4
		{"consolidate-best", []int{3, 3, 3, 3}, 4, ""},
		{"consolidate-first", []int{1, 4, 3, 4}, 8, "[4 on 1 4 on 3]"},
		{"consolidate-best", []int{1, 4, 3, 4}, 8, "[4 on 1 4 on 3]"},
		{"consolidate-first", []int{3, 4, 3, 3}, 8, ""},                // one idle node, not two
		{"consolidate-first", []int{3, 2, 4, 4}, 6, "[4 on 2 2 on 0]"}, // the remainder: the first with room
		{"consolidate-best", []int{2, 3, 4, 4}, 6, "[4 on 2 2 on 3]"},  // the freest node, an idle one while there is one
		{"consolidate-best", []int{2, 3, 4, 1}, 6, "[4 on 2 2 on 1]"},
		{"consolidate-first", []int{1, 1, 4, 1}, 6, ""}, // no node has room for the remainder
		{"consolidate-best", []int{1, 1, 4, 1}, 6, ""},
		{"consolidate-first", []int{4, 4, 4, 4}, 16, "[4 on 0 4 on 1 4 on 2 4 on 3]"},
	} {
		t.Run(fmt.Sprint(x.rule, x.free, x.gang), func(t *testing.T) {
			c := mustNew(t, "4x4", cluster.Spec{})
			occupy(t, c, x.free...)
			gpus, ok := rule(t, x.rule).Place(c, &cluster.Request{GPUs: x.gang, Milli: 1000}, nil)
			if !ok {
				if x.want != "" || len(gpus) != 0 {
					t.Errorf("got %v, %v; want %s", gpus, ok, x.want)
				}
				return
			}
			if got := taken(c, gpus); got != x.want {
				t.Errorf("got %s, want %s", got, x.want)
			}
		})
	}
}

// Nodes of 2, 4, 8 and 4 GPUs: a gang of up to 8 must get one node; a larger one gets the largest idle nodes that it
// fills until one node has room for the rest.
func TestConsolidateOnNodesThatDiffer(t *testing.T) {
	spec := cluster.Spec{
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 2, GPUType: "a"}, {GPUs: 4}, {GPUs: 8}, {GPUs: 4}}}}}
	for _, x := range []struct {
		rule string
		gang int
		want string
	}{
		{"consolidate-first", 5, "[5 on 2]"},
		{"consolidate-first", 3, "[3 on 1]"},
		{"consolidate-best", 2, "[2 on 0]"},
		{"consolidate-first", 10, "[8 on 2 2 on 0]"},
		{"consolidate-best", 10, "[8 on 2 2 on 1]"},
		{"consolidate-first", 13, "[8 on 2 4 on 1 1 on 0]"},
		{"consolidate-first", 18, "[8 on 2 4 on 1 4 on 3 2 on 0]"},
	} {
		c := mustNew(t, "", spec)
		gpus, ok := rule(t, x.rule).Place(c, &cluster.Request{GPUs: x.gang, Milli: 1000}, nil)
		if got := taken(c, gpus); !ok || got != x.want {
			t.Errorf("%s, gang of %d: got %s, %v; want %s", x.rule, x.gang, got, ok, x.want)
		}
	}
	// 4 GPUs of type "" are free on nodes 1 and 3, but the largest node of that type holds 8: the gang of 5 waits.
	c := mustNew(t, "", spec)
	occupy(t, c, 2, 4, 4, 4)
	if gpus, ok := rule(t, "consolidate-first").Place(c, &cluster.Request{GPUs: 5, Milli: 1000, Types: 2}, nil); ok {
		t.Errorf("a gang of 5 is torn apart: %v", gpus)
	}
	// Type "a" exists only on a node of 2 GPUs, so a gang of 3 can never run, and Fits says so.
	if _, ok := rule(t, "consolidate-first").Place(c, &cluster.Request{GPUs: 3, Milli: 1000, Types: 1}, nil); ok {
		t.Error("three of two GPUs")
	}
}

func TestConstrainedPlacements(t *testing.T) {
	for _, name := range cluster.PlacementNames() {
		want := name == "consolidate-first" || name == "consolidate-best"
		if got := cluster.Constrained(rule(t, name)); got != want {
			t.Errorf("%s: constrained %v, want %v", name, got, want)
		}
	}
}
