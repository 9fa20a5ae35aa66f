package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

func TestNodesThatAreDownHaveNoRoom(t *testing.T) {
	c := mustNew(t, "",
		cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4, CPUs: 8}, {CPUs: 8}}}}})
	v := c.Version()
	if err := c.SetDown(1, true); err != nil {
		t.Fatal(err)
	}
	if c.Free() != 4 || c.FreeMilli() != 4000 || c.DownGPUs() != 4 || !c.Down(1) || c.NodeFree(1) != 0 ||
		c.GPUFree(5) != 0 || c.Version() == v {
		t.Errorf("%d free, %d thousandths, %d down, node %d", c.Free(), c.FreeMilli(), c.DownGPUs(), c.NodeFree(1))
	}
	five := cluster.Request{GPUs: 5, Milli: 1000}
	share := cluster.Request{GPUs: 1, Milli: 1}
	none, ok := c.Request(&traces.Job{CPUMilli: 8000})
	if c.Fits(&five) || c.Room(1, &share) != 0 || !ok || c.Room(1, &none) != 0 || c.Room(2, &none) != 1 {
		t.Error("a node that is down has room")
	}
	for _, try := range []struct {
		r    cluster.Request
		gpus []cluster.GPU
	}{{share, []cluster.GPU{4}}, {none, []cluster.GPU{cluster.Slot(1)}}} {
		if err := c.Allocate(&try.r, try.gpus); !errors.Is(err, cluster.ErrNoCapacity) ||
			!strings.Contains(err.Error(), "is down") {
			t.Errorf("got %v", err)
		}
	}
	// Whether a job can ever fit is judged with every node up.
	if _, ok := c.Request(&traces.Job{GPUs: 8, GPUMilli: 1000}); !ok {
		t.Error("a gang for the whole cluster can never fit")
	}
	if err := c.SetDown(1, true); err != nil {
		t.Errorf("down twice: %v", err)
	}
	if err := c.SetDown(1, false); err != nil || !c.Fits(&five) || c.DownGPUs() != 0 || c.Room(1, &none) != 1 {
		t.Errorf("brought back: %v, %d GPUs down", err, c.DownGPUs())
	}
	if err := c.SetDown(2, true); err != nil || c.Free() != 8 || c.Room(2, &none) != 0 {
		t.Errorf("a node without GPUs: %v, %d free", err, c.Free())
	}
	c.Reset()
	if c.Down(2) || c.Room(2, &none) != 1 {
		t.Error("Reset leaves a node down")
	}
}

func TestOnlyIdleNodesGoDown(t *testing.T) {
	c := mustNew(t, "3x2", cluster.Spec{})
	share := cluster.Request{GPUs: 1, Milli: 1}
	none := cluster.Request{}
	if c.Allocate(&share, []cluster.GPU{1}) != nil || c.Allocate(&none, []cluster.GPU{cluster.Slot(1)}) != nil {
		t.Fatal("refused")
	}
	for _, n := range []int{0, 1} {
		if err := c.SetDown(n, true); err == nil || c.Down(n) || !strings.Contains(err.Error(), "jobs run on it") {
			t.Errorf("node %d goes down: %v", n, err)
		}
	}
	c.Release(&none, []cluster.GPU{cluster.Slot(1)})
	if err := c.SetDown(1, true); err != nil {
		t.Error(err)
	}
	for _, n := range []int{-1, 3} {
		if err := c.SetDown(n, true); err == nil {
			t.Errorf("node %d of 3 goes down", n)
		}
	}
	if err := mustNew(t, "pool:4", cluster.Spec{}).SetDown(0, true); err == nil {
		t.Error("a counter's node goes down")
	}
	defer func() {
		if recover() == nil {
			t.Error("releasing a job without GPUs twice must panic")
		}
	}()
	c.Release(&none, []cluster.GPU{cluster.Slot(0)})
}

func TestCopiesServeForPlanning(t *testing.T) {
	spec := divided()
	c, plan := mustNew(t, "", spec), mustNew(t, "", spec)
	one, _ := c.Request(&traces.Job{GPUs: 1, GPUMilli: 400, VC: "c"})
	if c.Allocate(&one, []cluster.GPU{6}) != nil || c.SetDown(5, true) != nil {
		t.Fatal("refused")
	}
	if n := testing.AllocsPerRun(10, func() { plan.CopyFrom(c) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if plan.FreeMilli() != 9600 || plan.VCRoom(3) != 2600 || !plan.Down(5) || plan.GPUFree(6) != 600 ||
		plan.VCFree(3) != 3 {
		t.Errorf("the copy has %d thousandths, quota %d", plan.FreeMilli(), plan.VCRoom(3))
	}
	if err := plan.CheckInvariants(); err != nil {
		t.Error(err)
	}
	plan.Release(&one, []cluster.GPU{6})
	if c.GPUFree(6) != 600 || c.VCRoom(3) != 2600 {
		t.Error("what is planned changes the cluster")
	}
	defer func() {
		if recover() == nil {
			t.Error("a copy of another cluster must panic")
		}
	}()
	plan.CopyFrom(mustNew(t, "2x8", cluster.Spec{}))
}
