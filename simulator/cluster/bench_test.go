package cluster_test

import (
	"fmt"
	"testing"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

func BenchmarkPlace(b *testing.B) {
	for _, size := range []struct {
		name string
		spec cluster.Spec
	}{
		{"2x4x4", cluster.Spec{Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4}}}}}},
		{"64x8", cluster.Spec{Racks: []cluster.RackSpec{{Count: 4, Nodes: []cluster.NodeSpec{{Count: 16, GPUs: 8}}}}}},
	} {
		for _, name := range cluster.PlacementNames() {
			b.Run(fmt.Sprintf("%s/%s", name, size.name), func(b *testing.B) {
				c, p := mustNew(b, "", size.spec), rule(b, name)
				free := make([]int, c.Nodes())
				for n := range free {
					free[n] = n % (c.MaxNode() + 1)
				}
				occupy(b, c, free...)
				r := cluster.Request{GPUs: 4, Milli: 1000}
				var gpus []cluster.GPU
				b.ReportAllocs()
				for b.Loop() {
					gpus, _ = p.Place(c, &r, gpus)
				}
			})
		}
	}
}

func BenchmarkAllocateRelease(b *testing.B) {
	for _, name := range []string{"pool:256", "64x8"} {
		b.Run(name, func(b *testing.B) {
			c := mustNew(b, name, cluster.Spec{})
			r := cluster.Request{GPUs: 4, Milli: 1000}
			gpus, _ := rule(b, "first-fit").Place(c, &r, nil)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Allocate(&r, gpus); err != nil {
					b.Fatal(err)
				}
				c.Release(&r, gpus)
			}
		})
	}
}

func BenchmarkCost(b *testing.B) {
	c := topdrl(b)
	gpus := []cluster.GPU{0, 1, 5, 9, 16, 17, 18, 31}
	sum := 0.0
	b.ReportAllocs()
	for b.Loop() {
		sum += c.Cost(gpus)
	}
}

// openbLike is as large as Alibaba's "openb" cluster: 1,213 nodes with 6,212 GPUs of seven types and 310 without.
func openbLike(b *testing.B) *cluster.Cluster {
	node := func(count, gpus int, kind string, cpus float64) cluster.NodeSpec {
		return cluster.NodeSpec{Count: cluster.Count(count), GPUs: gpus, GPUType: kind, CPUs: cpus, MemGB: 4 * cpus}
	}
	return mustNew(b, "", cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{
		node(549, 8, "G2",
			96), node(39, 8, "G3", 128), node(387, 2, "T4", 104), node(17, 4, "T4", 96), node(134, 2, "P100", 64),
		node(55, 4, "V16", 48), node(30, 8, "V32", 96), node(2, 1, "A10", 128), node(310, 0, "", 96)}}}})
}

// BenchmarkFits asks after each change whether requests fit a cluster in which every GPU has 300 thousandths free and
// every node has free cores and memory.
func BenchmarkFits(b *testing.B) {
	c := openbLike(b)
	most := cluster.Request{GPUs: 1, Milli: 700, CPUMilli: 1000, MemBytes: 1 << 30}
	for g := range c.GPUs() {
		if err := c.Allocate(&most, []cluster.GPU{cluster.GPU(g)}); err != nil {
			b.Fatal(err)
		}
	}
	small := cluster.Request{GPUs: 1, Milli: 10, CPUMilli: 1}
	for _, x := range []struct {
		name string
		r    cluster.Request
		want bool
	}{
		{"share/yes", cluster.Request{GPUs: 1, Milli: 300, CPUMilli: 4000, MemBytes: 1 << 30}, true},
		{"share/no", cluster.Request{GPUs: 1, Milli: 301, CPUMilli: 4000, MemBytes: 1 << 30}, false},
		{"share/no-of-type", cluster.Request{GPUs: 1, Milli: 301, CPUMilli: 4000, Types: 1 << 2}, false},
		{"share/no-cores", cluster.Request{GPUs: 1, Milli: 300, CPUMilli: 128000}, false},
		{"whole/no", cluster.Request{GPUs: 1, Milli: 1000, CPUMilli: 8000, MemBytes: 1 << 30}, false},
		{"none/yes", cluster.Request{CPUMilli: 95000}, true},
		{"none/no", cluster.Request{CPUMilli: 129000}, false},
	} {
		b.Run(x.name, func(b *testing.B) {
			g, gpus := 0, []cluster.GPU{0}
			b.ReportAllocs()
			for b.Loop() {
				gpus[0] = cluster.GPU(g)
				if err := c.Allocate(&small, gpus); err != nil {
					b.Fatal(err)
				}
				if c.Fits(&x.r) != x.want {
					b.Fatalf("Fits says %v", !x.want)
				}
				c.Release(&small, gpus)
				g = (g + 97) % c.GPUs()
			}
		})
	}
}

// BenchmarkRequest translates a job of the same cluster.
func BenchmarkRequest(b *testing.B) {
	c := openbLike(b)
	for _, j := range []traces.Job{
		{ID: "share", GPUs: 1, GPUMilli: 500, CPUMilli: 4000, MemBytes: 1 << 30},
		{ID: "type", GPUs: 1, GPUMilli: 1000, CPUMilli: 4000, GPUTypes: []string{"V16", "V32"}},
	} {
		b.Run(j.ID, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := c.Request(&j); !ok {
					b.Fatal("does not fit")
				}
			}
		})
	}
}
