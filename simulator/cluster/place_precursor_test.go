package cluster_test

import (
	"slices"
	"testing"

	"clustergym/simulator/cluster"
)

// Two racks of two nodes with four GPUs each; prior allocations leave 1, 3 | 2, 3 free.
func TestThePrecursorsRulesByHand(t *testing.T) {
	spec, _, err := cluster.Parse("dally:2x2")
	if err != nil {
		t.Fatal(err)
	}
	for i := range spec.Racks {
		for k := range spec.Racks[i].Nodes {
			spec.Racks[i].Nodes[k].GPUs = 4
		}
	}
	for _, want := range []struct {
		rule string
		gpus int
		got  []cluster.GPU
	}{
		{"first-available", 1, []cluster.GPU{3}},
		{"first-available", 3, []cluster.GPU{3, 5, 6}},
		{"first-available", 6, []cluster.GPU{3, 5, 6, 7, 10, 11}},
		// Rack 1 has 5 of the 9 free GPUs; its node 3 has 3 of them.
		{"load-balance", 1, []cluster.GPU{13}},
		{"load-balance", 3, []cluster.GPU{13, 14, 15}},
		{"load-balance", 4, []cluster.GPU{13, 14, 15, 10}},
		// No rack holds six: rack 1 as a whole, then the freest node of rack 0.
		{"load-balance", 6, []cluster.GPU{13, 14, 15, 10, 11, 5}},
	} {
		c, err := cluster.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		if c.Nodes() != 4 || c.GPUs() != 16 {
			t.Fatalf("%d nodes, %d GPUs", c.Nodes(), c.GPUs())
		}
		taken := []cluster.GPU{0, 1, 2, 4, 8, 9, 12}
		whole := cluster.Request{GPUs: len(taken), Milli: 1000}
		if err := c.Allocate(&whole, taken); err != nil {
			t.Fatal(err)
		}
		p, err := cluster.NewPlacement(want.rule)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := p.Place(c, &cluster.Request{GPUs: want.gpus, Milli: 1000}, nil)
		if !ok || !slices.Equal(got, want.got) {
			t.Errorf("%s for %d GPUs: %v, want %v", want.rule, want.gpus, got, want.got)
		}
	}
}
