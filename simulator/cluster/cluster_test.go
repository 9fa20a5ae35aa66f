package cluster_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// mustNew builds the cluster of a short form, or of spec if short is "".
func mustNew(t testing.TB, short string, spec cluster.Spec) *cluster.Cluster {
	t.Helper()
	if short != "" {
		s, ok, err := cluster.Parse(short)
		if !ok || err != nil {
			t.Fatal(short, ok, err)
		}
		spec = s
	}
	c, err := cluster.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func topdrl(t testing.TB) *cluster.Cluster {
	return mustNew(t, "",
		cluster.Spec{Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4}}}}})
}

// drawSpec draws a small cluster of mixed nodes: sizes, types, with and without limits of cores and memory.
func drawSpec(t *rapid.T) cluster.Spec {
	types := []string{"", "p100", "v100"}
	speeds := map[string]float64{"p100": 0.5, "v100": 2}
	s := cluster.Spec{Name: "drawn", Speeds: map[string]float64{}}
	for range rapid.IntRange(1, 3).Draw(t, "racks") {
		r := cluster.RackSpec{Count: cluster.Count(rapid.IntRange(0, 2).Draw(t, "rackCount"))}
		for range rapid.IntRange(1, 2).Draw(t, "nodes") {
			n := cluster.NodeSpec{
				Count:   cluster.Count(rapid.IntRange(0, 3).Draw(t, "nodeCount")),
				GPUs:    rapid.IntRange(0, 4).Draw(t, "gpus"),
				GPUType: rapid.SampledFrom(types).Draw(t, "type"),
				CPUs:    rapid.SampledFrom([]float64{0, 0, 1.5, 8}).Draw(t, "cpus"),
				MemGB:   rapid.SampledFrom([]float64{0, 0, 0.5, 16}).Draw(t, "mem"),
			}
			if v, ok := speeds[n.GPUType]; ok {
				s.Speeds[n.GPUType] = v
			}
			r.Nodes = append(r.Nodes, n)
		}
		s.Racks = append(s.Racks, r)
	}
	s.Racks[0].Nodes[0].GPUs++ // at least one GPU
	return s
}

func drawJob(t *rapid.T) traces.Job {
	j := traces.Job{ID: "drawn", GPUs: rapid.IntRange(1, 9).Draw(t, "gang"), GPUMilli: 1000}
	if rapid.Bool().Draw(t, "share") {
		j.GPUMilli = rapid.SampledFrom([]int{1, 100, 250, 333, 500, 501, 999}).Draw(t, "milli")
	}
	switch rapid.IntRange(0, 5).Draw(t, "wants") {
	case 0:
		j.GPUTypes = []string{"v100"}
	case 1:
		j.GPUTypes = []string{"", "p100", "no such type"}
	case 2:
		j.CPUMilli = rapid.Int64Range(0, 9000).Draw(t, "cpu")
	case 3:
		j.MemBytes = rapid.Int64Range(0, 4<<30).Draw(t, "bytes")
	}
	return j
}

func TestRequestOfCoresIsPerGPURoundedUp(t *testing.T) {
	c := mustNew(t, "",
		cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4, CPUs: 10, MemGB: 1}}}}})
	for _, x := range []struct {
		cpu, mem       int64
		gpus           int
		wantCPU, wantM int64
		ok             bool
	}{
		{7000, 0, 2, 3500, 0, true},
		{10001, 3, 2, 5001, 2, true}, // one on each node
		{20002, 0, 2, 10001, 0, false},
		{math.MaxInt64, 0, 2, math.MaxInt64/2 + 1, 0, false},
		{-5, -5, 1, 0, 0, true},
		{0, 1 << 31, 2, 0, 1 << 30, true},
	} {
		r, ok := c.Request(&traces.Job{GPUs: x.gpus, GPUMilli: 1000, CPUMilli: x.cpu, MemBytes: x.mem})
		if ok != x.ok || r.CPUMilli != x.wantCPU || r.MemBytes != x.wantM {
			t.Errorf("%+v: got %+v, %v", x, r, ok)
		}
	}
	// On nodes without limits, cores and memory do not matter.
	r, ok := mustNew(t, "1x4", cluster.Spec{}).Request(&traces.Job{GPUs: 1, GPUMilli: 1000, CPUMilli: 1 << 40})
	if !ok || r != (cluster.Request{GPUs: 1, Milli: 1000}) {
		t.Errorf("got %+v, %v", r, ok)
	}
}

func TestRequestRefusesWhatNeverFits(t *testing.T) {
	c := mustNew(t, "",
		cluster.Spec{
			Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 2, GPUType: "a"}, {GPUs: 1, GPUType: "b"}}}}})
	for _, j := range []traces.Job{
		{GPUs: -1, GPUMilli: 1000}, {GPUs: 1, GPUMilli: 0}, {GPUs: 1, GPUMilli: 1001}, {GPUs: 4, GPUMilli: 1},
		{GPUs: 1, GPUMilli: 1000, GPUTypes: []string{"c"}}, {GPUs: 2, GPUMilli: 10, GPUTypes: []string{"b"}},
	} {
		if _, ok := c.Request(&j); ok {
			t.Errorf("%+v is said to fit", j)
		}
	}
}

func TestCounterCountsThousandths(t *testing.T) {
	c := mustNew(t, "pool:2", cluster.Spec{})
	half := cluster.Request{GPUs: 3, Milli: 500}
	if err := c.Allocate(&half, []cluster.GPU{0, 1, 2}); err == nil {
		t.Error("a counter's processors have no names")
	}
	if err := c.Allocate(&half, nil); err != nil {
		t.Fatal(err)
	}
	if c.FreeMilli() != 500 || c.Free() != 0 || c.Fits(&half) {
		t.Errorf("%d thousandths, %d whole, fits %v", c.FreeMilli(), c.Free(), c.Fits(&half))
	}
	if err := c.Allocate(&half, nil); !errors.Is(err, cluster.ErrNoCapacity) {
		t.Errorf("got %v, want ErrNoCapacity", err)
	}
	c.Release(&half, nil)
	defer func() {
		if recover() == nil {
			t.Error("releasing more than there is must panic")
		}
	}()
	c.Release(&half, nil)
}

func TestReleaseTwicePanics(t *testing.T) {
	for _, milli := range []int{1, 1000} {
		c := mustNew(t, "1x2", cluster.Spec{})
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("releasing %d thousandths of a free GPU must panic", milli)
				}
			}()
			c.Release(&cluster.Request{GPUs: 1, Milli: milli}, []cluster.GPU{1})
		}()
	}
}

func TestAllocateSaysWhy(t *testing.T) {
	spec := cluster.Spec{
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 2, GPUType: "a", CPUs: 1}, {GPUs: 2, GPUType: "b"}}}}}
	c := mustNew(t, "", spec)
	for _, r := range []cluster.Request{
		{GPUs: 1, Milli: 1000, Types: 2},       // GPU 0 is of type a
		{GPUs: 1, Milli: 1000, CPUMilli: 1001}, // of one core
	} {
		if err := c.Allocate(&r, []cluster.GPU{0}); !errors.Is(err, cluster.ErrNoCapacity) {
			t.Errorf("%+v: got %v, want ErrNoCapacity", r, err)
		}
	}
	if !reflect.DeepEqual(c.Types(), []string{"a", "b"}) {
		t.Errorf("types %v", c.Types())
	}
}

func TestSpeedIsThatOfTheSlowestGPU(t *testing.T) {
	c := mustNew(t, "", cluster.Spec{Speeds: map[string]float64{"slow": 0.25, "fast": 3},
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 1, GPUType: "slow"}, {GPUs: 1, GPUType: "fast"},
			{GPUs: 1}}}}})
	for _, x := range []struct {
		gpus []cluster.GPU
		want float64
	}{{nil, 1}, {[]cluster.GPU{0}, 0.25}, {[]cluster.GPU{1}, 3}, {[]cluster.GPU{2}, 1}, {[]cluster.GPU{1, 2}, 1},
		{[]cluster.GPU{1, 2, 0}, 0.25}} {
		if got := c.Speed(x.gpus); got != x.want {
			t.Errorf("Speed(%v) = %v, want %v", x.gpus, got, x.want)
		}
	}
}

func TestResetFreesEverything(t *testing.T) {
	c := mustNew(t, "",
		cluster.Spec{Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{GPUs: 2, CPUs: 4, MemGB: 1}}}}})
	fresh := withoutVersion(fmt.Sprintf("%+v", *c))
	r, _ := c.Request(&traces.Job{GPUs: 3, GPUMilli: 300, CPUMilli: 3000, MemBytes: 3000})
	if err := c.Allocate(&r, []cluster.GPU{0, 1, 2}); err != nil {
		t.Fatal(err)
	}
	v := c.Version()
	c.Reset()
	if got := withoutVersion(fmt.Sprintf("%+v", *c)); got != fresh {
		t.Errorf("after Reset %s, want %s", got, fresh)
	}
	if c.Version() == v {
		t.Error("Reset does not change the version")
	}
}
