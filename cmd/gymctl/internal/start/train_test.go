package start_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

func TestTrainRefusesBadInputInOneSentenceAndWritesNothing(t *testing.T) {
	clitest.OneGoroutine(t)
	clitest.InRoom(t, true)
	clitest.Write(t, "broken.yaml", "name: x\ntrain: {stepz: 5}\n")
	clitest.Write(t, "broken.csv", "submit_time,duration,num_gpu\n0,10,1\n5,ten,1\n")
	clitest.Write(t, "few.csv", "submit_time,duration,num_gpu\n0,10,1\n5,10,1\n")
	clitest.Write(t, "wide.csv", "submit_time,duration,num_gpu\n0,10,3\n5,10,64\n")
	if err := os.Mkdir("empty", 0o750); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"--set train.stepz=5", "stepz|did you mean|steps"},
		{"--set trains.steps=5", "trains|did you mean train?"},
		{"--set train.envs=0", "train.envs: got 0, want 1 to 65536"},
		{"--set env.load=1000", "env.load: got 1000"},
		{"--set env.load=much", "--set env.load=much: |load"},
		{"--set train.steps", "KEY.PATH=VALUE"},
		{"--set eval.policies=[fifi]", "eval.policies[0]|fifi"},
		{"--set ppo.network.kind=rnn", "ppo.network.kind"},
		{"--set ppo.network.kind=attention --set ppo.network.attention.width=6",
			"ppo.network.attention.heads: got 4, want a number that divides attention.width, 6"},
		{"--set ppo.network.kind=attention --set ppo.network.head=slots --set ppo.network.attention.slots=[queue]",
			`ppo.network.attention.slots: got "queue", want tables`},
		{"--set ppo.network.kind=attention --set ppo.norm_obs=true",
			"ppo.norm_obs: got true, want false with network.kind attention"},
		{"--set ppo.network.attention.width=8", "ppo.network.attention: got|want nothing, or kind attention"},
		{"--trace nowhere.csv", "nowhere.csv|no such file"},
		{"--trace broken.csv", "broken.csv|3|ten"},
		{"--trace few.csv", "few.csv|too few jobs"},
		{"--trace tiny.yaml", "tiny.yaml|format"},
		{"--trace jobs.csv --format xls", "xls|csv"},
		{"--trace=", "--trace"},
		{"--format csv", "--format goes with --trace"},
		{"--sort", "--sort goes with --trace"},
		{"--trace wide.csv --cluster 1x2",
			"wide.csv: 2 of 2 jobs can never fit cluster 1x2 (2 GPUs), and none is left: 0, 1; take a larger cluster"},
		{"--cluster topdrl", "topdrl-2x4x4"},
		{"--cluster=", "cluster"},
		{"--agent sac", `--agent: got "sac", want one of ppo, ddqn, improper`},
		{"--tags wandb", `--tags: got "wandb", want sb3 or cleanrl`},
		{"--workers 0", "--workers: got 0, want 1 or more"},
		{"--seed x", "--seed"},
		{"--seeds 0", "--seeds: got 0, want 1 or more"},
		{"--kernels sse", `--kernels: got "sse", want one of auto, avx512, avx2, portable`},
		{"--kernels avx5", `did you mean avx512?`},
		{"--set kernels=sse", `kernels: got "sse", want one of auto, `},
		{"--set eval.episodes=5", "eval.episodes: got 5, want nothing: JobSelect-v1 is judged on windows"},
		{"--run-dir run", "run holds a run already|--resume run"},
		{"--run-dir jobs.csv", "jobs.csv"},
		{"--run-dir jobs.csv/run", "jobs.csv"},
	} {
		clitest.Wrong(t, append([]string{"train", "-c", "tiny.yaml"}, strings.Fields(c.args)...),
			strings.Split(c.want, "|")...)
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"-c quickstat", "quickstart"},
		{"-c broken.yaml", "broken.yaml|2|stepz"},
		{"-c nowhere.yaml", "nowhere.yaml"},
		{"--resume nowhere", "nowhere"},
		{"--resume empty", "empty|not a run directory"},
		{"--resume jobs.csv", "jobs.csv"},
		{"--resume=", "--resume"},
		{"--resume run --seed 2", "--seed does not go with --resume"},
		{"--resume run --seeds 2", "--seeds: run holds a single run"},
		{"-c cartpole-ppo --trace jobs.csv", "--trace: CartPole-v1 has no workload"},
		{"-c cartpole-ppo --cluster 2x8", "--cluster: CartPole-v1 has no cluster"},
		{"-c cartpole-ppo --set env.load=2", `env.load: got "2", want nothing: CartPole-v1 has no settings`},
		{"-c cartpole-ppo --set env.id=CartPole", "env.id: got |did you mean CartPole-v1?"},
		{"--resume run --sort", "--sort does not go with --resume"},
		{"--resume run --run-dir run", "--run-dir does not go with --resume"},
		{"--resume run --set env.load=2", "env: |run"},
		{"--resume run --set train.envs=0", "train.envs: got 0"},
		{"run", "flags only"},
	} {
		clitest.Wrong(t, append([]string{"train"}, strings.Fields(c.args)...), strings.Split(c.want, "|")...)
	}
	// Several faults give one sentence each.
	code, _, said := clitest.Run(t, "train", "-c", "tiny.yaml", "--set", "train.envs=0", "--set", "train.steps=0")
	if code != cli.ExitMistake || strings.Count(said, "\n") != 2 || strings.Count(said, "gymctl: train.") != 2 {
		t.Errorf("two faults: exit code %d, said %q", code, said)
	}

	path := filepath.Join("run", "checkpoints", "1000", "weights.safetensors")
	whole := clitest.Read(t, path)
	clitest.Write(t, path, whole[:len(whole)/2])
	clitest.Wrong(t, []string{"train", "--resume", "run"}, "weights.safetensors", "bytes")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	clitest.Wrong(t, []string{"train", "--resume", "run"}, "weights.safetensors is missing")
}

// The documented keys of the JSON documents of train and eval, in order.
var (
	evalKeys = slices.Concat(evaluationKeys(""), leftOutKeys(""), []string{"estimates", "rung"})
	runKeys  = append(strings.Fields("step episodes return_mean steps_per_s interval_steps_per_s kernels checkpoint eval"),
		slices.Concat(evaluationKeys("eval."), leftOutKeys("eval."), []string{"eval.estimates", "eval.rung"})...)
)

func evaluationKeys(prefix string) []string {
	k := strings.Fields(
		"windows windows.seed windows.first_job windows.jobs policies policies.name policies.kind policies.metrics")
	for _, m := range strings.Fields("jct_s wait_s first_wait_s slowdown bounded_slowdown jct_p99_s makespan_s gpu_utilization effective_utilization") {
		m = "policies.metrics." + m
		k = append(k, m, m+".iqm", m+".mean", m+".ci95", m+".per_window")
	}
	k = append(k,
		strings.Fields(
			"policies.metrics.unfinished policies.trained_on paired paired.a paired.b paired.metric paired.difference_percent paired.ci95 paired.win_rate paired.wins paired.ties")...)
	for i := range k {
		k[i] = prefix + k[i]
	}
	return k
}

// leftOutKeys are those of what an environment does not take, if there are such jobs.
func leftOutKeys(prefix string) []string {
	return strings.Fields(
		strings.ReplaceAll(
			"~ ~.of ~.above_max_gpus ~.above_max_gpus_share ~.max_gpus ~.never_fit ~.never_fit_share ~.without_work", "~",
			prefix+"left_out"))
}

func TestTrainDocument(t *testing.T) {
	clitest.InRoom(t, false)
	code, out, said := clitest.Run(t, "train", "-c", "tiny.yaml", "--run-dir", "run", "--json")
	if code != cli.ExitDone || strings.Count(out, "\n") != 1 {
		t.Fatalf("exit code %d, printed %q, said %q", code, out, said)
	}
	if got := strings.Join(clitest.Keys(t, out), "\n"); got != strings.Join(runKeys, "\n") {
		t.Errorf("keys\n%s, want\n%s", got, strings.Join(runKeys, "\n"))
	}
	var d struct {
		Step       int64
		Checkpoint string
		Eval       json.RawMessage
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if d.Step != 1000 || !strings.HasPrefix(d.Checkpoint, filepath.Join("run", "checkpoints")) {
		t.Errorf("ended at step %d with %s", d.Step, d.Checkpoint)
	}
	var kept bytes.Buffer
	if err := json.Compact(&kept, []byte(clitest.Read(t, filepath.Join("run", "eval", "test.json")))); err != nil ||
		kept.String() != string(d.Eval) {
		t.Errorf("eval/test.json (%v) is not the document's comparison", err)
	}
	// The notes for people on standard error.
	for _, want := range []string{
		"run       run\n", "workload  synth:philly (seed 1): 3000 jobs\n", "agent     ppo, seed 1, 4 environments",
		"step      252 of 1000", "step      500  validation windows",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("said %q, want %q in it", said, want)
		}
	}
	// The same comparison afterwards, from the run's own configuration.
	again := clitest.Must(t, "eval", "--checkpoint", "run", "--json")
	if strings.TrimSpace(again) != string(d.Eval) {
		t.Error("eval --checkpoint of the run gives another document than its training")
	}
}

func TestTrainForPeople(t *testing.T) {
	clitest.InRoom(t, false)
	out := clitest.Must(t, "train", "-c", "tiny.yaml", "--run-dir", "run", "--agent", "ddqn", "--seed", "5", "--trace",
		"jobs.csv", "--cluster", "2x8", "--set", "train.steps=400")
	for _, want := range []string{"policy ", "ddqn@400", "fifo+strict", "sjf@slots", "The agent is run/checkpoints/400"} {
		if !strings.Contains(filepath.ToSlash(out), want) {
			t.Errorf("printed %q, want %q in it", out, want)
		}
	}
	cfg := clitest.Read(t, filepath.Join("run", "config.yaml"))
	for _, want := range []string{"agent: ddqn\n", "seed: 5\n", "  file: jobs.csv\n", "cluster: 2x8\n", "  steps: 400\n"} {
		if !strings.Contains(cfg, want) {
			t.Errorf("config.yaml lacks %q", want)
		}
	}
	if out := clitest.Must(t, "train", "--resume", "run", "--no-eval", "--set",
		"train.steps=600"); !strings.HasPrefix(filepath.ToSlash(out), "checkpoint run/checkpoints/") {
		t.Errorf("printed %q", out)
	}
	if !strings.Contains(clitest.Read(t, filepath.Join("run", "config.yaml")), "  steps: 600\n") {
		t.Error("config.yaml does not say that the run was made longer")
	}
}

// withoutTimes returns a train document without what depends on the machine.
func withoutTimes(t *testing.T, text string) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	delete(m, "steps_per_s")
	delete(m, "interval_steps_per_s")
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestInterruptedTrainingIsSavedAndGoesOn(t *testing.T) {
	clitest.InRoom(t, false)
	train := []string{"train", "-c", "tiny.yaml", "--run-dir", "run", "--json"}
	want := withoutTimes(t, clitest.Must(t, train...))
	for _, at := range []string{"run       run\n", "step      252 of", "validation windows", "step     1000  validation"} {
		if err := os.RemoveAll("run"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		u := &clitest.Until{Text: at, Cancel: cancel}
		var out bytes.Buffer
		if code := clitest.Execute(ctx, train, &out, u); code != cli.ExitInterrupted || out.Len() != 0 ||
			!strings.Contains(u.Said.String(), "continue with --resume run") &&
				!strings.Contains(u.Said.String(), "--resume run evaluates again") {
			t.Errorf("interrupted at %q: exit code %d, printed %q, said %q", at, code, out.String(), u.Said.String())
		}
		cancel()
		if got := withoutTimes(t, clitest.Must(t, "train", "--resume", "run", "--json")); got != want {
			t.Errorf("interrupted at %q and resumed:\n%s, want\n%s", at, got, want)
		}
	}
}

// A real signal, sent to a process.
func TestSignalEndsTrainingWithACheckpoint(t *testing.T) {
	clitest.InRoom(t, false)
	c := clitest.Program(t, "train", "-c", "tiny.yaml", "--run-dir", "run", "--set", "train.steps=10000000", "--set",
		"train.eval_every=0", "--set", "train.checkpoint_every=0")
	u := &clitest.Until{Text: "step      752", Cancel: func() {}}
	at := make(chan struct{})
	u.Cancel = sync.OnceFunc(func() { close(at) })
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, u
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-at:
	case <-time.After(60 * time.Second):
		t.Error("it does not get to work")
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait() // its exit code is checked below
	}()
	select {
	case <-ended:
	case <-time.After(60 * time.Second):
		_ = c.Process.Kill()
		<-ended
		t.Fatal("it does not end")
	}
	if code := c.ProcessState.ExitCode(); code != cli.ExitInterrupted || out.Len() != 0 ||
		!strings.Contains(u.Said.String(), "saved, continue with --resume run") {
		t.Errorf("exit code %d, printed %q, said %q", code, out.String(), u.Said.String())
	}
	if found, err := filepath.Glob(filepath.Join("run", "checkpoints", "*", "manifest.json")); err != nil ||
		len(found) != 1 {
		t.Errorf("checkpoints %v (%v), want one", found, err)
	}
	clitest.Must(t, "ckpt", "verify", "run")
}

// The examples of these verbs take minutes; this test checks only that their flags and values are valid.
func TestExamplesOfTrainAndEvalCanBeRead(t *testing.T) {
	for _, c := range clitest.Commands() {
		if c.CommandPath() != "gymctl train" && c.CommandPath() != "gymctl eval" && c.Name() != "sweep" {
			continue
		}
		lines := 0
		for line := range strings.Lines(c.Example) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "gymctl" || words[1] != c.Name() && c.Name() != "sweep" {
				t.Fatalf("%q is no example of %s", line, c.Name())
			}
			lines++
			if words[1] != c.Name() {
				continue // what follows a sweep
			}
			fresh := clitest.Find(t, c.Name())
			if err := fresh.ParseFlags(words[2:]); err != nil || fresh.Flags().NArg() != 0 {
				t.Errorf("%q: %v, arguments %v", line, err, fresh.Flags().Args())
			}
		}
		if lines < 3 {
			t.Errorf("%s has %d examples", c.Name(), lines)
		}
	}
}
