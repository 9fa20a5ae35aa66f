package start_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// fewJobs are the arguments of a search over few jobs.
var fewJobs = strings.Fields(
	"tune -c quickstart-exact --set trace.synth.jobs=3000 --set env.window=48 --set env.warm=16 --set env.load=2 --population 4 --windows 6 --every 1 --seed 3")

func TestTuneFindsWeightsThatOthersPlay(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	out := clitest.Must(t, append(fewJobs, "--generations", "3", "--dir", "w")...)
	for _, want := range []string{"validation windows, which chose the weights", "sjf+skip ", "area+skip ",
		"hold, at the beginning ", "weights: w/hold.yaml",
		"on test windows: gymctl eval --config quickstart-exact --set trace.synth.jobs=3000 --set env.window=48 --set env.warm=16 --set env.load=2 --policies sjf+skip,area+skip,hold,rollout:hold --hold w/hold.yaml --no-whole\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("printed %q, want %q in it", out, want)
		}
	}
	if again := clitest.Must(t, append(fewJobs, "--generations", "3", "--dir", "w")...); !strings.Contains(again,
		"0.0 million jobs") {
		t.Errorf("a search that has ended simulates again: %s", again)
	}
	if doc := clitest.Must(t, append(fewJobs, "--generations", "3", "--dir", "w", "--json")...); !strings.Contains(doc,
		`"file":"w/hold.yaml"`) || !strings.Contains(doc, `"hold":{"age":`) {
		t.Errorf("the document is %s", doc)
	}
	own := "eval -c quickstart-exact --set trace.synth.jobs=3000 --set env.window=48 --set env.warm=16 --windows 2 --no-whole --policies sjf+skip,hold"
	if table := clitest.Must(t, append(strings.Fields(own), "--hold", "w/hold.yaml")...); !strings.Contains(table,
		"\nhold ") {
		t.Errorf("eval printed %s", table)
	}
	sim := strings.Fields("sim --jobs 200 --cluster 4x4 --policy hold")
	plain, held := clitest.Must(t, sim...), ""
	clitest.Write(t, "all.yaml", "base: 100\nage: 0\n")
	if held = clitest.Must(t, append(sim, "--hold", "all.yaml")...); held == plain {
		t.Error("sim plays the same with weights that hold everything back")
	}
	if set := clitest.Must(t, append(sim, "--set", "policy.hold.base=100")...); set != held {
		t.Errorf("--set policy.hold.base prints\n%s, --hold\n%s", set, held)
	}

	clitest.Write(t, "odd.yaml", "bsae: 1\n")
	if err := os.Mkdir("run", 0o755); err != nil {
		t.Fatal(err)
	}
	clitest.Write(t, filepath.Join("run", "config.yaml"), "name: x\n")
	for _, c := range []struct{ args, want string }{
		{"eval --policies sjf+skip --hold w/hold.yaml", "--hold: none of sjf+skip is hold; add hold or hold@slots"},
		{"eval --policies hold --hold odd.yaml", "odd.yaml:1: bsae: unknown key; did you mean base?"},
		{"eval --policies rollout:hold --hold none.yaml", "none.yaml: no such file"},
		{"eval --policies hold+skip", "hold has its own"},
		{"sim --policy fifo --hold w/hold.yaml", "--hold: none of fifo is hold"},
		{"train -c cartpole-ppo --hold w/hold.yaml --run-dir r", "--hold: none of random is hold"},
		{"train --hold none.yaml --run-dir r", "none.yaml: no such file"},
		{"train --resume run --hold w/hold.yaml", "--hold does not go with --resume"},
		{"tune --population 3", "--population: got 3, want 4 to 10000"},
		{"tune --only widht", `--only: got "widht", want one of width`},
		{"tune --workers 0", "--workers: got 0"},
		{"tune --estimates none", "hold ranks by run time, which estimates: none hides"},
		{"tune -c cartpole-ppo",
			"tune: CartPole-v1 has no simulator to play hold on; want a scheduling environment such as JobSelect-v1"},
		{"tune -c dagplace-ddqn",
			"tune: DAGPlace-v1 has no simulator to play hold on; want a scheduling environment such as JobSelect-v1"},
		{"tune -c jobselect-preempt --only base", `--only: got "base", want one of left`},
		{"eval -c jobselect-preempt --policies srtf+skip,hold@slots --index w/hold.yaml",
			"--index: none of srtf+skip, hold@slots is index; add index or index@slots"},
		{"eval -c jobselect-preempt --policies index@slots --index none.yaml", "weights of index: none.yaml: no such file"},
		{"eval -c jobselect-preempt --policies index --index odd.yaml", "odd.yaml:1: bsae: unknown key"},
		{"eval -c jobselect-preempt --policies rollout:index@slots",
			"index remembers which jobs it stops and starts at one time"},
		{"train -c jobselect-preempt --index none.yaml --run-dir r", "weights of index: none.yaml: no such file"},
		{"train -c jobselect-preempt --set train.imitate=gittins@slots --set eval.policies=[las+skip] --index none.yaml --run-dir r", "--index: none of "},
		{"train --resume run --index w/hold.yaml", "--index does not go with --resume"},
		{"tune --dir odd.yaml", "--dir: "},
		{"tune --set trace.synth.jobs=600", "too few jobs: the training part"},
		{"tune --dir run", "--dir: run holds a training run; want a folder of its own"},
		{"tune few", "tune: got \"few\", want flags only"},
	} {
		clitest.Wrong(t, strings.Fields(c.args), c.want)
	}
	clitest.Wrong(t, append(fewJobs, "--generations", "3", "--dir", "w", "--set", "trace.seed=9"),
		"the folder holds a search with another configuration")
}

// On streams tune says what its check shows, and names the draws.
func TestTuneOnStreamsIsChecked(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	few := strings.Fields("tune -c quickstart --set trace.synth.jobs=8000 --set env.warm=64 --set eval.streams.jobs=60 " +
		"--set eval.streams.warm=40 --population 4 --draws 2 --every 1 --generations 2 --dir w")
	out := clitest.Must(t, append(few, "--set", "eval.streams.draws=10")...)
	for _, want := range []string{"40 validation draws, on which nothing was chosen", "the result against it [95 %]",
		"hold, at the beginning ", "weights: w/hold.yaml", "on test streams: gymctl eval --config quickstart --set ",
		"--policies sjf+skip,area+skip,hold --hold w/hold.yaml\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("printed %q, want %q in it", out, want)
		}
	}
	if !strings.Contains(out, "the weights of generation ") && !strings.Contains(out, "no weights were rated better") {
		t.Errorf("printed %q, without what the check shows", out)
	}
	few[len(few)-1] = "v"
	if doc := clitest.Must(t, append(few, "--set", "eval.streams.draws=2", "--json")...); !strings.Contains(doc, `"check":{"a":"hold"`) ||
		!strings.Contains(doc, `"verdict":"too few units"`) || strings.Contains(doc, "validation_windows") {
		t.Errorf("the document is %s", doc)
	}
	clitest.Wrong(t, strings.Fields("tune --windows 20"), "--windows: weights are compared on streams here; use --draws")
	clitest.Wrong(t, strings.Fields("tune -c quickstart-exact --draws 20"),
		"--draws: weights are compared on windows here; use --windows")
}

func TestAnInterruptedTuneGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	want := clitest.Must(t, append(fewJobs, "--generations", "4", "--dir", "w")...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, said bytes.Buffer
	if code := clitest.Execute(ctx, append(fewJobs, "--generations", "4", "--dir", "v"), &out, &said); code !=
		cli.ExitInterrupted || !strings.Contains(said.String(), "the same command with --dir v continues") {
		t.Errorf("exit code %d, said %q", code, said.String())
	}
	if got := clitest.Must(t, append(fewJobs, "--generations", "4", "--dir", "v")...); strings.ReplaceAll(got, "v/hold",
		"w/hold") != want {
		t.Errorf("continued, it prints\n%s, want\n%s", got, want)
	}
}

// The command that is printed at the end is about the same workload, whatever its names look like.
func TestTheCommandAtTheEndIsAboutTheSameWorkload(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Must(t, strings.Fields("trace synth --jobs 3000 --seed 5 -o jobs.csv")...)
	data := clitest.Read(t, "jobs.csv")
	clitest.Write(t, "a 'b.csv", strings.Replace(data, "submit_time", "At", 1))
	args := []string{"tune", "--trace", "a 'b.csv", "--format", "csv", "--columns", "submit_time=At", "--sort",
		"--cluster", "4x8", "--estimates", "exact",
		"--set", "env.window=32", "--set", "env.warm=16", "--set", "env.max_gpus=32", "--set", "eval.validation=2",
		"--generations", "1", "--population", "4", "-o", "a b"}
	want := `on test streams: gymctl eval --cluster 4x8 --columns submit_time=At --estimates exact --format csv --set env.window=32 --set env.warm=16 --set env.max_gpus=32 --set eval.validation=2 ` +
		`--sort=true --trace 'a '\''b.csv' --policies sjf+skip,area+skip,hold --hold 'a b/hold.yaml'` + "\n"
	if out := clitest.Must(t, args...); !strings.Contains(out, want) {
		t.Errorf("printed %s, want %s", out, want)
	}
	// Other jobs under the same name are another search.
	clitest.Write(t, "a 'b.csv", strings.Replace(data, "submit_time", "At", 1)+"\n")
	clitest.Wrong(t, args, "trace a 'b.csv has changed since the run in a b began")
}

// Where jobs can be stopped, tune finds the weights of index, which eval, sim and train play.
func TestTuneFindsTheWeightsOfIndex(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	few := strings.Fields(
		"-c jobselect-preempt --set trace.synth.jobs=3000 --set env.window=48 --set env.warm=16 --set env.load=2")
	tuning := slices.Concat([]string{"tune"}, few,
		strings.Fields("--population 4 --windows 6 --every 1 --seed 3 --generations 2 --dir w"))
	out := clitest.Must(t, tuning...)
	for _, want := range []string{"srtf+skip ", "gittins+skip ", "index, at the beginning ", "weights: w/index.yaml",
		"on test windows: gymctl eval --config jobselect-preempt --set trace.synth.jobs=3000 --set env.window=48 --set env.warm=16 --set env.load=2 --policies las+skip,srtf+skip,gittins+skip,index+skip --index w/index.yaml --no-whole\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("printed %q, want %q in it", out, want)
		}
	}
	if doc := clitest.Must(t, append(tuning, "--json")...); !strings.Contains(doc, `"file":"w/index.yaml"`) ||
		!strings.Contains(doc, `"index":{"attained":`) {
		t.Errorf("the document is %s", doc)
	}
	eval := slices.Concat([]string{"eval"}, few,
		strings.Fields("--windows 4 --no-whole --policies index+skip,index@slots"))
	clitest.Write(t, "long.yaml", "left: -1\nwidth: 0.5\n")
	plain, given := clitest.Must(t, eval...), clitest.Must(t, append(eval, "--index", "long.yaml")...)
	if rest := strings.Fields("--set eval.index.left=-1 --set eval.index.width=0.5"); given == plain ||
		clitest.Must(t, append(eval, rest...)...) != given {
		t.Errorf("eval printed\n%s, with weights\n%s", plain, given)
	}
	sim := strings.Fields("sim --jobs 200 --cluster 4x4 --policy index")
	plain, given = clitest.Must(t, sim...), clitest.Must(t, append(sim, "--index", "long.yaml")...)
	if rest := strings.Fields("--set policy.index.left=-1 --set policy.index.width=0.5"); given == plain ||
		clitest.Must(t, append(sim, rest...)...) != given {
		t.Errorf("sim printed\n%s, with weights\n%s", plain, given)
	}
}
