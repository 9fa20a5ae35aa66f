package start_test

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/nets/kernel"
)

// pole is a very short run without a workload.
const pole = `name: pole
env: {id: CartPole-v1}
ppo: {steps: 32, epochs: 2, minibatches: 2, network: {hidden: [16]}}
train: {steps: 400, envs: 4, log_every: 100, eval_every: 200, checkpoint_every: 200}
eval: {episodes: 5, validation: 2}
`

func inPole(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	clitest.Write(t, "pole.yaml", pole)
	was := kernel.Set()
	t.Cleanup(func() {
		if err := kernel.Use(was); err != nil {
			t.Error(err)
		}
	})
}

// The keys of the JSON document of an evaluation over episodes, in order.
var episodeKeys = strings.Fields(`env solved_at episodes seed kernels policies policies.name policies.kind policies.return
policies.return.mean policies.return.std policies.return.iqm policies.return.ci95 policies.return.per_episode policies.length_mean policies.solved`)

func TestTrainAndEvalOnAProblem(t *testing.T) {
	inPole(t)
	out := clitest.Must(t, "train", "-c", "pole.yaml", "--run-dir", "run")
	for _, want := range []string{"ppo:run@", "random ", "CartPole-v1: 5 episodes from seed 1",
		"a mean return of at least 475", "The agent is run/checkpoints/"} {
		if !strings.Contains(filepath.ToSlash(out), want) {
			t.Errorf("printed %q, want %q in it", out, want)
		}
	}
	doc := clitest.Must(t, "eval", "--checkpoint", "run", "--json")
	if got := strings.Join(clitest.Keys(t, doc), "\n"); got != strings.Join(episodeKeys, "\n") {
		t.Errorf("keys\n%s, want\n%s", got, strings.Join(episodeKeys, "\n"))
	}
	var kept bytes.Buffer
	if err := json.Compact(&kept, []byte(clitest.Read(t, filepath.Join("run", "eval", "test.json")))); err != nil ||
		kept.String() != strings.TrimSpace(doc) {
		t.Errorf("eval/test.json (%v) is another comparison than that of eval", err)
	}
	var d struct {
		Episodes int
		Policies []struct{ Name string }
	}
	if err := json.Unmarshal(
		[]byte(clitest.Must(t, "eval", "--checkpoint", "run", "--checkpoint", "run/checkpoints/200", "--episodes", "7",
			"--policies", "random", "--json")), &d); err == nil {
		if d.Episodes != 7 || len(d.Policies) != 3 {
			t.Errorf("%+v, want 7 episodes of 3 policies", d)
		}
	} else {
		t.Error(err)
	}
	clitest.Wrong(t, []string{"eval", "--checkpoint", "run", "--policies", "fifo"}, "--policies: got",
		`random: policy "fifo" is unknown`)
	clitest.Wrong(t, []string{"eval", "--checkpoint", "run", "--windows", "3"},
		"--windows: got 3, want nothing: CartPole-v1 has no windows")
	clitest.Wrong(t, []string{"eval", "--checkpoint", "run", "--trace", "jobs.csv"},
		"--trace: CartPole-v1 has no workload")
	clitest.Wrong(t, []string{"eval", "--checkpoint", "run", "--episodes", "0"}, "--episodes: got 0")
}

func TestKernelsFlag(t *testing.T) {
	inPole(t)
	_, _, said := clitest.Run(t, "train", "-c", "pole.yaml", "--run-dir", "run", "--no-eval", "--kernels", "portable")
	if !strings.Contains(said, "kernels portable\n") ||
		!strings.Contains(clitest.Read(t, filepath.Join("run", "config.yaml")), "kernels: portable\n") {
		t.Errorf("said %q", said)
	}
	if sets := kernel.Sets(); len(sets) > 1 {
		_, _, said := clitest.Run(t, "train", "--resume", "run", "--no-eval", "--kernels", sets[0], "--set",
			"train.steps=500")
		if !strings.Contains(said, "it was made with kernels portable and goes on with "+sets[0]) {
			t.Errorf("said %q", said)
		}
		if out := clitest.Must(t, "eval", "--checkpoint", "run", "--kernels", "portable", "--json"); !strings.Contains(out,
			`"kernels":"portable"`) {
			t.Errorf("printed %s", out)
		}
	}
	clitest.Wrong(t, []string{"bench", "training", "--quick", "--kernels", "mmx"},
		`--kernels: got "mmx", want one of auto`)
}

func TestTrainSeedsAndEvalThem(t *testing.T) {
	inPole(t)
	out := clitest.Must(t, "train", "-c", "pole.yaml", "--run-dir", "all", "--seeds", "2", "--seed", "4", "--workers", "2")
	for _, want := range []string{"ppo:seed-4@", "ppo:seed-5@", "\nall ", "0 of 2"} {
		if !strings.Contains(out, want) {
			t.Errorf("printed %q, want %q in it", out, want)
		}
	}
	if again := clitest.Must(t, "train", "--resume", "all"); again != out {
		t.Errorf("resumed, the table is\n%s, want\n%s", again, out)
	}
	doc := clitest.Must(t, "train", "--resume", "all", "--seeds", "2", "--json")
	for _, key := range []string{`"metric":"return"`, `"iqm":`, `"ci95":[`, `"seeds":[{"seed":4,`, `"solved":0`} {
		if !strings.Contains(doc, key) {
			t.Errorf("%s is missing in %s", key, doc)
		}
	}
	if table := clitest.Must(t, "eval", "--checkpoint", "all"); !strings.Contains(table, "seed-4@") ||
		!strings.Contains(table, "seed-5@") {
		t.Errorf("eval of the folder printed %s", table)
	}
	clitest.Wrong(t, []string{"train", "--resume", "all", "--seeds", "3"},
		"--seeds: got 3, want the 2 that all began with")
	clitest.Wrong(t, []string{"train", "-c", "pole.yaml", "--run-dir", "all"}, "all holds a run already")
}

func TestInterruptedSeedsGoOn(t *testing.T) {
	inPole(t)
	want := clitest.Must(t, "train", "-c", "pole.yaml", "--run-dir", "whole", "--seeds", "2")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	u := &clitest.Until{Text: "seed 1: step", Cancel: cancel}
	var out bytes.Buffer
	if code := clitest.Execute(ctx, []string{"train", "-c", "pole.yaml", "--run-dir", "all", "--seeds", "2"}, &out,
		u); code != cli.ExitInterrupted || out.Len() != 0 ||
		!strings.Contains(u.Said.String(), "continue with --resume all") {
		t.Errorf("exit code %d, printed %q, said %q", code, out.String(), u.Said.String())
	}
	if got := clitest.Must(t, "train", "--resume", "all"); got != want {
		t.Errorf("resumed, the table is\n%s, want\n%s", got, want)
	}
}

func TestSweepPrintsATableAndGoesOn(t *testing.T) {
	inPole(t)
	clitest.Write(t, "search.yaml",
		"base: pole.yaml\nset: [train.steps=200]\nspace: {ppo.lr: {min: 1e-4, max: 1e-2, log: true}}\ntrials: 3\nhalving: {rungs: 2}\n")
	out := clitest.Must(t, "sweep", "-c", "search.yaml", "--dir", "found")
	for _, want := range []string{"trial ", "score", "ppo.lr", "higher is better", "The best trial's runs: "} {
		if !strings.Contains(out, want) {
			t.Errorf("printed %q, want %q in it", out, want)
		}
	}
	if again := clitest.Must(t, "sweep", "--resume", "found"); again != out {
		t.Errorf("resumed, the table is\n%s, want\n%s", again, out)
	}
	if doc := clitest.Must(t, "sweep", "--resume", "found", "--json"); !strings.Contains(doc, `"rungs":[100,200]`) {
		t.Errorf("the document is %s", doc)
	}
	clitest.Write(t, "odd.yaml", "base: pole.yaml\nspace: {ppo.lrr: [1]}\n")
	clitest.Write(t, "lost.yaml", "base: nowhere\nspace: {ppo.lr: [1]}\n")
	clitest.Write(t, "key.yaml", "base: pole.yaml\nspac: {ppo.lr: [1]}\nspace: {ppo.lr: [0.1]}\n")
	for _, c := range []struct{ args, want string }{
		{"-c odd.yaml", "ppo.lrr: unknown key; did you mean lr?"},
		{"-c lost.yaml", "nowhere: there is no such file or preset"},
		{"-c key.yaml", "key.yaml:2: spac: unknown key; did you mean space?"},
		{"-c search.yaml --dir found", "found holds a sweep"},
		{"-c search.yaml --workers 0", "--workers: got 0"},
		{"-c search.yaml --kernels x", `--kernels: got "x", want one of auto`},
		{"--resume found -c search.yaml", "--resume does not go with --config"},
		{"--resume nowhere", "nowhere"},
		{"", "want --config or --resume"},
	} {
		clitest.Wrong(t, append([]string{"sweep"}, strings.Fields(c.args)...), c.want)
	}
}
