package cluster_test

import (
	"fmt"
	"testing"

	"clustergym/env/cluster"
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
