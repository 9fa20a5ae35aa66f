package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// Jobs that can never fit are counted by reason, and for a GPU type that the cluster has under a like name the reason
// says so.
func TestReasonsForWhichJobsNeverFit(t *testing.T) {
	typed := func(types ...string) cluster.Spec {
		var nodes []cluster.NodeSpec
		for _, k := range types {
			nodes = append(nodes, cluster.NodeSpec{GPUs: 8, GPUType: k, CPUs: 64, MemGB: 512})
		}
		return cluster.Spec{Name: "c", Racks: []cluster.RackSpec{{Nodes: nodes}}}
	}
	literal := func(s cluster.Spec) cluster.Spec { s.Literal = true; return s }
	divided := typed("a100", "a100")
	divided.VCs = []cluster.VCSpec{{Name: "prod", Quota: 4}, {Name: "dev"}}
	job := func(gpus int, types ...string) traces.Job {
		return traces.Job{GPUs: gpus, GPUMilli: 1000, GPUTypes: types}
	}
	in := func(vc string, j traces.Job) traces.Job { j.VC = vc; return j }
	on := func(nodes int, j traces.Job) traces.Job { j.Nodes = nodes; return j }
	needs := func(cores, mem int64, j traces.Job) traces.Job {
		j.CPUMilli, j.MemBytes = cores*1000, mem<<30
		return j
	}
	for name, c := range map[string]struct {
		spec cluster.Spec
		jobs []traces.Job
		want []string
	}{
		"too large": {typed("a100"), []traces.Job{job(9), job(100)}, nil},
		"no types": {literal(typed("")), []traces.Job{job(1, "A100"), job(1, "a100"), job(1, "a100")},
			[]string{
				"3 ask for a GPU type, a100 (2), A100 (1), and its GPUs have none: gpu_type: a100 at the nodes of a cluster file names it"}},
		"one type": {literal(typed("")), []traces.Job{job(1, "1g.5gb")},
			[]string{
				"1 asks for a GPU type, 1g.5gb (1), and its GPUs have none: gpu_type: 1g.5gb at the nodes of a cluster file names it"}},
		"capitals": {literal(typed("a100", "v100")), []traces.Job{job(1, "A100"), job(2, "A100")},
			[]string{
				"2 ask for GPU type A100, and it has a100: write gpu_type: A100 in the cluster file, or a100 in the trace, if they are the same"}},
		"whole name": {typed("a100"), []traces.Job{job(1, "NVIDIA-A100-SXM4-80GB")},
			[]string{
				"1 asks for GPU type NVIDIA-A100-SXM4-80GB, and it has a100: write gpu_type: NVIDIA-A100-SXM4-80GB in the cluster file, or a100 in the trace, if they are the same"}},
		"another": {typed("v100", "p100"), []traces.Job{job(1, "h100", "h200")},
			[]string{"1 asks for GPU type h100 or h200, and it has p100, v100"}},
		"a slice": {typed("a100"), []traces.Job{job(1, "1g.10gb")},
			[]string{
				"1 asks for GPU type 1g.10gb, and it has a100: a slice of a GPU (MIG) is a GPU of its own type, gpu_type: 1g.10gb in a cluster file"}},
		"many types": {typed("v100"),
			[]traces.Job{job(1, "a"), job(1, "a"), job(1, "b"), job(1, "c"), job(1, "d"), job(1, "e")},
			[]string{"2 ask for GPU type a, and it has v100", "2 ask for other GPU types",
				"1 asks for GPU type b, and it has v100", "1 asks for GPU type c, and it has v100"}},
		"escapes": {typed("v100"), []traces.Job{job(1, "\x1b[2J")},
			[]string{"1 asks for GPU type \ufffd[2J, and it has v100"}},
		"enough not": {typed("a100", "v100"), []traces.Job{job(9, "a100"), needs(1000, 1, job(1)), needs(1, 9999, job(0))},
			[]string{"3 ask for more GPUs of a type, or more cores or memory, than its nodes have"}},
		"on too many nodes": {typed("a100", "v100"), []traces.Job{on(3, job(3)), on(1, job(16)), on(2, job(18))},
			[]string{"2 ask for more GPUs on each of their nodes, or for more such nodes, than it has",
				"1 asks for more than its 16 GPUs"}},
		"no such VC": {divided, []traces.Job{in("test", job(1)), in("test", job(1)), in("", job(1)), in("prod", job(5))},
			[]string{"2 belong to virtual cluster test, and the cluster has prod, dev",
				"1 asks for more than the quota of the virtual cluster",
				"1 belongs to no virtual cluster, or to others, and the cluster has prod, dev"}},
		"all of them": {literal(typed("a100")), []traces.Job{job(9), job(10), job(1, "A100")},
			[]string{"2 ask for more than its 8 GPUs",
				"1 asks for GPU type A100, and it has a100: write gpu_type: A100 in the cluster file, or a100 in the trace, if they are the same"}},
	} {
		cl, err := cluster.New(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		var u cluster.Unfit
		for i := range c.jobs {
			if _, ok := cl.Request(&c.jobs[i]); ok {
				t.Fatalf("%s: job %d fits", name, i)
			}
			u.Count(cl, &c.jobs[i])
		}
		if got := u.Reasons(cl); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	var none cluster.Unfit
	c, err := cluster.New(typed("a100"))
	if err != nil || none.Reasons(c) != nil {
		t.Error(err, fmt.Sprint(none.Reasons(c)))
	}
}
