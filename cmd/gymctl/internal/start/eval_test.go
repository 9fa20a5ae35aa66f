package start_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

func TestEvalRefusesBadInputInOneSentence(t *testing.T) {
	clitest.OneGoroutine(t)
	clitest.InRoom(t, true)
	clitest.Write(t, "few.csv", "submit_time,duration,num_gpu\n0,10,1\n5,10,1\n")
	for _, c := range []struct {
		args string
		want string
	}{
		{"--checkpoint nowhere", "nowhere|neither a checkpoint"},
		{"--checkpoint run/checkpoints", "neither a checkpoint"},
		{"--checkpoint run --checkpoint run", "named twice"},
		{"--checkpoint run --set env.visible=8", "does not fit this environment"},
		{"--checkpoint run --cluster 2x8",
			"does not fit this environment, where its network has weights of other shapes (agents of the preset quickstart"},
		{"--checkpoint run --trace nowhere.csv", "nowhere.csv"},
		{"--checkpoint run --trace few.csv", "few.csv|too few jobs"},
		{"--checkpoint run --format csv", "--format goes with --trace"},
		{"--checkpoint run --policies fifi", `--policies: got "fifi"`},
		{"--checkpoint run --policies fifo,sjf@slot", `--policies: got "sjf@slot"`},
		{"--checkpoint run --policies fifo,fifo+strict", "fifo+strict is named twice"},
		{"--checkpoint run --policies rollout:sjf+skip --budget 0", `--budget: got "0", want a number of rollouts from 1`},
		{"--checkpoint run --policies sjf+skip --budget 10", "--budget: none of sjf+skip looks ahead"},
		{"--checkpoint run --set eval.rollout.budget=none", "eval.rollout.budget|want a number of rollouts"},
		{"--checkpoint run --set eval.rollout.candidates=1", "eval.rollout.candidates: got 1, want 2 to 64"},
		{"--checkpoint run --policies rollout:gittins-2d", "rollout:gittins-2d|gittins-2d remembers"},
		{"--checkpoint run --policies rollout:sjff@slots", `did you mean rollout:sjf@slots?`},
		{"--checkpoint run --policies rollout:random@slots", `random draws at random`},
		{"--checkpoint run --policies rollout:rollout:sjf", `looks ahead twice`},
		{"--checkpoint run --policies rollout:fifo+skip --estimates none",
			"--policies|a rollout plays jobs to their end, and estimates: none hides run times"},
		{"--env QueueRank-v1 --policies rollout:sjf@slots", "QueueRank-v1 does not"},
		{"-c cartpole-ppo --policies rollout:sjf", "rollout:sjf looks ahead, which no policy can here"},
		{"--checkpoint run --windows 0", "--windows: got 0"},
		{"--checkpoint run --seeds 0", "--seeds: got 0"},
		{"--checkpoint run --workers 0", "--workers: got 0"},
		{"--checkpoint run --set env.load=1000", "gymctl: env.load: got 1000"},
		{"--checkpoint run --set eval.windows=0", "gymctl: eval.windows: got 0"},
		{"--checkpoint run --set env.estimates=none --set eval.policies=[sjf@slots]", "sjf|hides"},
		{"--checkpoint run --rungs exact", "--rungs: want two or more estimates"},
		{"--checkpoint run --rungs=", "--rungs: want two or more estimates"},
		{"--checkpoint run --rungs none,exactly", `--rungs: got "exactly"|did you mean exact?`},
		{"--checkpoint run --rungs noisy:0.5,exact,noisy:.5", "--rungs: estimates noisy:0.5 are named twice"},
		{"--checkpoint run --rungs trace,exact", "--rungs trace: job |has no requested time"},
		{"--checkpoint run --rungs none,gbdt:none.bin", "model none.bin: |no such file"},
		{"--checkpoint run --rungs none,exact --estimates none", "--estimates does not go with --rungs"},
		{"--checkpoint run --rungs none,exact --serve 127.0.0.1:0 --external x", "--serve does not go with --rungs"},
		{"-c tiny.yaml --rungs none,exact --policies sjf,srtf",
			"--rungs none: all of sjf, srtf rank by run times, and there are none"},
		{"--checkpoint run --rungs none,exact --policies fifo,sjff", `--policies: got "sjff"`},
		{"--checkpoint run --rungs none,exact --policies fifo,fifo+strict", "fifo+strict is named twice"},
		{"-c cartpole-ppo --rungs none,exact", "--rungs: CartPole-v1 has no run times to know"},
		{"-c policymix-ppo --rungs none,exact", `--rungs: got "none", want estimates`},
		{"--checkpoint run --estimates exactly", `--estimates: got "exactly"`},
		{"-c cartpole-ppo --estimates exact", "--estimates: CartPole-v1 has no run times to know"},
		{"-c tiny.yaml --policies=", "nothing to evaluate"},
		{"-c tiny.yaml --set trace.synth.jobs=300", "too few jobs|test"},
		{"-c tiny.yaml --set env.lode=1", "lode|load"},
		{"-c quickstat", "quickstart"},
		{"run", "flags only"},
	} {
		clitest.Wrong(t, append([]string{"eval"}, strings.Fields(c.args)...), strings.Split(c.want, "|")...)
	}
	path := filepath.Join("run", "best.json")
	var best struct{ Step int64 }
	if err := json.Unmarshal([]byte(clitest.Read(t, path)), &best); err != nil {
		t.Fatal(err)
	}
	n, err := json.Marshal(best.Step)
	if err != nil {
		t.Fatal(err)
	}
	weights := filepath.Join("run", "checkpoints", string(n), "weights.safetensors")
	whole := clitest.Read(t, weights)
	clitest.Write(t, weights, whole[:len(whole)-1]+"x")
	clitest.Wrong(t, []string{"eval", "--checkpoint", "run"}, "weights.safetensors", "sha256")
	clitest.Write(t, path, `{"step":77}`)
	clitest.Wrong(t, []string{"eval", "--checkpoint", "run"}, filepath.Join("checkpoints", "77"))
	if err := os.Remove(filepath.Join("run", "config.yaml")); err != nil {
		t.Fatal(err)
	}
	clitest.Wrong(t, []string{"eval", "--checkpoint", "run"}, "config.yaml")
}

func TestEvalDocument(t *testing.T) {
	clitest.InRoom(t, true)
	out := clitest.Must(t, "eval", "--checkpoint", "run", "--json")
	if got := strings.Join(clitest.Keys(t, out), "\n"); got != strings.Join(evalKeys, "\n") ||
		strings.Count(out, "\n") != 1 {
		t.Errorf("keys\n%s, want\n%s", got, strings.Join(evalKeys, "\n"))
	}
	if again := clitest.Must(t, "eval", "--checkpoint", "run", "--json", "--workers", "1"); again != out {
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
	d, names := read(clitest.Must(t, "eval", "--checkpoint", "run", "--checkpoint", "run/checkpoints/800", "--policies",
		"srtf,random@slots", "--windows", "3",
		"--seeds", "2", "--trace", "jobs.csv", "--json"))
	if len(d.Windows) != 3 || len(d.Paired) != 2*2*3 ||
		!strings.HasSuffix(names, "srtf+skip heuristic, random@slots slots, ") || len(d.Policies) != 4 {
		t.Errorf("%d windows, %d pairs, policies %s", len(d.Windows), len(d.Paired), names)
	}
	// Without a checkpoint, policies are compared with each other.
	d, names = read(clitest.Must(t, "eval", "-c", "tiny.yaml", "--policies", "fifo,sjf+skip,sjf@slots", "--json"))
	if len(d.Paired) != 3*2 || names != "fifo+strict heuristic, sjf+skip heuristic, sjf@slots slots, " {
		t.Errorf("%d pairs, policies %s", len(d.Paired), names)
	}
}

func TestEvalForPeople(t *testing.T) {
	clitest.InRoom(t, true)
	out := clitest.Must(t, "eval", "--checkpoint", "run", "--set", "eval.whole=true")
	for _, want := range []string{"policy ", "ppo@", "fifo+strict", "agent vs it", "4 windows of 32 jobs each",
		"One run over the whole test part"} {
		if !strings.Contains(out, want) {
			t.Errorf("printed %q, want %q in it", out, want)
		}
	}
	if out := clitest.Must(t, "eval", "--checkpoint", "run", "--set", "eval.whole=true",
		"--no-whole"); strings.Contains(out, "whole test part") {
		t.Error("--no-whole changes nothing")
	}
	if out := clitest.Must(t, "eval", "-c", "tiny.yaml"); strings.Contains(out, "agent vs it") {
		t.Errorf("without an agent the table compares with one: %q", out)
	}
}

// A run that imitated a rule can be judged where that rule knows too little to play.
func TestEvalBelowTheRungOfATeacher(t *testing.T) {
	clitest.InRoom(t, true)
	config := clitest.Read(t, "run/config.yaml")
	clitest.Write(t, "run/config.yaml", strings.Replace(config, "\ntrain:\n", "\ntrain:\n  imitate: sjf@slots\n", 1))
	clitest.Wrong(t, []string{"eval", "-c", "run/config.yaml", "--estimates", "none", "--policies", "fifo"},
		"train.imitate")
	if out := clitest.Must(t, "eval", "--checkpoint", "run", "--estimates", "none", "--windows",
		"1"); !strings.Contains(out, "estimates: none") {
		t.Errorf("eval --estimates none prints %s", out)
	}
	if out := clitest.Must(t, "eval", "--checkpoint", "run", "--rungs", "none,exact", "--windows",
		"1"); !strings.Contains(out, "lost on none") {
		t.Errorf("eval --rungs prints %s", out)
	}
	clitest.Wrong(t, []string{"eval", "--checkpoint", "run", "--estimates", "none", "--policies", "sjf@slots"}, "hides")
}

// A table over rungs has the figures of the tables of each, and the same bytes for any number of workers.
func TestEvalOnRungs(t *testing.T) {
	clitest.OneGoroutine(t)
	clitest.InRoom(t, true)
	args := strings.Fields(
		"eval --checkpoint run --policies fifo+skip,sjf+skip,random@slots --seeds 2 --windows 4 --rungs none,history,exact")
	out := clitest.Must(t, args...)
	header, rest, _ := strings.Cut(out, "\n\n")
	if header != "estimates: none, history (causal), exact" {
		t.Errorf("the header is %q", header)
	}
	table, below, _ := strings.Cut(rest, "\n\n")
	var rows []string
	for line := range strings.Lines(table) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	if len(rows) != 6 || rows[0] != "policy none history (causal) exact lost on none lost on history" {
		t.Fatalf("the table is\n%s", table)
	}
	for i, want := range []string{"ppo@", "fifo+skip ", "sjf+skip – ", "random@slots "} {
		if !strings.HasPrefix(rows[i+2], want) {
			t.Errorf("row %q, want %q first", rows[i+2], want)
		}
	}
	if !strings.Contains(rows[2], " (trained on noisy:0.5) ") && !strings.Contains(rows[2], " (trained on exact) ") {
		t.Errorf("row %q does not say where the agent was trained", rows[2])
	}
	if !strings.HasSuffix(rows[3], "+0.0 % [+0.0, +0.0] +0.0 % [+0.0, +0.0]") || strings.Count(rows[4], "–") != 2 {
		t.Errorf("rows %q, %q", rows[3], rows[4])
	}
	for _, want := range []string{"4 windows of 32 jobs each", "lost on:",
		"–: ranks by run times, and there are none: sjf+skip.", "fifo+skip asks nothing of run times.",
		"was trained on estimates: "} {
		if !strings.Contains(below, want) {
			t.Errorf("below stands\n%s, want %q in it", below, want)
		}
	}
	doc := clitest.Must(t, append(args, "--json")...)
	if again := clitest.Must(t, append(args, "--json", "--workers", "1")...); again != doc {
		t.Error("another number of workers, another document")
	}
	var d struct {
		Against  string
		Rungs    []json.RawMessage
		Policies []struct {
			Name  string
			Rungs []struct {
				Estimates string
				Mean      *float64
				CI95      *[2]float64
				Loss      *float64 `json:"loss_percent"`
				Absent    string
			}
		}
	}
	if err := json.Unmarshal([]byte(doc), &d); err != nil {
		t.Fatal(err)
	}
	if d.Against != "exact" || len(d.Rungs) != 3 || len(d.Policies) != 4 {
		t.Fatalf("got %+v", d)
	}
	if c := d.Policies[2].Rungs[0]; c.Mean != nil || c.Loss != nil || c.Absent == "" {
		t.Errorf("sjf without run times: %+v", c)
	}
	sjf := d.Policies[2].Rungs
	if loss := 100 * (*sjf[1].Mean / *sjf[2].Mean - 1); math.Abs(*sjf[1].Loss-loss) > 1e-9 || sjf[2].Loss != nil {
		t.Errorf("sjf loses %v %%, its means say %v %%", *sjf[1].Loss, loss)
	}
	for i, est := range []string{"none", "history", "exact"} {
		one := slices.Delete(slices.Clone(args), len(args)-2, len(args))
		if est == "none" {
			one = append(one, "--policies", "fifo+skip,random@slots")
			one = slices.Delete(one, 3, 5)
		}
		alone := clitest.Must(t, append(one, "--no-whole", "--json", "--estimates", est)...)
		var a, b map[string]any
		if err := errors.Join(json.Unmarshal([]byte(alone), &a), json.Unmarshal(d.Rungs[i], &b)); err != nil {
			t.Fatal(err)
		}
		delete(a, "left_out") // the ladder has it once
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: alone\n%.400v\non the ladder\n%.400v", est, a, b)
		}
	}
	if clitest.Must(t, append(args, "--html", "page.html")...) != out {
		t.Error("--html changes the table")
	}
	if b, err := os.ReadFile("page.html"); err != nil ||
		!strings.Contains(string(b), "What policies lose by not knowing run times") {
		t.Errorf("the page: %v", err)
	}
}

func TestInterruptedEvalPrintsNothing(t *testing.T) {
	clitest.InRoom(t, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, said bytes.Buffer
	if code := clitest.Execute(ctx, []string{"eval", "--checkpoint", "run", "--json"}, &out, &said); code !=
		cli.ExitInterrupted || out.Len() != 0 {
		t.Errorf("exit code %d, printed %q, said %q", code, out.String(), said.String())
	}
}

// The others are still compared, and the error names the policy that did not come.
func TestAnExternalPolicyThatNeverComesIsAFailure(t *testing.T) {
	t.Chdir(t.TempDir())
	args := strings.Fields(
		"eval --policies fifo+skip --draws 2 --jobs 100 --set eval.streams.warm=100 --set trace.synth.jobs=9000 --serve 127.0.0.1:0 --external never --external nobody --external-timeout 1ms")
	code, out, said := clitest.Run(t, args...)
	const want = "gymctl: external policies are missing: never (finished 0 of 2 streams), nobody (finished 0 of 2 streams); each must play all streams within --external-timeout\n"
	if code != cli.ExitFailed || !strings.HasSuffix(said, want) || !strings.Contains(out, "\nfifo+skip ") ||
		!strings.Contains(out, "\nnever missing: finished 0 of 2 streams") {
		t.Errorf("exit code %d, printed\n%ssaid\n%s", code, out, said)
	}
	code, out, said = clitest.Run(t, append(args, "--json")...)
	var d struct {
		Policies []struct{ Name, Missing string }
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if code != cli.ExitFailed || !strings.HasSuffix(said, want) || len(d.Policies) != 3 || d.Policies[0].Missing == "" {
		t.Errorf("--json: exit code %d, %+v, said %q", code, d, said)
	}
}
