package cluster_test

import (
	"fmt"
	"testing"

	"clustergym/simulator/cluster"
)

// On 2 racks of 4 nodes of 4 GPUs; free is by node.
func TestRackByHand(t *testing.T) {
	for _, x := range []struct {
		free []int
		gang int
		want string
		why  string
	}{
		{[]int{4, 4, 4, 4, 4, 4, 4, 4}, 3, "[3 on 0]", "ties go to the lowest"},
		{[]int{2, 4, 4, 4, 1, 2, 1, 1}, 2, "[2 on 5]", "equally full nodes: the rack with fewer free"},
		{[]int{2, 3, 4, 4, 3, 3, 3, 3}, 3, "[3 on 4]", "one node before all; the fuller rack has 12 free"},
		{[]int{4, 4, 4, 4, 2, 2, 1, 1}, 5, "[2 on 4 2 on 5 1 on 6]", "the rack with the fewest free that holds it"},
		{[]int{3, 3, 0, 0, 2, 3, 2, 0}, 6, "[3 on 0 3 on 1]", "the tighter rack"},
		{[]int{1, 1, 0, 0, 2, 0, 1, 0}, 4, "[2 on 4 1 on 6 1 on 0]",
			"no rack holds it: all of the freest, then the tightest for the rest"},
	} {
		t.Run(fmt.Sprint(x.free, x.gang), func(t *testing.T) {
			c := topdrl(t)
			occupy(t, c, x.free...)
			gpus, ok := rule(t, "rack").Place(c, &cluster.Request{GPUs: x.gang, Milli: 1000}, nil)
			if got := taken(c, gpus); !ok || got != x.want {
				t.Errorf("got %s, %v; want %s: %s", got, ok, x.want, x.why)
			}
		})
	}
}
