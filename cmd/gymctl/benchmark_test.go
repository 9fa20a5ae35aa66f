package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/experiments/benchmark"
)

func TestBenchmarkListsTasks(t *testing.T) {
	out := must(t, "benchmark", "list", "dagplace-*")
	v := benchmark.Current()
	task, err := v.Task("dagplace-erdos")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "dagplace-erdos") || !strings.Contains(out, task.Hash[:12]) || strings.Contains(out, "gpupick") {
		t.Errorf("got\n%s", out)
	}
	var list []listedTask
	strict(t, must(t, "benchmark", "list", "--json"), &list)
	if len(list) != len(v.Tasks) || list[0].Hash != v.Tasks[0].Hash || list[0].Windows != 64 || list[0].Cluster == "" {
		t.Errorf("%d tasks, the first %+v", len(list), list[0])
	}
	wrong(t, []string{"benchmark", "list", "dagplace-erdo"}, "did you mean dagplace-erdos?")
	wrong(t, []string{"benchmark", "show", "x"}, "task \"x\" is unknown")
}

// What show prints is a run, with the windows of the task.
func TestBenchmarkShowPrintsARun(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "task.yaml", must(t, "benchmark", "show", "workerplace-ps"))
	must(t, "config", "check", "task.yaml")
	out := must(t, "eval", "-c", "task.yaml", "--policies", "sjf-waits@slots", "--episodes", "3", "--json")
	if !strings.Contains(out, `"jct_s"`) {
		t.Errorf("got %s", out)
	}
	var d struct {
		Name, Hash, Tests string
		Config            json.RawMessage
	}
	strict(t, must(t, "benchmark", "show", "workerplace-ps", "--json"), &d)
	if d.Name != "workerplace-ps" || len(d.Hash) != 64 {
		t.Errorf("got %+v", d)
	}
}

// A rule is played, reported, packed into a row, checked, played again, changed, and refused.
func TestBenchmarkFromRunToRow(t *testing.T) {
	oneGoroutine(t)
	t.Chdir(t.TempDir())
	tasks := "dagplace-fork-join,workerplace-pairs"
	out := must(t, "benchmark", "run", "--policy", "best", "--tasks", tasks, "-o", "runs/best")
	if !strings.Contains(out, "1.000") {
		t.Errorf("the best rule does not score 1:\n%s", out)
	}
	must(t, "benchmark", "run", "--policy", "random", "--tasks", tasks, "-o", "runs/random", "--json")
	out = must(t, "benchmark", "report", "runs/best", "runs/random", "--tasks", tasks, "--html", "report.html")
	if !strings.Contains(out, "best") || !strings.Contains(out, "P(a > b)") {
		t.Errorf("got\n%s", out)
	}
	if page := read(t, "report.html"); !strings.Contains(page, "Performance profiles") {
		t.Error("the page has no profiles")
	}
	var report benchmark.Report
	if err := json.Unmarshal([]byte(must(t, "benchmark", "report", "runs/best", "runs/random", "--tasks", tasks, "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 2 || report.Rows[0].IQM != 1 || report.Rows[1].IQM != 0 || len(report.Pairs) != 1 || report.Pairs[0].Probability != 1 {
		t.Errorf("got %+v", report)
	}
	must(t, "benchmark", "submit", "runs/best", "-o", "best.json", "--command", "gymctl benchmark run --policy best -o runs/best")
	if out := must(t, "benchmark", "verify", "best.json", "--replay", "-o", "runs/again"); !strings.Contains(out, "the same values") {
		t.Errorf("got %s", out)
	}
	changed := strings.Replace(read(t, "best.json"), `"best"`, `"mine"`, 1)
	write(t, "changed.json", changed)
	wrong(t, []string{"benchmark", "verify", "changed.json"}, "its hash does not match")
	wrong(t, []string{"benchmark", "submit", "runs/best", "-o", "x.json"}, "the commands that repeat")
	wrong(t, []string{"benchmark", "run", "--policy", "best", "--checkpoint", "x", "-o", "y"}, "want one of --policy")
	wrong(t, []string{"benchmark", "run", "--policy", "best", "--split", "sealed", "-o", "y"}, "is open")
	if code, out, said := gymctl(t, "benchmark", "run", "--policy", "heft", "--tasks", "workerplace-*", "-o", "none"); code != exitMistake || out != "" || !strings.HasSuffix(said, "plays none of the tasks\n") {
		t.Errorf("a policy that plays nothing: exit code %d, %q, %q", code, out, said)
	}
	wrong(t, []string{"benchmark", "run", "--external", "x", "--tasks", "dagplace-*", "-o", "z"}, "--serve")
	wrong(t, []string{"benchmark", "report", "runs"}, "holds no results.json")
}

// A secret that is not the version's opens nothing, and is never replaced.
func TestBenchmarkSecrets(t *testing.T) {
	t.Chdir(t.TempDir())
	out := must(t, "benchmark", "seal", "--secret", "secret")
	if !strings.HasPrefix(out, "commitment: ") || len(out) != len("commitment: ")+65 {
		t.Errorf("got %q", out)
	}
	if i, err := os.Stat("secret"); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v: others can read the secret", err)
	}
	kept := read(t, "secret")
	wrong(t, []string{"benchmark", "seal", "--secret", "secret"}, "is not that of version 1")
	if read(t, "secret") != kept {
		t.Error("the secret was replaced")
	}
	wrong(t, []string{"benchmark", "run", "--policy", "best", "--split", "sealed", "--secret", "secret", "-o", "runs"}, "is not that of version 1")
}

// An agent is trained by the protocol, in small, and judged on the task.
func TestBenchmarkTrainsAndPlaysAgents(t *testing.T) {
	oneGoroutine(t)
	t.Chdir(t.TempDir())
	short := []string{"--seeds", "2", "--set", "train.steps=4096", "--set", "train.eval_every=4096", "--set", "eval.validation=2", "--workers", "2"}
	must(t, append([]string{"benchmark", "train", "workerplace-pairs", "-o", "ours"}, short...)...)
	must(t, append([]string{"benchmark", "train", "workerplace-pairs", "-o", "ours"}, short...)...) // it is done already
	wrong(t, []string{"benchmark", "train", "workerplace-pairs", "-o", "other", "--set", "env.jobs=2"}, "are the task's")
	var r benchmark.Results
	if err := json.Unmarshal([]byte(must(t, "benchmark", "run", "--checkpoint", "ours", "-o", "played", "--json")), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Tasks) != 1 || len(r.Tasks[0].Values) != 2 || len(r.Tasks[0].Files) != 2 || r.Tasks[0].Files[0] == r.Tasks[0].Files[1] {
		t.Errorf("got %d tasks, of the first %d runs by %v", len(r.Tasks), len(r.Tasks[0].Values), r.Tasks[0].Files)
	}
	must(t, "benchmark", "submit", "played", "-o", "row.json", "--command", "x")
	// The row needs the runs, and takes no others.
	wrong(t, []string{"benchmark", "verify", "row.json", "--replay", "-o", "again"}, "want their runs by --checkpoint")
	must(t, "benchmark", "verify", "row.json", "--replay", "--checkpoint", "ours", "-o", "again")
	if err := os.Rename(filepath.Join("ours", "workerplace-pairs", "seed-1"), "aside"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join("ours", "workerplace-pairs", "seed-2"), filepath.Join("ours", "workerplace-pairs", "seed-1")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("aside", filepath.Join("ours", "workerplace-pairs", "seed-2")); err != nil {
		t.Fatal(err)
	}
	if code, _, said := gymctl(t, "benchmark", "verify", "row.json", "--replay", "--checkpoint", "ours", "-o", "swapped"); code != exitMistake || !strings.Contains(said, "it is another policy") {
		t.Errorf("other runs than the row's: exit code %d, %s", code, said)
	}
}
