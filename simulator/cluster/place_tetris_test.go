package cluster_test

import (
	"testing"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// Two nodes of 4 GPUs; node 0 has 64 cores and 64 GiB, node 1 has 16 cores and 256 GiB. In units of a node's capacity,
// a job of 1 GPU, 8 cores and 8 GiB asks for (1/4, 1/8, 1/8) of node 0, which is wholly free, so it scores 1/4 + 1/8 +
// 1/8 = 0.5 there; on node 1 it asks for (1/4, 1/2, 1/32) and scores 0.78.
func TestTetrisByHand(t *testing.T) {
	c := mustNew(t, "",
		cluster.Spec{
			Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 4, CPUs: 64, MemGB: 64},
				{GPUs: 4, CPUs: 16, MemGB: 256}}}}})
	place := func(gpus int, cpu, mem int64) cluster.GPU {
		t.Helper()
		j := traces.Job{GPUs: gpus, GPUMilli: 1000, CPUMilli: cpu * 1000, MemBytes: mem << 30}
		r, ok := c.Request(&j)
		if !ok {
			t.Fatal("never fits")
		}
		got, ok := rule(t, "tetris").Place(c, &r, nil)
		if !ok {
			t.Fatal("does not fit")
		}
		return got[0]
	}
	if g := place(1, 8, 8); g != 4 {
		t.Errorf("got %d, want GPU 4 on node 1, 0.78 against 0.5", g)
	}
	if g := place(1, 0, 32); g != 0 {
		t.Errorf("got %d, want GPU 0: node 0 scores 1/4 + 1/2, node 1 1/4 + 1/8", g)
	}
	// With half of node 1's GPUs and all but 8 of its cores gone it scores 1/8 + 1/4 + 1/32 = 0.41.
	half := cluster.Request{GPUs: 2, Milli: 1000, CPUMilli: 4000}
	if err := c.Allocate(&half, []cluster.GPU{4, 5}); err != nil {
		t.Fatal(err)
	}
	if g := place(1, 8, 8); g != 0 {
		t.Errorf("got %d, want GPU 0, 0.5 against 0.41", g)
	}
	// Without GPUs: 8 cores score 1/8 on node 0, 1/2 × 1/2 on node 1.
	if g := place(0, 8, 0); g != cluster.Slot(1) {
		t.Errorf("got %d, want a slot on node 1", g)
	}
}
