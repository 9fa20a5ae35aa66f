package cluster_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
)

func TestParseShortForms(t *testing.T) {
	for _, c := range []struct {
		in                string
		gpus, nodes, rack int
		pool              bool
	}{
		{"pool:256", 256, 256, 1, true},
		{"pool-7", 7, 7, 1, true},
		{"swf-256", 256, 256, 1, true},
		{"swf:1", 1, 1, 1, true},
		{"6x8", 48, 6, 1, false},
		{"8x8:a100", 64, 8, 1, false},
		{"4x8:NVIDIA-A100.80_GB+2x4:v100", 40, 6, 1, false},
		{"4x8+2x4", 40, 6, 1, false},
		{"1x1", 1, 1, 1, false},
		{"dally:4x2", 64, 8, 4, false},
		{"dally-1x1", 8, 1, 1, false},
	} {
		t.Run(c.in, func(t *testing.T) {
			spec, ok, err := cluster.Parse(c.in)
			if err != nil || !ok {
				t.Fatalf("Parse(%q) = ok %v, error %v", c.in, ok, err)
			}
			k, err := cluster.New(spec)
			if err != nil {
				t.Fatal(err)
			}
			if k.GPUs() != c.gpus || k.Nodes() != c.nodes || k.Racks() != c.rack || k.Pool() != c.pool || spec.Name != c.in {
				t.Errorf("%q is %d GPUs, %d nodes, %d racks, pool %v, named %q", c.in, k.GPUs(), k.Nodes(), k.Racks(), k.Pool(),
					spec.Name)
			}
		})
	}
}

func TestParseReadsTypes(t *testing.T) {
	spec, _, err := cluster.Parse("4x8:a100+2x4:V100+1x2")
	if err != nil {
		t.Fatal(err)
	}
	c := mustNew(t, "", spec)
	if !slices.Equal(c.Types(), []string{"a100", "V100", ""}) || c.TypeOf(3) != 0 || c.TypeOf(5) != 1 || c.TypeOf(6) != 2 {
		t.Error(c.Types(), c.TypeOf(3), c.TypeOf(5), c.TypeOf(6))
	}
}

func TestParseLeavesOtherNamesAlone(t *testing.T) {
	for _, in := range []string{"", "philly-192", "x8", "6x", "pool", "pool:", "pool:x", "6X8", "6x8x2", " 6x8", "-6x8",
		"pool:-1", "6x8:", "6x8:a100+", "6x8:a100+v100", "+6x8", "6x8:a 100", "6x8:a/b", "pool:8:a100", "dally:4", "dally4x2", "Dally:4x2"} {
		if _, ok, err := cluster.Parse(in); ok || err != nil {
			t.Errorf("Parse(%q) = ok %v, error %v; want no short form", in, ok, err)
		}
	}
}

func TestParseRefusesImpossibleSizes(t *testing.T) {
	for _, in := range []string{"pool:0", "swf-0", "0x8", "6x0", "6x1025", "99999999999999999999x8",
		"pool:99999999999999999999", "1048577x1", "dally:0x4", "dally:4x0", "dally:99999999999999999999x1", "4x8:a+0x4:b", "4x0:a", "99999999999999999999x8:a"} {
		_, ok, err := cluster.Parse(in)
		if !ok || err == nil || !strings.Contains(err.Error(), in) {
			t.Errorf("Parse(%q) = ok %v, error %v; want an error that names it", in, ok, err)
		}
	}
}

func TestValidateReportsEveryFault(t *testing.T) {
	spec := cluster.Spec{
		Racks: []cluster.RackSpec{
			{Count: -1,
				Nodes: []cluster.NodeSpec{{Count: -2, GPUs: 8, GPUType: "a", CPUs: math.NaN(), MemGB: -1, GPUMemGB: math.Inf(1)}}},
			{Uplink: cluster.Link{Gbps: -1}},
			{Nodes: []cluster.NodeSpec{{GPUs: 2000, CPUs: 1e300, Link: cluster.Link{Latency: -time.Second},
				NIC: cluster.Link{Gbps: math.NaN()}}}},
		},
		Speeds: map[string]float64{"b": 0, "a": math.Inf(1)},
	}
	want := []string{"racks[0].count", "racks[0].nodes[0].count", "racks[0].nodes[0].cpus", "racks[0].nodes[0].mem_gb",
		"racks[0].nodes[0].gpu_mem_gb", "racks[1].nodes", "racks[1].uplink.gbps", "racks[2].nodes[0].gpus",
		"racks[2].nodes[0].cpus", "racks[2].nodes[0].link.latency", "racks[2].nodes[0].nic.gbps", "speeds.a", "speeds.b",
		"speeds.b"}
	got := fault.All(spec.Validate())
	for i, f := range got {
		if i >= len(want) || f.Key != want[i] {
			t.Errorf("fault %d is %v", i, f)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d faults, want %d", len(got), len(want))
	}
	if _, err := cluster.New(spec); err == nil {
		t.Error("New builds a faulty cluster")
	}
}

func TestSpeedsAreOfTypesThatSomeNodeHas(t *testing.T) {
	typed := []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 8, GPUType: "A100"}, {GPUs: 2},
		{GPUs: 4, GPUType: "T4"}}}}
	plain := []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 8}}}}
	for _, x := range []struct {
		spec  cluster.Spec
		speed string
		want  string
	}{
		{cluster.Spec{Racks: typed}, "T4", ""},
		{cluster.Spec{Racks: typed}, "", ""},
		{cluster.Spec{Racks: typed}, "V100", "speeds.V100: got 0.5, want the type of some node: A100, T4"},
		{cluster.Spec{Racks: typed}, "a100", "speeds.a100: got 0.5, want the type of some node: A100, T4"},
		{cluster.Spec{Racks: plain}, "A100", "speeds.A100: got 0.5, want none: no node states a gpu_type"},
		{cluster.Spec{Pool: 8}, "A100", "speeds.A100: got 0.5, want none: the GPUs of a counter have no type"},
	} {
		x.spec.Speeds = map[string]float64{x.speed: 0.5}
		got := ""
		if err := x.spec.Validate(); err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("a speed of %q: %q, want %q", x.speed, got, x.want)
		}
	}
}

func TestDallysMachinesHaveItsLinks(t *testing.T) {
	c := mustNew(t, "dally:3x2", cluster.Spec{})
	if c.Racks() != 3 || c.Nodes() != 6 || c.MaxNode() != 8 {
		t.Errorf("%d racks, %d nodes, %d GPUs on the largest", c.Racks(), c.Nodes(), c.MaxNode())
	}
	// 600, 200 and 400 GB/s, with eight bits to a byte.
	for _, x := range []struct {
		got     cluster.Link
		gbps    float64
		latency time.Duration
	}{{c.Link(5), 4800, 500}, {c.NIC(5), 1600, 5000}, {c.Uplink(2), 3200, 50000}} {
		if x.got.Gbps != x.gbps || x.got.Latency != x.latency {
			t.Errorf("got %+v, want %v Gbit/s and %v", x.got, x.gbps, x.latency)
		}
	}
}

func TestValidateBoundsSums(t *testing.T) {
	node := func(count cluster.Count, gpus int) []cluster.NodeSpec {
		return []cluster.NodeSpec{{Count: count, GPUs: gpus}}
	}
	for name, s := range map[string]cluster.Spec{
		"nothing":          {},
		"negative pool":    {Pool: -1},
		"huge pool":        {Pool: 1 << 25},
		"pool and racks":   {Pool: 1, Racks: []cluster.RackSpec{{Nodes: node(1, 1)}}},
		"no GPUs":          {Racks: []cluster.RackSpec{{Nodes: node(4, 0)}}},
		"too many GPUs":    {Racks: []cluster.RackSpec{{Count: 1 << 10, Nodes: node(1<<10, 1024)}}},
		"too many nodes":   {Racks: []cluster.RackSpec{{Nodes: node(1, 8)}, {Count: 1 << 11, Nodes: node(1<<11, 0)}}},
		"counts that wrap": {Racks: []cluster.RackSpec{{Count: math.MaxInt, Nodes: node(math.MaxInt, 1024)}}},
	} {
		if err := s.Validate(); err == nil {
			t.Errorf("%s is taken for a cluster", name)
		}
	}
	many := cluster.Spec{Racks: []cluster.RackSpec{{}}}
	for i := range 65 {
		many.Racks[0].Nodes = append(many.Racks[0].Nodes, cluster.NodeSpec{GPUs: 1, GPUType: string(rune('A' + i))})
	}
	if many.Validate() == nil {
		t.Error("65 GPU types are taken, a request holds 64")
	}
	many.Racks[0].Nodes = many.Racks[0].Nodes[:64]
	if err := many.Validate(); err != nil {
		t.Error(err)
	}
}

func TestCountLeftOutIsOneAndZeroIsRefused(t *testing.T) {
	var c cluster.Count
	if c.N() != 1 {
		t.Errorf("left out means %d, want 1", c.N())
	}
	if err := c.UnmarshalText([]byte("12")); err != nil || c.N() != 12 {
		t.Errorf("got %d (%v), want 12", c.N(), err)
	}
	for _, text := range []string{"0", "-1", "x", "1.5", ""} {
		if err := c.UnmarshalText([]byte(text)); err == nil || c.N() != 12 {
			t.Errorf("%q was taken for %d", text, c.N())
		}
	}
}
