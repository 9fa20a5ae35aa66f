package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// fewJobs are the arguments of a search over few jobs.
var fewJobs = strings.Fields("tune -c quickstart-exact --set trace.synth.jobs=3000 --set env.window=48 --set env.warm=16 --set env.load=2 --population 4 --windows 6 --every 1 --seed 3")

func TestTuneFindsWeightsThatOthersPlay(t *testing.T) {
	t.Chdir(t.TempDir())
	out := must(t, append(fewJobs, "--generations", "3", "--dir", "w")...)
	for _, want := range []string{"validation windows, which chose the weights", "sjf+skip ", "area+skip ", "hold, at the beginning ", "weights: w/hold.yaml", "gymctl eval --config quickstart-exact --policies sjf+skip,area+skip,hold,rollout:hold --hold w/hold.yaml"} {
		if !strings.Contains(out, want) {
			t.Errorf("printed %q, want %q in it", out, want)
		}
	}
	if again := must(t, append(fewJobs, "--generations", "3", "--dir", "w")...); !strings.Contains(again, "0.0 million jobs") {
		t.Errorf("a search that has ended simulates again: %s", again)
	}
	if doc := must(t, append(fewJobs, "--generations", "3", "--dir", "w", "--json")...); !strings.Contains(doc, `"file":"w/hold.yaml"`) || !strings.Contains(doc, `"hold":{"age":`) {
		t.Errorf("the document is %s", doc)
	}
	own := "eval -c quickstart-exact --set trace.synth.jobs=3000 --set env.window=48 --set env.warm=16 --windows 2 --no-whole --policies sjf+skip,hold"
	if table := must(t, append(strings.Fields(own), "--hold", "w/hold.yaml")...); !strings.Contains(table, "\nhold ") {
		t.Errorf("eval printed %s", table)
	}
	sim := strings.Fields("sim --jobs 200 --cluster 4x4 --policy hold")
	plain, held := must(t, sim...), ""
	write(t, "all.yaml", "base: 100\nage: 0\n")
	if held = must(t, append(sim, "--hold", "all.yaml")...); held == plain {
		t.Error("sim plays the same with weights that hold everything back")
	}
	if set := must(t, append(sim, "--set", "policy.hold.base=100")...); set != held {
		t.Errorf("--set policy.hold.base prints\n%s, --hold\n%s", set, held)
	}

	write(t, "odd.yaml", "bsae: 1\n")
	for _, c := range []struct{ args, want string }{
		{"eval --policies sjf+skip --hold w/hold.yaml", "--hold: none of sjf+skip is hold; want a policy hold or rollout:hold"},
		{"eval --policies hold --hold odd.yaml", "odd.yaml:1: bsae: unknown key; did you mean base?"},
		{"eval --policies rollout:hold --hold none.yaml", "none.yaml: no such file"},
		{"eval --policies hold+skip", "hold has its own"},
		{"sim --policy fifo --hold w/hold.yaml", "--hold: none of fifo is hold"},
		{"tune --population 3", "--population: got 3, want 4 to 10000"},
		{"tune --only widht", `--only: got "widht", want one of width`},
		{"tune --workers 0", "--workers: got 0"},
		{"tune --estimates none", "hold ranks by run time, which estimates: none hides"},
		{"tune -c cartpole-ppo", "tune: CartPole-v1 has no heuristics; want a scheduling environment on the simulator, such as JobSelect-v1"},
	} {
		wrong(t, strings.Fields(c.args), c.want)
	}
	wrong(t, append(fewJobs, "--generations", "3", "--dir", "w", "--set", "trace.seed=9"), "the folder holds a search with another configuration")
}

func TestAnInterruptedTuneGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	want := must(t, append(fewJobs, "--generations", "4", "--dir", "w")...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, said bytes.Buffer
	if code := execute(ctx, append(fewJobs, "--generations", "4", "--dir", "v"), &out, &said); code != exitInterrupted || !strings.Contains(said.String(), "the same command with --dir v continues") {
		t.Errorf("exit code %d, said %q", code, said.String())
	}
	if got := must(t, append(fewJobs, "--generations", "4", "--dir", "v")...); strings.ReplaceAll(got, "v/hold", "w/hold") != want {
		t.Errorf("continued, it prints\n%s, want\n%s", got, want)
	}
}
