package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEvalRefusesBadInputInOneSentence(t *testing.T) {
	inRoom(t, true)
	write(t, "few.csv", "submit_time,duration,num_gpu\n0,10,1\n5,10,1\n")
	for _, c := range []struct {
		args string
		want string
	}{
		{"--checkpoint nowhere", "nowhere|neither a checkpoint"},
		{"--checkpoint run/checkpoints", "neither a checkpoint"},
		{"--checkpoint run --checkpoint run", "named twice"},
		{"--checkpoint run --set env.visible=8", "does not fit this environment"},
		{"--checkpoint run --cluster 2x8", "does not fit this environment"},
		{"--checkpoint run --trace nowhere.csv", "nowhere.csv"},
		{"--checkpoint run --trace few.csv", "few.csv|too few jobs"},
		{"--checkpoint run --format csv", "--format goes with --trace"},
		{"--checkpoint run --policies fifi", `--policies: got "fifi"`},
		{"--checkpoint run --policies fifo,sjf@slot", `--policies: got "sjf@slot"`},
		{"--checkpoint run --policies fifo,fifo+strict", "fifo+strict is named twice"},
		{"--checkpoint run --windows 0", "--windows: got 0"},
		{"--checkpoint run --seeds 0", "--seeds: got 0"},
		{"--checkpoint run --workers 0", "--workers: got 0"},
		{"--checkpoint run --set env.load=1000", "gymctl: env.load: got 1000"},
		{"--checkpoint run --set eval.windows=0", "gymctl: eval.windows: got 0"},
		{"--checkpoint run --set env.estimates=none --set eval.policies=[sjf@slots]", "sjf|hides"},
		{"-c tiny.yaml --policies=", "nothing to evaluate"},
		{"-c tiny.yaml --set trace.synth.jobs=300", "too few jobs|test"},
		{"-c tiny.yaml --set env.lode=1", "lode|load"},
		{"-c quickstat", "quickstart"},
		{"run", "flags only"},
	} {
		wrong(t, append([]string{"eval"}, strings.Fields(c.args)...), strings.Split(c.want, "|")...)
	}
	path := filepath.Join("run", "best.json")
	var best struct{ Step int64 }
	if err := json.Unmarshal([]byte(read(t, path)), &best); err != nil {
		t.Fatal(err)
	}
	n, err := json.Marshal(best.Step)
	if err != nil {
		t.Fatal(err)
	}
	weights := filepath.Join("run", "checkpoints", string(n), "weights.safetensors")
	whole := read(t, weights)
	write(t, weights, whole[:len(whole)-1]+"x")
	wrong(t, []string{"eval", "--checkpoint", "run"}, "weights.safetensors", "sha256")
	write(t, path, `{"step":77}`)
	wrong(t, []string{"eval", "--checkpoint", "run"}, filepath.Join("checkpoints", "77"))
	if err := os.Remove(filepath.Join("run", "config.yaml")); err != nil {
		t.Fatal(err)
	}
	wrong(t, []string{"eval", "--checkpoint", "run"}, "config.yaml")
}

func TestEvalDocument(t *testing.T) {
	inRoom(t, true)
	out := must(t, "eval", "--checkpoint", "run", "--json")
	if got := strings.Join(keys(t, out), "\n"); got != strings.Join(evalKeys, "\n") || strings.Count(out, "\n") != 1 {
		t.Errorf("keys\n%s, want\n%s", got, strings.Join(evalKeys, "\n"))
	}
	if again := must(t, "eval", "--checkpoint", "run", "--json", "--workers", "1"); again != out {
		t.Error("another number of workers, another document")
	}
	type document struct {
		Windows  []json.RawMessage
		Policies []struct{ Name, Kind string }
		Paired   []struct{ A, B string }
	}
	read := func(text string) (d document, names string) {
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Policies {
			names += p.Name + " " + p.Kind + ", "
		}
		return d, names
	}
	// Flags override the run's configuration; each checkpoint is compared with everything else.
	d, names := read(must(t, "eval", "--checkpoint", "run", "--checkpoint", "run/checkpoints/800", "--policies", "srtf,random@slots", "--windows", "3",
		"--seeds", "2", "--trace", "jobs.csv", "--json"))
	if len(d.Windows) != 3 || len(d.Paired) != 2*2*3 || !strings.HasSuffix(names, "srtf+skip heuristic, random@slots slots, ") || len(d.Policies) != 4 {
		t.Errorf("%d windows, %d pairs, policies %s", len(d.Windows), len(d.Paired), names)
	}
	// Without a checkpoint, policies are compared with each other.
	d, names = read(must(t, "eval", "-c", "tiny.yaml", "--policies", "fifo,sjf+skip,sjf@slots", "--json"))
	if len(d.Paired) != 3*2 || names != "fifo+strict heuristic, sjf+skip heuristic, sjf@slots slots, " {
		t.Errorf("%d pairs, policies %s", len(d.Paired), names)
	}
}

func TestEvalForPeople(t *testing.T) {
	inRoom(t, true)
	out := must(t, "eval", "--checkpoint", "run", "--set", "eval.whole=true")
	for _, want := range []string{"policy ", "ppo@", "fifo+strict", "agent vs it", "4 windows of 32 jobs each", "One run over the whole test part"} {
		if !strings.Contains(out, want) {
			t.Errorf("printed %q, want %q in it", out, want)
		}
	}
	if out := must(t, "eval", "--checkpoint", "run", "--set", "eval.whole=true", "--no-whole"); strings.Contains(out, "whole test part") {
		t.Error("--no-whole changes nothing")
	}
	if out := must(t, "eval", "-c", "tiny.yaml"); strings.Contains(out, "agent vs it") {
		t.Errorf("without an agent the table compares with one: %q", out)
	}
}

func TestInterruptedEvalPrintsNothing(t *testing.T) {
	inRoom(t, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, said bytes.Buffer
	if code := execute(ctx, []string{"eval", "--checkpoint", "run", "--json"}, &out, &said); code != exitInterrupted || out.Len() != 0 {
		t.Errorf("exit code %d, printed %q, said %q", code, out.String(), said.String())
	}
}

// The others are still compared, and the error names the policy that did not come.
func TestAnExternalPolicyThatNeverComesIsAFailure(t *testing.T) {
	t.Chdir(t.TempDir())
	args := strings.Fields("eval --policies fifo+skip --windows 2 --no-whole --set trace.synth.jobs=4000 --serve 127.0.0.1:0 --external never --external nobody --external-timeout 1ms")
	code, out, said := gymctl(t, args...)
	const want = "gymctl: external policies are missing: never (finished 0 of 2 windows), nobody (finished 0 of 2 windows); want each to play all windows within --external-timeout\n"
	if code != exitFailed || !strings.HasSuffix(said, want) || !strings.Contains(out, "\nfifo+skip ") || !strings.Contains(out, "\nnever missing: finished 0 of 2 windows") {
		t.Errorf("exit code %d, printed\n%ssaid\n%s", code, out, said)
	}
	code, out, said = gymctl(t, append(args, "--json")...)
	var d struct {
		Policies []struct{ Name, Missing string }
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if code != exitFailed || !strings.HasSuffix(said, want) || len(d.Policies) != 3 || d.Policies[0].Missing == "" {
		t.Errorf("--json: exit code %d, %+v, said %q", code, d, said)
	}
}
