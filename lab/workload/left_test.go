package workload

import (
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

func TestWhatIsLeftOutIsCountedByReason(t *testing.T) {
	c, err := cluster.New(cluster.Spec{Name: "mine",
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 8, GPUType: "a100", CPUs: 64}}}},
		VCs:   []cluster.VCSpec{{Name: "gpu"}, {Name: "few", Quota: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	job := func(id string, gpus int, change func(j *traces.Job)) traces.Job {
		j := traces.Job{ID: id, VC: "gpu", GPUs: gpus, GPUMilli: 1000, Work: time.Hour}
		if change != nil {
			change(&j)
		}
		return j
	}
	typed := func(j *traces.Job) { j.GPUTypes = []string{"v100"} }
	jobs := []traces.Job{
		job("fits", 16, nil), job("fits too", 8, func(j *traces.Job) { j.GPUTypes, j.Nodes = []string{"A100"}, 1 }),
		job("large", 32, nil), job("typed", 4, typed), job("typed too", 2, typed),
		job("wide", 16, func(j *traces.Job) { j.Nodes = 1 }), job("lost", 1, func(j *traces.Job) { j.VC = "debug" }),
		job("greedy", 3, func(j *traces.Job) { j.VC = "few" }), job("none", 8, func(j *traces.Job) { j.Work = 0 }),
		job("cores", 1, func(j *traces.Job) { j.CPUMilli = 65000 }), job("cpu", 0, nil),
		job("cpu too", 0, func(j *traces.Job) { j.VC = "debug" }),
	}
	l := CountLeft(c, jobs, 0)
	got := l.Sentences(c, formatSacct)
	want := []string{
		"1 of 12 jobs (8.3 %), 39 % of the GPU time, asks for more than the 16 GPUs of the cluster, up to 32 (column AllocTRES, " +
			"first job large): name the cluster on which they ran",
		"1 of 12 jobs (8.3 %), 19.3 % of the GPU time, asks for more GPUs on each node than nodes have, or for more such nodes, " +
			"as 16 GPUs on 1 node (column NNodes, first job wide): name a cluster with such nodes",
		"2 of 12 jobs (16.7 %), 7.2 % of the GPU time, ask for GPU type v100, which no node has (column ReqTRES, first job typed): " +
			"name it in the cluster, as in 8x8:v100, or no type, as in 8x8",
		"1 of 12 jobs (8.3 %), 3.6 % of the GPU time, asks for more than the quota of virtual cluster few (column Partition, " +
			"first job greedy): raise the quota in the cluster file",
		"3 other reasons",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if l.CPUOnly != 2 || l.Jobs() != 8 || l.Of != 12 || l.Hours != 83 {
		t.Errorf("%+v", l)
	}
	cfg, info := DefaultTraceConfig(), Info{File: "jobs.txt", Format: formatSacct}
	if err := l.Mistake(&cfg, &info, c, "mine"); err != nil {
		t.Errorf("of generated jobs: %v", err)
	}
	cfg.File = "jobs.txt"
	err = l.Mistake(&cfg, &info, c, "mine")
	if err == nil || !strings.HasPrefix(err.Error(), "trace jobs.txt: 71 % of its GPU time cannot run on cluster mine and "+
		"would be left out, and more than 5 % makes results those of another cluster: 1 of 12 jobs") ||
		!strings.HasSuffix(err.Error(), "to go without it use accept-left-out (trace.accept_left_out: true)") {
		t.Error(err)
	}
	cfg.AcceptLeftOut = true
	if err := l.Mistake(&cfg, &info, c, "mine"); err != nil {
		t.Error(err)
	}
	most := CountLeft(c, jobs[:2], 8)
	if s := most.Sentences(c, FormatCSV); len(s) != 1 || !strings.Contains(s[0],
		"asks for more GPUs than the environment takes, up to 16 (column num_gpu, first job fits): raise env.max_gpus") {
		t.Errorf("%q", s)
	}
	if none := CountLeft(c, jobs[:1], 0); none.Share() != 0 || none.Sentences(c, "") != nil {
		t.Errorf("%+v", none)
	}
}
