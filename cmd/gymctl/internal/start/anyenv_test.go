package start_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/clitest"
)

// A user's trace and cluster take the place of the preset's, in any environment on the simulator.
func TestAnyEnvironmentTrainsOnAUsersTraceAndCluster(t *testing.T) {
	clitest.OneGoroutine(t)
	clitest.InYard(t)
	for _, c := range []struct {
		args string
		want []string
	}{
		{"-c delayoffer-ppo --cluster 4x8 --set trace.mix=dally --set env.window=16",
			[]string{"mean JCT", "timers@slots", "negative = ppo@"}},
		{"--env QueueRank-v1 --cluster pool:16 --set env.estimates=exact --set env.window=16",
			[]string{"bounded slowdown", "wfp3@slots", "difference of bounded slowdown on the same windows"}},
		{"--env GPUPick-v1 --cluster 2x8 --set env.window=16",
			[]string{"mean communication cost", "rack@slots", "RULE@slots acts through the agent's actions."}},
		{"--env PolicyMix-v1 --cluster 2x8 --set env.window=16 --set env.warm=4", []string{"mean JCT", "wfp3@slots"}},
	} {
		dir := "run" + strings.Fields(c.args)[1]
		args := append(strings.Fields("train --trace jobs.csv --set eval.windows=2 --run-dir "+dir+" "+c.args),
			clitest.Brief...)
		code, out, said := clitest.Run(t, args...)
		if code != 0 || !strings.Contains(said, "workload  jobs.csv (csv): 600 jobs") ||
			!strings.Contains(said, "cluster   "+after(c.args, "--cluster")+"\n") {
			t.Errorf("%s: exit code %d, said %q", c.args, code, said)
		}
		for _, want := range append(c.want, "agent vs it [95 %]", "2 windows of 16 jobs each") {
			if !strings.Contains(out, want) {
				t.Errorf("%s: printed\n%s\nwant %q in it", c.args, out, want)
			}
		}
		if config := clitest.Read(t, dir+"/config.yaml"); !strings.Contains(config, "jobs.csv") ||
			!strings.Contains(config, "cluster: "+after(c.args, "--cluster")) {
			t.Errorf("%s: config.yaml holds another workload or cluster:\n%s", c.args, config)
		}
	}
}

// after returns the argument after the flag called name.
func after(args, name string) string {
	_, rest, _ := strings.Cut(args, name+" ")
	word, _, _ := strings.Cut(rest, " ")
	return word
}

// Rules and heuristics of any environment are compared without an agent.
func TestEvalComparesTheRulesOfAnyEnvironment(t *testing.T) {
	clitest.InYard(t)
	for _, c := range []struct{ args, metric, first string }{
		{"--env QueueRank-v1 --trace jobs.csv --cluster pool:16 --set env.estimates=exact --set env.window=16 --windows 2 --policies sjf+skip,wfp3@slots", "", "sjf+skip"},
		{"--env DelayOffer-v1 --trace jobs.csv --cluster 4x8 --set trace.mix=dally --set env.window=16 --windows 2 --policies las+skip,auto@slots", "", "las+skip"},
		{"--env GPUPick-v1 --trace jobs.csv --cluster 2x8 --set env.window=16 --windows 2 --policies rack@slots,random@slots",
			"comm_cost", "rack@slots"},
		{"--env DAGPlace-v1 --set env.tasks=8 --episodes 2 --policies heft,eft@slots", "makespan_over_heft", "heft"},
		{"--env WorkerPlace-v1 --trace models.csv --set env.jobs=4 --episodes 2 --policies random@slots,sjf-waits@slots",
			"jct_s", "random@slots"},
	} {
		var doc struct {
			Env, Metric string
			Episodes    int
			Windows     []struct{}
			Policies    []struct {
				Name    string
				Score   *struct{ Mean float64 }
				Metrics *struct {
					JCT struct{ Mean float64 } `json:"jct_s"`
				}
			}
		}
		if err := json.Unmarshal(
			[]byte(clitest.Must(t, append(strings.Fields("eval --json --no-whole "+c.args), "--workers", "1")...)), &doc); err !=
			nil {
			t.Fatal(err)
		}
		if doc.Env != after(c.args, "--env") || len(doc.Policies) != 2 || doc.Policies[0].Name != c.first ||
			len(doc.Windows)+doc.Episodes != 2 {
			t.Errorf("%s: the document is %+v", c.args, doc)
		}
		if c.metric != "" && doc.Metric != c.metric {
			t.Errorf("%s: compared by %q, want %q", c.args, doc.Metric, c.metric)
		}
		for _, p := range doc.Policies {
			if p.Metrics == nil && p.Score == nil {
				t.Errorf("%s: %s has no numbers", c.args, p.Name)
			}
		}
	}
}

func TestWhatAnEnvironmentDoesNotTakeIsRefusedInOneSentence(t *testing.T) {
	clitest.InYard(t)
	for _, c := range []struct {
		args string
		want []string
	}{
		{"--env QueueRnk-v1", []string{`--env: environment "QueueRnk-v1" is unknown; did you mean QueueRank-v1?`}},
		{"--env queuerank-v1", []string{"did you mean QueueRank-v1?"}},
		{"--env QueueRank-v1 -c quickstart", []string{"--env does not go with --config"}},
		{"--env DAGPlace-v1 --trace jobs.csv",
			[]string{"DAGPlace-v1 takes task graphs (WfCommons, Alibaba, TPC-H, dag JSON); jobs.csv holds jobs without graphs"}},
		{"--env DAGPlace-v1 --trace none", []string{"task graphs none: there is no such file or folder\n"}},
		{"--env WorkerPlace-v1 --agent ppo --trace jobs.csv",
			[]string{"jobs.csv: WorkerPlace-v1: ", "it names no model", "one of resnet-50, vgg-16, ", "trace.mix=dl2"}},
		{"--env DelayOffer-v1 --trace jobs.csv --cluster 4x8 --set env.window=16 --set trace.mix=",
			[]string{"jobs.csv: job ", "has no profile of its model", "trace.mix"}},
		{"--env DAGPlace-v1 --cluster 4x8",
			[]string{"--cluster: DAGPlace-v1 has no cluster; its settings say what runs where"}},
		{"--env WorkerPlace-v1 --cluster 4x8",
			[]string{"--cluster: WorkerPlace-v1 has no cluster; its settings say what runs where"}},
		{"--env DAGPlace-v1 --set trace.skip=3", []string{"trace.skip: got 3, want nothing: DAGPlace-v1 takes task graphs"}},
		{"--env GPUPick-v1 --set env.reward=wait", []string{"env.reward: unknown key"}},
		{"--env GPUPick-v1 --set env.windo=9", []string{"env.windo: unknown key; did you mean window?"}},
		{"--env GPUPick-v1 --cluster pool:64",
			[]string{"GPUPick-v1: a counter of 64 GPUs has no machines to choose between"}},
		{"--env QueueRank-v1 --trace jobs.csv --cluster pool:16 --set env.window=16 --set env.estimates=trace",
			[]string{"have no estimate in their trace"}},
		{"--env CartPole-v1 --trace jobs.csv", []string{"--trace: CartPole-v1 has no workload"}},
		{"--env CartPole-v1 --cluster 4x8", []string{"--cluster: CartPole-v1 has no cluster\n"}},
		{"--env CartPole-v1 --set env.reward=wait",
			[]string{`env.reward: got "wait", want nothing: CartPole-v1 has no settings`}},
	} {
		clitest.Wrong(t, append(strings.Fields("train --run-dir run "+c.args), clitest.Brief...), c.want...)
	}
	for args, want := range map[string]string{
		"--env DAGPlace-v1 --policies fifo":                         "want a planner or RULE@slots: policy \"fifo\" is unknown",
		"--env GPUPick-v1 --policies sjf@slots":                     "rule \"sjf\" is unknown; use one of random, first-fit, ",
		"--env DAGPlace-v1 --windows 3":                             "--windows: got 3, want nothing: DAGPlace-v1 has no windows; see eval.episodes",
		"--env GPUPick-v1 --episodes 3":                             "--episodes: got 3, want nothing: GPUPick-v1 is judged on windows",
		"--env DAGPlace-v1 --serve 127.0.0.1:0 --external somebody": "--serve: DAGPlace-v1 has no windows that other programs could play too",
	} {
		clitest.Wrong(t, strings.Fields("eval "+args), want)
	}
	if _, err := os.Stat("run"); err == nil {
		t.Error("a run directory was made")
	}
}
