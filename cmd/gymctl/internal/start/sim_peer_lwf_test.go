package start_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// The two jobs that share one node's link but no GPU, worked by hand in the tests of peer/lwf, and one that needs more
// GPUs.
const lwfJobs = "job,arrival_ms,workers,model,iters,size_mb,fw_ms,bw_ms,mem_mb\n" +
	"large,0,3,vgg16,4,526.4,36,54,4527\nsmall,1,3,resnet50,12,99.2,25,37,3213\nhuge,2,7,resnet50,1,99.2,25,37,3213\n"

func TestSimOnTheMachineOfLWF(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", lwfJobs)
	out := clitest.Must(t, "sim", "--peer", "lwf-pure", "--trace", "jobs.csv", "--cluster", "3x2", "--policy",
		"ssf-lwf32-srsf-1-false",
		"--json", "--jobs-out", "out.csv", "--events", "events.jsonl")
	var d struct {
		Policy  string
		Trace   struct{ Refused int }
		Metrics struct {
			Finished int
			Makespan float64                `json:"makespan_s"`
			JCT      struct{ Mean float64 } `json:"jct_s"`
		}
		LWF struct {
			Question string
			Steps    int
			MeanJCT  float64 `json:"mean_jct_ms"`
		}
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	// The ends are those of the recorded run of the authors' program: 3232 and 2836.
	if d.Policy != "ssf-lwf32-srsf-1-false" || d.Trace.Refused != 1 || d.Metrics.Finished != 2 ||
		d.Metrics.Makespan != 3.232 || d.LWF.MeanJCT != (3232+2835)/2.0 ||
		d.Metrics.JCT.Mean != d.LWF.MeanJCT/1000 || d.LWF.Question != "pure" || d.LWF.Steps != 3233 {
		t.Errorf("got %s", out)
	}
	rows, err := os.ReadFile("out.csv")
	if err != nil {
		t.Fatal(err)
	}
	const want = "job_id,user,vc,num_gpu,submit_time,first_start,finish,duration,wait,jct,slowdown,preemptions,migrations,state," +
		"placed_ms,first_task_ms,finish_ms,nodes,gpus_in_worker_order\n" +
		"large,,,3,0,0,3.232,0.36,0,3.232,8.977777777777778,0,0,finished,0,0,3232,2,0.0 0.1 1.0\n" +
		"small,,,3,0.001,0.001,2.836,0.744,0,2.835,3.810483870967742,0,0,finished,1,1,2836,2,1.1 2.0 2.1\n" +
		"huge,,,7,0.002,,,0.062,,,,0,0,refused,,,,,\n"
	if string(rows) != want {
		t.Errorf("got\n%s", rows)
	}
	events, err := os.ReadFile("events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	// Two jobs of three workers and 4 and 12 iterations: placements, ends, two tasks of a worker and two events of a
	// transfer.
	if n := 2*2 + (4+12)*(2*3+2); strings.Count(string(events), "\n") != n ||
		!strings.Contains(string(events), `{"t_s":0.036,"event":"bw","job":"large","gpus":[2]}`) ||
		!strings.Contains(string(events), `{"t_s":0.063,"event":"comm_start","job":"small","gpus":[]}`) {
		t.Errorf("want %d events, got\n%s", n, events)
	}
	// Any trace whose jobs have models.
	clitest.Must(t, "sim", "--peer", "lwf-orig", "--jobs", "40", "--mix", "lwf", "--cluster", "lwf-16x4", "--policy",
		"ssf-lwf1-srsf-1-true,ssf-random-srsf-0-false", "--jobs-out", "two.csv")
	if all := jobRows(t, "two.csv"); len(all) != 80 || all[0]["policy"] != "ssf-lwf1-srsf-1-true" ||
		all[40]["policy"] != "ssf-random-srsf-0-false" || len(all[0]) != 20 {
		t.Errorf("%d rows, the first %v", len(all), all[0])
	}
}

func TestSimMistakesOnTheMachineOfLWF(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", lwfJobs)
	clitest.Write(t, "bad.csv", strings.Replace(lwfJobs, "99.2", "much", 1))
	const rule = " --policy ssf-lwf1-srsf-1-true"
	for args, want := range map[string]string{
		"--peer lwf-pur --cluster 3x2":               `--peer: got "lwf-pur", want one of dally-waiting-only, dally-published, lwf-pure, lwf-orig, lwf-pureall; did you mean lwf-pure?`,
		"--peer lwf-pure --cluster 3x2 --policy sjf": `--policy: got "sjf", want ORDER-PLACE-TASKS-THRESHOLD-ADAPTIVE, as ssf-lwf1-srsf-1-true`,
		"--peer lwf-pure --cluster 3x2 --lease 2h" +
			rule: "--lease: got 2h0m0s, want it left out: the machine lwf-pure has no such setting",
		"--peer lwf-pure --cluster 3x2 --comm ring" + rule: "--comm does not go with --peer",
		"--peer lwf-pure --cluster pool:8 jobs.csv" +
			rule: "--cluster: got pool:8, want nodes of equally many GPUs for this machine, as 16x4",
		"--peer lwf-pure --cluster 3x2 bad.csv" +
			rule: `bad.csv:3: size_mb: got "much", want a number from 0 to 1e9`,
		"--peer lwf-pure --cluster 3x2 --jobs 5" +
			rule: "job 0 has no model with a compute time, want --mix lwf or a trace with models for a machine that follows transfers",
		"--peer lwf-pure --cluster 1x2 jobs.csv" +
			rule: "3 of 3 jobs can never fit cluster 1x2 (2 GPUs of 32768 MB): large, small, huge; want a larger cluster",
		"--peer lwf-pure --cluster 3x2 --fail-refused jobs.csv" +
			rule: "1 of 3 jobs can never fit cluster 3x2 (6 GPUs of 32768 MB): huge; want a larger cluster",
		"--peer lwf-pure --cluster 3x2 none.csv" +
			rule: `sim: there is no file "none.csv"; want the FILE of a trace (policies follow --policy, clusters --cluster)`,
	} {
		code, _, stderr := clitest.Run(t, append([]string{"sim"}, strings.Fields(args)...)...)
		if code != cli.ExitMistake || stderr != "gymctl: "+want+"\n" {
			t.Errorf("%s: %d, %s\nwant %s", args, code, stderr, want)
		}
	}
}
