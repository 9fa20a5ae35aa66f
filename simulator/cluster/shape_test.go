package cluster_test

import (
	"testing"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// What a job says of its nodes becomes the shape of its gang, unless the cluster reads jobs to the letter.
func TestRequestsHaveTheShapeThatTheirJobsSay(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 8}}}}}
	for _, x := range []struct {
		job     traces.Job
		each    int
		fits    bool
		literal bool
	}{
		{traces.Job{GPUs: 8}, 0, true, false},
		{traces.Job{GPUs: 8, Nodes: 2}, 4, true, false},
		{traces.Job{GPUs: 8, Nodes: 1}, 8, true, false},
		{traces.Job{GPUs: 1, Nodes: 1}, 0, true, false},
		{traces.Job{GPUs: 6, Nodes: 4}, 0, true, false},
		{traces.Job{GPUs: 16, Nodes: 1}, 16, false, false},
		{traces.Job{GPUs: 5, Nodes: 5}, 1, false, false},
		{traces.Job{GPUs: 4, Nodes: 2, MinGPUs: 1, MaxGPUs: 8}, 0, true, false},
		{traces.Job{GPUs: 16, Nodes: 1}, 0, true, true},
	} {
		s := spec
		s.Literal = x.literal
		x.job.GPUMilli = 1000
		r, ok := mustNew(t, "", s).Request(&x.job)
		if r.Each != x.each || ok != x.fits || r.Plain() != (x.each == 0) {
			t.Errorf("%+v gives %+v, %v", x.job, r, ok)
		}
	}
}

// Types are the same in all letters, and GPUs without a type are of any.
func TestTypesInAllLetters(t *testing.T) {
	cl := func(literal bool, types ...string) *cluster.Cluster {
		var nodes []cluster.NodeSpec
		for _, k := range types {
			nodes = append(nodes, cluster.NodeSpec{GPUs: 8, GPUType: k})
		}
		nodes = append(nodes, cluster.NodeSpec{CPUs: 8}) // without GPUs, and so without a type
		return mustNew(t, "", cluster.Spec{Racks: []cluster.RackSpec{{Nodes: nodes}}, Literal: literal})
	}
	for _, x := range []struct {
		on    *cluster.Cluster
		named []string
		types uint64
		fits  bool
	}{
		{cl(false, ""), []string{"a100"}, 1, true},
		{cl(true, ""), []string{"a100"}, 0, false},
		{cl(false, "a100", "v100"), []string{"A100"}, 1, true},
		{cl(true, "a100", "v100"), []string{"A100"}, 0, false},
		{cl(true, "a100", "v100"), []string{"a100"}, 1, true},
		{cl(false, "a100", "A100"), []string{"a100"}, 3, true},
		{cl(false, "a100"), []string{"a100"}, 1, true},
		{cl(false, "a100", "", "v100"), []string{"V100"}, 6, true},
		{cl(false, "a100", ""), []string{"A100"}, 3, true},
		{cl(false, "a100", "v100"), []string{"h100"}, 0, false},
	} {
		r, ok := x.on.Request(&traces.Job{GPUs: 1, GPUMilli: 1000, GPUTypes: x.named})
		if r.Types != x.types || ok != x.fits {
			t.Errorf("%v on %v gives %+v, %v, want types %b, %v", x.named, x.on.Types(), r, ok, x.types, x.fits)
		}
	}
}
