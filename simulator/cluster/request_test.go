package cluster_test

import (
	"testing"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

func TestJobsWithoutGPUsTakeCoresOfOneNode(t *testing.T) {
	c := mustNew(t, "",
		cluster.Spec{
			Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 2, CPUs: 4, MemGB: 8, GPUType: "a"},
				{CPUs: 16, MemGB: 4}}}}})
	for _, x := range []struct {
		cpu, mem int64
		ok       bool
		rooms    [2]int
	}{
		{4000, 1, true, [2]int{1, 1}},
		{4001, 0, true, [2]int{0, 1}},
		{1, 5 << 30, true, [2]int{1, 0}},
		{5000, 5 << 30, false, [2]int{0, 0}}, // no node has both
		{16001, 0, false, [2]int{0, 0}},
		{-1, -1, true, [2]int{1, 1}},
	} {
		// The GPU types it asks for do not matter to a job that asks for no GPUs.
		r, ok := c.Request(&traces.Job{CPUMilli: x.cpu, MemBytes: x.mem, GPUTypes: []string{"b"}})
		if ok != x.ok || r.GPUs != 0 || r.Milli != 0 || r.Types != 0 {
			t.Errorf("%+v: got %+v, %v", x, r, ok)
		}
		if got := [2]int{c.Room(0, &r), c.Room(1, &r)}; got != x.rooms || c.Fits(&r) != x.ok {
			t.Errorf("%+v: room %v, fits %v", x, got, c.Fits(&r))
		}
	}
	r, _ := c.Request(&traces.Job{CPUMilli: 3000})
	slot := []cluster.GPU{cluster.Slot(0)}
	if err := c.Allocate(&r, slot); err != nil {
		t.Fatal(err)
	}
	gpu, _ := c.Request(&traces.Job{GPUs: 2, GPUMilli: 1000, CPUMilli: 4000})
	if c.Room(0, &r) != 0 || c.Room(0, &gpu) != 0 || c.Free() != 2 || c.FreeMilli() != 2000 {
		t.Errorf("room %d and %d, %d GPUs free", c.Room(0, &r), c.Room(0, &gpu), c.Free())
	}
	if c.Speed(slot) != 1 || c.SpeedOf(slot, []float64{3}) != 1 || c.Cost(slot) != 1 || c.BestCost(0) != 1 ||
		c.WorstCost(0) != 1 {
		t.Error("a job without GPUs does not run at rate 1")
	}
	for _, bad := range [][]cluster.GPU{nil, {0}, {cluster.Slot(0)}, {cluster.Slot(2)},
		{cluster.Slot(1), cluster.Slot(1)}} {
		if err := c.Allocate(&r, bad); err == nil {
			t.Errorf("placed on %v", bad)
		}
	}
	c.Release(&r, slot)
	if c.Room(0, &r) != 1 {
		t.Error("cores are not given back")
	}
}

func TestJobsWithoutGPUsFitWhereNothingIsLimited(t *testing.T) {
	for _, short := range []string{"pool:2", "2x8"} {
		c := mustNew(t, short, cluster.Spec{})
		r, ok := c.Request(&traces.Job{CPUMilli: 1 << 40, MemBytes: 1 << 60})
		if !ok || !c.Fits(&r) || r != (cluster.Request{}) {
			t.Errorf("%s: %+v, %v", short, r, ok)
		}
		var gpus []cluster.GPU
		if !c.Pool() {
			gpus = []cluster.GPU{cluster.Slot(1)}
		}
		if err := c.Allocate(&r, gpus); err != nil {
			t.Error(err)
		}
		c.Release(&r, gpus)
	}
}

func TestResizedKeepsWhatEachMemberNeeds(t *testing.T) {
	c := mustNew(t, "2x8", cluster.Spec{})
	r := cluster.Request{GPUs: 4, Milli: 500, Types: 1, CPUMilli: 7, MemBytes: 9}
	if got := c.Resized(r, 6); got != (cluster.Request{GPUs: 6, Milli: 500, Types: 1, CPUMilli: 7, MemBytes: 9}) ||
		r.GPUs != 4 {
		t.Errorf("got %+v", got)
	}
}

func TestAJobsOwnSpeedsComeFirst(t *testing.T) {
	c := mustNew(t, "", cluster.Spec{Speeds: map[string]float64{"slow": 0.25, "fast": 3},
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 1, GPUType: "slow"}, {GPUs: 1, GPUType: "fast"},
			{GPUs: 1, GPUType: "x"}}}}})
	if c.TypeOf(0) != 0 || c.TypeOf(1) != 1 || c.TypeOf(2) != 2 {
		t.Error("types out of order")
	}
	for _, x := range []struct {
		gpus []cluster.GPU
		own  []float64
		want float64
	}{
		{nil, []float64{7}, 1},
		{[]cluster.GPU{0, 1}, nil, 0.25},
		{[]cluster.GPU{0, 1}, []float64{2, 0, 0}, 2},
		{[]cluster.GPU{0, 1}, []float64{9, 0}, 3},
		{[]cluster.GPU{1, 2}, []float64{0, 0.5}, 0.5},
		{[]cluster.GPU{2}, []float64{0, 0.5}, 1},
	} {
		if got := c.SpeedOf(x.gpus, x.own); got != x.want {
			t.Errorf("SpeedOf(%v, %v) = %v, want %v", x.gpus, x.own, got, x.want)
		}
	}
}

// Fits is called at every decision, for every kind of request, so it must not allocate.
func TestFitsDoesNotAllocate(t *testing.T) {
	spec := divided()
	spec.Racks[0].Nodes[0].CPUs = 8
	c := mustNew(t, "", spec)
	a, _ := c.Request(&traces.Job{GPUs: 2, GPUMilli: 300, CPUMilli: 100, VC: "d"})
	b, _ := c.Request(&traces.Job{CPUMilli: 100, VC: "c"})
	gpus, slot := []cluster.GPU{8, 9}, []cluster.GPU{cluster.Slot(5)}
	if n := testing.AllocsPerRun(10, func() {
		if !c.Fits(&a) || c.Allocate(&a, gpus) != nil || c.Allocate(&b, slot) != nil || !c.Fits(&b) {
			t.Fatal("refused")
		}
		c.Release(&a, gpus)
		c.Release(&b, slot)
		if c.SetDown(5, true) != nil || c.SetDown(5, false) != nil {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
