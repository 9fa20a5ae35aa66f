package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// kindsOf says of each entry what is in it.
func kindsOf(s cluster.Spec) string {
	var all []string
	for i, r := range s.Racks {
		for _, n := range r.Nodes {
			all = append(all, fmt.Sprintf("r%d %dx%d%s %s", i, n.Count.N(), n.GPUs, n.GPUType, strings.Join(n.Names, ",")))
		}
	}
	return strings.Join(all, "; ")
}

func TestAClusterIsGuessedFromTheNodesOfJobs(t *testing.T) {
	ran := func(from, hours, gpus int, hosts string, types ...string) traces.Job {
		return traces.Job{GPUs: gpus, GPUMilli: 1000, GPUTypes: types, Hosts: hosts, Started: true,
			Waited: time.Duration(from) * time.Hour, Work: time.Duration(hours) * time.Hour}
	}
	for name, c := range map[string]struct {
		jobs       []traces.Job
		want, says string
	}{
		"what ran at once": {[]traces.Job{ran(0, 2, 4, "g1"), ran(1, 1, 4, "g1", "a100"), ran(2, 1, 2, "g1")}, "r0 1x8a100 g1",
			"The cluster was guessed from the nodes on which the jobs ran and the most GPUs that they held on each at once: " +
				"1 node, 8 GPUs (1 with 8 GPUs a100)."},
		"one after the other": {[]traces.Job{ran(0, 2, 4, "g1"), ran(2, 2, 4, "g1")}, "r0 1x4 g1", "4 GPUs"},
		"gangs":               {[]traces.Job{ran(0, 2, 24, "g[9-11]"), ran(0, 2, 4, "h1")}, "r0 3x8 g9,g10,g11; r0 1x4 h1", "3 with 8 GPUs, 1 with 4 GPUs"},
		"nodes of one name are alike": {[]traces.Job{ran(0, 2, 24, "g[1-3]", "A100"), ran(0, 1, 2, "g4")}, "r0 4x8A100 g1,g2,g3,g4",
			"1 node is taken to be as large as most"},
		"a requeued job counts twice": {[]traces.Job{ran(0, 2, 24, "g[1-3]"), ran(1, 1, 4, "g2")}, "r0 3x8 g1,g2,g3", "1 node is"},
		"but one job is certain":      {[]traces.Job{ran(0, 2, 24, "g[1-3]"), ran(3, 1, 16, "g4")}, "r0 3x8 g1,g2,g3; r0 1x16 g4", ""},
		"two kinds of one name":       {[]traces.Job{ran(0, 2, 16, "g[1-2]"), ran(0, 1, 8, "g[3-4]")}, "r0 2x8 g1,g2; r0 2x4 g3,g4", ""},
		"an unequal job":              {[]traces.Job{ran(0, 2, 9, "g[1-2]")}, "r0 2x4 g1,g2", ""},
		"the type of most":            {[]traces.Job{ran(0, 9, 8, "g1", "a100"), ran(9, 1, 8, "g1", "v100"), ran(10, 1, 8, "g2", "a100", "v100")}, "r0 2x8a100 g1,g2", ""},
		"some do not say":             {[]traces.Job{ran(0, 2, 8, "g1"), ran(0, 2, 8, "")}, "r0 1x8 g1", "1 of 2 GPU jobs do not say"},
		"no CPU jobs":                 {[]traces.Job{ran(0, 2, 8, "g1"), ran(0, 2, 0, "c1")}, "r0 1x8 g1", ""},
		"without nodes":               {[]traces.Job{ran(0, 2, 8, ""), ran(1, 2, 8, ""), ran(2, 2, 3, "")}, "r0 2x8 ", "no column says on which nodes jobs ran: at most 16 GPUs ran at once, so it is taken to be 2 nodes of 8"},
	} {
		for range 2 {
			spec, says, err := GuessCluster(c.jobs)
			if err != nil || kindsOf(spec) != c.want || !strings.Contains(says, c.says) {
				t.Errorf("%s: %s, %v, want %s\n%s", name, kindsOf(spec), err, c.want, says)
			}
			slices.Reverse(c.jobs)
		}
	}
	withNodes := ran(0, 2, 8, "")
	withNodes.Nodes = 2
	if spec, says, err := GuessCluster([]traces.Job{withNodes, ran(0, 1, 3, "")}); err != nil || kindsOf(spec) != "r0 3x4 " ||
		!strings.Contains(says, "3 nodes of 4 (the most that a job had on each") {
		t.Errorf("%s, %v\n%s", kindsOf(spec), err, says)
	}
	if _, _, err := GuessCluster([]traces.Job{{GPUs: 8, GPUMilli: 1000, Work: time.Hour}}); err == nil ||
		!strings.Contains(err.Error(), "no job of the trace has GPUs and a recorded start (AllocTRES and Start of sacct, num_gpu and start_time of a CSV file); name it with cluster") {
		t.Error(err)
	}
}

func TestClustersOfNodeLists(t *testing.T) {
	const nodes = "NODELIST GRES CPUS MEMORY PARTITION\ng1 gpu:a100:8 64 1024 gpu*\ng2 gpu:a100:8 64 1024 gpu*\n" +
		"g2 gpu:a100:8 64 1024 debug\nc1 (null) 8 1024 cpu\n"
	const topology = "SwitchName=a Nodes=g1,c1\nSwitchName=b Nodes=g2\nSwitchName=top Switches=a,b\n"
	list, topo := file(t, "nodes.txt", nodes), file(t, "topology.conf", topology)
	for name, want := range map[string]string{
		list: "r0 2x8a100 g1,g2; r0 1x0 c1", list + "+" + topo: "r0 1x8a100 g1; r0 1x0 c1; r1 1x8a100 g2",
		topo + "+" + list: "r0 1x8a100 g1; r0 1x0 c1; r1 1x8a100 g2", topo: "r0 2x8 g1,c1; r1 1x8 g2",
	} {
		spec, err := ClusterSpec(name)
		if err != nil || kindsOf(spec) != want {
			t.Errorf("%s: %s, %v, want %s", name, kindsOf(spec), err, want)
		}
		if err == nil && (spec.Racks[0].Nodes[0].CPUs != 64) == (name != topo) {
			t.Errorf("%s: %+v", name, spec)
		}
	}
	if parts, err := Partitions(list); err != nil || fmt.Sprint(parts) != "[{gpu g[1-2]} {debug g2} {cpu c1}]" {
		t.Errorf("%v, %v", parts, err)
	}
	if parts, err := Partitions(list + "+" + topo); err != nil || len(parts) != 3 {
		t.Errorf("%v, %v", parts, err)
	}
	if parts, err := Partitions("8x8"); err != nil || parts != nil {
		t.Errorf("%v, %v", parts, err)
	}
	other := file(t, "other.conf", "SwitchName=a Nodes=x1\n")
	for name, want := range map[string]string{
		list + "+" + list:                              "these are sinfo and sinfo; use NODES+TOPOLOGY",
		topo + "+" + other:                             "these are topology and topology; use NODES+TOPOLOGY",
		list + "+/no/such/file":                        "cluster file /no/such/file: there is no such file; use NODES+TOPOLOGY",
		list + "+" + other:                             "no node of the list is on a switch",
		list + "+" + file(t, "x.yaml", "a: 1"):         "this is neither a list of nodes nor a topology.conf; use",
		file(t, "h.txt", "g1 gpu:a100:8 64 1024 gpu*"): "these are rows of sinfo without its header",
		file(t, "l.txt", "NODELIST NODES PARTITION STATE CPUS\ng1 1 gpu idle 8\n"): "no column GRES",
	} {
		if _, err := ClusterSpec(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestPartitionsBecomeVirtualClusters(t *testing.T) {
	list := file(t, "nodes.txt", "NODELIST GRES PARTITION\ng1 gpu:8 gpu*\ng2 gpu:8 gpu*\ng2 gpu:8 debug\nc1 (null) cpu\n")
	spec, err := ClusterSpec(list)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := Partitions(list)
	if err != nil {
		t.Fatal(err)
	}
	job := func(vc string, gpus int) traces.Job { return traces.Job{VC: vc, GPUs: gpus, GPUMilli: 1000} }
	for name, c := range map[string]struct {
		jobs []traces.Job
		want string
	}{
		"one has all GPUs":  {[]traces.Job{job("gpu", 8), job("cpu", 0)}, "[]"},
		"one has a part":    {[]traces.Job{job("gpu", 8), job("debug", 1)}, "[{gpu 0 0 [g[1-2]]} {debug 0 0 [g2]}]"},
		"others altogether": {[]traces.Job{job("x", 8)}, "[]"},
	} {
		got := Divided(spec, parts, c.jobs)
		if fmt.Sprint(got.VCs) != c.want || got.Validate() != nil || spec.VCs != nil {
			t.Errorf("%s: %v, %v, want %s", name, got.VCs, got.Validate(), c.want)
		}
		x, err := cluster.New(got)
		if err != nil {
			t.Fatal(err)
		}
		if _, fits := x.Request(&c.jobs[0]); !fits {
			t.Errorf("%s: %+v does not fit", name, c.jobs[0])
		}
	}
}
