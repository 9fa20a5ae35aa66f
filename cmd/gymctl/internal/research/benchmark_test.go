package research_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/research"
	"clustergym/lab/benchmark"
)

// plays makes verbs play what version returns, whatever --version says.
func plays(t *testing.T, version func() *benchmark.Version) {
	t.Helper()
	plain := research.Benchmark
	t.Cleanup(func() { research.Benchmark = plain })
	research.Benchmark = func(string) (*benchmark.Version, error) { return version(), nil }
}

func versionOne() *benchmark.Version { return benchmark.Numbered(1) }

func TestBenchmarkListsTasks(t *testing.T) {
	plays(t, versionOne)
	out := clitest.Must(t, "benchmark", "list", "dagplace-*")
	v := benchmark.Numbered(1)
	task, err := v.Task("dagplace-erdos")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "dagplace-erdos") || !strings.Contains(out, task.Hash[:12]) ||
		strings.Contains(out, "gpupick") {
		t.Errorf("got\n%s", out)
	}
	var list []research.ListedTask
	clitest.Strict(t, clitest.Must(t, "benchmark", "list", "--json"), &list)
	if len(list) != len(v.Tasks) || list[0].Hash != v.Tasks[0].Hash || list[0].Windows != 64 || list[0].Cluster == "" {
		t.Errorf("%d tasks, the first %+v", len(list), list[0])
	}
	clitest.Wrong(t, []string{"benchmark", "list", "dagplace-erdo"}, "did you mean dagplace-erdos?")
	clitest.Wrong(t, []string{"benchmark", "show", "x"}, "task \"x\" is unknown")
}

// What show prints is a run, with the windows of the task.
func TestBenchmarkShowPrintsARun(t *testing.T) {
	plays(t, versionOne)
	t.Chdir(t.TempDir())
	clitest.Write(t, "task.yaml", clitest.Must(t, "benchmark", "show", "workerplace-ps"))
	clitest.Must(t, "config", "check", "task.yaml")
	out := clitest.Must(t, "eval", "-c", "task.yaml", "--policies", "sjf-waits@slots", "--episodes", "3", "--json")
	if !strings.Contains(out, `"jct_s"`) {
		t.Errorf("got %s", out)
	}
	var d research.ShownTask
	clitest.Strict(t, clitest.Must(t, "benchmark", "show", "workerplace-ps", "--json"), &d)
	if d.Name != "workerplace-ps" || len(d.Hash) != 64 || d.Env != "WorkerPlace-v1" || d.Steps != 2_000_000 ||
		d.Kwargs["comm"] != "ps" {
		t.Errorf("got %+v", d)
	}
}

// A rule is played, reported, packed into a row, checked, played again, changed, and refused.
func TestBenchmarkFromRunToRow(t *testing.T) {
	plays(t, versionOne)
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	tasks := "dagplace-fork-join,workerplace-pairs"
	out := clitest.Must(t, "benchmark", "run", "--policy", "best", "--tasks", tasks, "-o", "runs/best")
	if !strings.Contains(out, "1.000") {
		t.Errorf("the best rule does not score 1:\n%s", out)
	}
	clitest.Must(t, "benchmark", "run", "--policy", "random", "--tasks", tasks, "-o", "runs/random", "--json")
	out = clitest.Must(t, "benchmark", "report", "runs/best", "runs/random", "--tasks", tasks, "--html", "report.html")
	if !strings.Contains(out, "best") || !strings.Contains(out, "P(a > b)") {
		t.Errorf("got\n%s", out)
	}
	if page := clitest.Read(t, "report.html"); !strings.Contains(page, "Performance profiles") {
		t.Error("the page has no profiles")
	}
	var report benchmark.Report
	if err := json.Unmarshal(
		[]byte(clitest.Must(t, "benchmark", "report", "runs/best", "runs/random", "--tasks", tasks, "--json")),
		&report); err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 2 || report.Rows[0].IQM != 1 || report.Rows[1].IQM != 0 || len(report.Pairs) != 1 ||
		report.Pairs[0].Probability != 1 {
		t.Errorf("got %+v", report)
	}
	clitest.Must(t, "benchmark", "submit", "runs/best", "-o", "best.json", "--command",
		"gymctl benchmark run --policy best -o runs/best")
	if out := clitest.Must(t, "benchmark", "verify", "best.json"); !strings.Contains(out, "not replayed") ||
		strings.Contains(out, "verified") {
		t.Errorf("a row that was not played again: %s", out)
	}
	if out := clitest.Must(t, "benchmark", "verify", "best.json", "--replay", "-o", "runs/again"); !strings.Contains(out,
		"verified") || !strings.Contains(out, "the same values") {
		t.Errorf("got %s", out)
	}
	for _, from := range []string{"best.json", "runs/best"} {
		if out := clitest.Must(t, "benchmark", "report", from, "--tasks", tasks); !strings.Contains(out, "not replayed") {
			t.Errorf("%s: got\n%s", from, out)
		}
		if out := clitest.Must(t, "benchmark", "report", from, "--tasks", tasks, "--json"); !strings.Contains(out,
			`"numbers": "not replayed"`) && !strings.Contains(out, `"numbers":"not replayed"`) {
			t.Errorf("%s: got %s", from, out)
		}
	}
	if out := clitest.Must(t, "benchmark", "report", "--rows", "best"); strings.Contains(out, "best  not replayed") ||
		!strings.Contains(out, "replayed") {
		t.Errorf("the leaderboard's rows were played again: got\n%s", out)
	}
	// A row of zeros has hashes that match.
	var zeros benchmark.Row
	if err := json.Unmarshal([]byte(clitest.Read(t, "best.json")), &zeros); err != nil {
		t.Fatal(err)
	}
	for i := range zeros.Tasks {
		for _, run := range zeros.Tasks[i].Values {
			clear(run)
		}
	}
	b, err := json.Marshal(&zeros.Results)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("zeros", 0o700); err != nil {
		t.Fatal(err)
	}
	clitest.Write(t, "zeros/results.json", string(b))
	for _, args := range [][]string{{"report", "zeros"}, {"submit", "zeros", "-o", "zeros.json", "--command", "x"}} {
		clitest.Wrong(t, append([]string{"benchmark"}, args...), "no policy that finishes all jobs gets below")
	}
	changed := strings.Replace(clitest.Read(t, "best.json"), `"best"`, `"mine"`, 1)
	clitest.Write(t, "changed.json", changed)
	clitest.Wrong(t, []string{"benchmark", "verify", "changed.json"}, "its hash does not match")
	clitest.Wrong(t, []string{"benchmark", "submit", "runs/best", "-o", "x.json"}, "the commands that repeat")
	clitest.Wrong(t, []string{"benchmark", "run", "--policy", "best", "--checkpoint", "x", "-o", "y"},
		"--checkpoint and --policy do not go together")
	clitest.Wrong(t, []string{"benchmark", "run", "--policy", "best", "--split", "sealed", "-o", "y"}, "is open")
	if code, out, said := clitest.Run(t, "benchmark", "run", "--policy", "heft", "--tasks", "workerplace-*", "-o",
		"none"); code != cli.ExitMistake || out != "" || !strings.HasSuffix(said, "plays none of the tasks\n") {
		t.Errorf("a policy that plays nothing: exit code %d, %q, %q", code, out, said)
	}
	clitest.Wrong(t, []string{"benchmark", "run", "--external", "x", "--tasks", "dagplace-*", "-o", "z"}, "--serve")
	clitest.Wrong(t, []string{"benchmark", "report", "runs"}, "holds no results.json")
	clitest.Wrong(t, []string{"benchmark", "report", "--rows", "best,rando"}, `no row "rando"`)
}

// A secret that is not the version's opens nothing, and is never replaced.
func TestBenchmarkSecrets(t *testing.T) {
	plays(t, versionOne)
	t.Chdir(t.TempDir())
	out := clitest.Must(t, "benchmark", "seal", "--secret", "secret")
	if !strings.HasPrefix(out, "commitment: ") || len(out) != len("commitment: ")+65 {
		t.Errorf("got %q", out)
	}
	if i, err := os.Stat("secret"); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v: others can read the secret", err)
	}
	kept := clitest.Read(t, "secret")
	clitest.Wrong(t, []string{"benchmark", "seal", "--secret", "secret"}, "is not that of version 1")
	if clitest.Read(t, "secret") != kept {
		t.Error("the secret was replaced")
	}
	clitest.Wrong(t,
		[]string{"benchmark", "run", "--policy", "best", "--split", "sealed", "--secret", "secret", "-o", "runs"},
		"is not that of version 1")
}

// A row is opened with a secret: played on development windows again, then on sealed ones, and put into the
// leaderboard. Numbers that were made up, parts that were changed and references of other windows are refused, and the
// leaderboard stays as it is.
func TestBenchmarkOpensRows(t *testing.T) {
	plays(t, versionOne)
	t.Chdir(t.TempDir())
	secret := benchmark.Draw()
	if err := secret.Write("secret"); err != nil {
		t.Fatal(err)
	}
	plays(t, func() *benchmark.Version {
		v := benchmark.Numbered(1)
		v.Commitment = secret.Commitment()
		return v
	})
	const task = "dagplace-fork-join"
	for _, policy := range []string{"random", "best"} {
		clitest.Must(t, "benchmark", "run", "--policy", policy, "--tasks", task, "--split", "sealed", "--secret", "secret",
			"-o", "sealed/"+policy)
	}
	// The other tasks are absent, which it says.
	if code, _, said := clitest.Run(t, "benchmark", "record", "sealed/random", "sealed/best", "--split", "sealed", "-o",
		"references.json"); code == cli.ExitDone || !strings.Contains(said, "there are no results") {
		t.Fatalf("exit code %d, %s", code, said)
	}
	clitest.Must(t, "benchmark", "run", "--policy", "best", "--tasks", task, "-o", "best")
	clitest.Must(t, "benchmark", "submit", "best", "-o", "best.json", "--command", "x", "--author", "A. Person")
	clitest.Write(t, "board.json", `{"format": 1, "version": 1, "rows": []}`)
	open := func(row string, more ...string) []string {
		return append([]string{"benchmark", "open", row, "--secret", "secret", "--references", "references.json",
			"--leaderboard", "board.json", "-o", "opened"}, more...)
	}
	if out := clitest.Must(t, open("best.json")...); !strings.Contains(out, "1.000") {
		t.Errorf("the best rule does not score 1 on sealed windows:\n%s", out)
	}
	board, err := benchmark.ReadBoard("board.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(board.Rows) != 1 || board.Rows[0].Sealed[task][0] != 1 || board.Rows[0].Dev[task][0] != 1 ||
		board.Rows[0].Opened == "" {
		t.Fatalf("the leaderboard has %+v", board.Rows)
	}
	kept := clitest.Read(t, "board.json")
	refused := func(args []string, want string) {
		t.Helper()
		if code, out, said := clitest.Run(t, args...); code != cli.ExitMistake || out != "" || !strings.Contains(said, want) {
			t.Errorf("gymctl %s: exit code %d, %q, said %q; want %q", strings.Join(args, " "), code, out, said, want)
		}
		if clitest.Read(t, "board.json") != kept {
			t.Fatal("the leaderboard was changed")
		}
	}
	// A row whose numbers are made up has a hash that matches, and is found by playing again.
	var r benchmark.Results
	if err := json.Unmarshal([]byte(clitest.Read(t, "best/results.json")), &r); err != nil {
		t.Fatal(err)
	}
	r.Tasks[0].Values[0][5] /= 2
	b, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Write(t, "best/results.json", string(b))
	clitest.Must(t, "benchmark", "submit", "best", "-o", "forged.json", "--command", "x", "--author", "A. Person")
	refused(open("forged.json"), "run 1, window 5: it says")
	// A part of sealed windows that was changed, or that comes from a folder of development windows.
	part := filepath.Join("opened", "sealed", "parts", task, "0.json")
	was := clitest.Read(t, part)
	clitest.Write(t, part, strings.Replace(was, `"values": [`, `"values": [[0.5],`, 1))
	refused(open("best.json"), "was not played here on the windows of the secret, or was changed")
	clitest.Write(t, part, clitest.Read(t, filepath.Join("opened", "development", "parts", task, "0.json")))
	refused(open("best.json"), "was not played here on the windows of the secret, or was changed")
	clitest.Write(t, part, was)
	clitest.Must(t, open("best.json")...)
	kept = clitest.Read(t, "board.json")
	// References of the development windows.
	refs := clitest.Read(t, "references.json")
	clitest.Write(t, "references.json", strings.Replace(refs, secret.Commitment(), "", 1))
	refused(open("best.json"), "is of other windows")
	clitest.Write(t, "references.json", refs)
	// Another author cannot replace the row by one of the same name.
	clitest.Must(t, "benchmark", "submit", "opened/development", "-o", "other.json", "--command", "x", "--author",
		"B. Person")
	refused(open("other.json"), `by "A. Person", and this one is of kind rule by "B. Person"`)
}

// An agent is trained by the protocol, in small, and judged on the task.
func TestBenchmarkTrainsAndPlaysAgents(t *testing.T) {
	plays(t, versionOne)
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	short := []string{"--set", "train.steps=2048", "--set", "train.eval_every=2048", "--set", "eval.validation=2",
		"--workers", "2"}
	clitest.Must(t, append([]string{"benchmark", "train", "dagplace-fork-join", "-o", "ours"}, short...)...)
	// it is done already
	clitest.Must(t, append([]string{"benchmark", "train", "dagplace-fork-join", "-o", "ours"}, short...)...)
	clitest.Wrong(t, []string{"benchmark", "train", "dagplace-fork-join", "-o", "other", "--set", "env.gpus=4"},
		"are the task's")
	var r benchmark.Results
	if err := json.Unmarshal([]byte(clitest.Must(t, "benchmark", "run", "--checkpoint", "ours", "-o", "played", "--json")),
		&r); err != nil {
		t.Fatal(err)
	}
	if len(r.Tasks) != 1 || len(r.Tasks[0].Values) != 5 || len(r.Tasks[0].Files) != 5 ||
		!slices.Equal(r.Tasks[0].Seeds, []uint64{1, 2, 3, 4, 5}) {
		t.Errorf("got %d tasks, of the first %d runs by %v with seeds %v", len(r.Tasks), len(r.Tasks[0].Values),
			r.Tasks[0].Files, r.Tasks[0].Seeds)
	}
	clitest.Must(t, "benchmark", "submit", "played", "-o", "row.json", "--command", "x")
	// The row needs the runs, and takes no others.
	clitest.Wrong(t, []string{"benchmark", "verify", "row.json", "--replay", "-o", "again"},
		"want their runs by --checkpoint")
	clitest.Must(t, "benchmark", "verify", "row.json", "--replay", "--checkpoint", "ours", "-o", "again")
	if err := os.Rename(filepath.Join("ours", "dagplace-fork-join", "seed-1"), "aside"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join("ours", "dagplace-fork-join", "seed-2"),
		filepath.Join("ours", "dagplace-fork-join", "seed-1")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("aside", filepath.Join("ours", "dagplace-fork-join", "seed-2")); err != nil {
		t.Fatal(err)
	}
	if code, _, said := clitest.Run(t, "benchmark", "verify", "row.json", "--replay", "--checkpoint", "ours", "-o",
		"swapped"); code != cli.ExitMistake || !strings.Contains(said, "it is another policy") {
		t.Errorf("other runs than the row's: exit code %d, %s", code, said)
	}
	// As models the agents play as they do as checkpoints, and a model for another environment is refused.
	if err := os.MkdirAll("models/dagplace-fork-join", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, seed := range []string{"1", "2", "3", "4", "5"} {
		clitest.Must(t, "ckpt", "export", "ours/dagplace-fork-join/seed-"+seed, "-o",
			"models/dagplace-fork-join/seed-"+seed+".onnx")
	}
	var m benchmark.Results
	if err := json.Unmarshal(
		[]byte(clitest.Must(t, "benchmark", "run", "--policy-onnx", "models", "--name", "exported", "-o", "models-played",
			"--json")), &m); err != nil {
		t.Fatal(err)
	}
	for i, k := range []int{1, 0, 2, 3, 4} { // the first two runs were swapped above
		if !slices.Equal(m.Tasks[0].Values[i], r.Tasks[0].Values[k]) {
			t.Errorf("model %d has other values than checkpoint %d", i+1, k+1)
		}
	}
	clitest.Must(t, "benchmark", "submit", "models-played", "-o", "models.json", "--command", "x")
	clitest.Wrong(t, []string{"benchmark", "verify", "models.json", "--replay", "-o", "models-again"},
		"want their files by --policy-onnx")
	clitest.Must(t, "benchmark", "verify", "models.json", "--replay", "--policy-onnx", "models", "-o", "models-again")
	one := "models/dagplace-fork-join/seed-1.onnx"
	for want, args := range map[string][]string{
		"say which task it plays":   {one},
		"are the same agent":        {"dagplace-fork-join=" + one, "dagplace-fork-join=" + one},
		"the model is for DAGPlace": {"workerplace-ps=" + one},
		"want *.onnx":               {"dagplace-fork-join=ours"},
		"no such file":              {"absent.onnx"},
	} {
		run := []string{"benchmark", "run", "--name", "x", "-o", "refused"}
		for _, a := range args {
			run = append(run, "--policy-onnx", a)
		}
		if code, _, said := clitest.Run(t, run...); code != cli.ExitMistake || !strings.Contains(said, want) {
			t.Errorf("%v: exit code %d, %s, want %q", args, code, said, want)
		}
	}
}
