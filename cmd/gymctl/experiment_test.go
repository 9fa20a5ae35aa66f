package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestExperimentsAreListed(t *testing.T) {
	var list []struct{ Name, Title, Source, Takes, Command string }
	if err := json.Unmarshal([]byte(must(t, "experiment", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	table := must(t, "experiment", "list")
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
		if e.Title == "" || e.Source == "" || e.Takes == "" || e.Command != "gymctl experiment run "+e.Name || !strings.Contains(table, e.Name) {
			t.Errorf("%+v", e)
		}
		// Each has a folder with the files that define it.
		for _, file := range []string{"README.md", "experiment.yaml", "expected.csv"} {
			if _, err := os.Stat(filepath.Join("..", "..", "experiments", strings.ReplaceAll(e.Name, "-", ""), file)); err != nil {
				t.Error(err)
			}
		}
	}
	if want := []string{"worl-rtgs", "topdrl", "dally", "meta-scheduler", "rlscheduler", "rltune", "lwf", "estimates", "lookahead"}; !slices.Equal(names, want) {
		t.Errorf("listed are %q, want %q", names, want)
	}
}

func TestExperimentMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "full", "a file")
	if err := os.MkdirAll("mine", 0o750); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join("mine", "notes.txt"), "")
	for _, c := range [][2]string{
		{"run topdlr", `experiment "topdlr" is unknown; did you mean topdrl?`},
		{"run", "experiment run: want one NAME; see gymctl experiment run --help"},
		{"rum", `experiment: verb "rum" is unknown; did you mean run?`},
		{"run topdrl --quick --workers 0", "--workers: got 0, want 1 or more"},
		{"run topdrl --quick --seeds 0", "--seeds: got 0, want 1 or more"},
		{"run topdrl --quick --out full", "folder full: there is a file of that name"},
		{"run topdrl --quick --out mine", "folder mine is not empty and holds no experiment; name another one"},
		{"run topdrl --quick --out new --only evil", `no cell's name begins with "evil"; there are 10, such as train/precursor-32/ppo/seed-1`},
		{"run topdrl --quick --data nowhere", "data folder nowhere: no such file or directory"},
		{"run estimates --quick --data mine", "data folder mine: it has none of philly/philly_jobs.csv.gz, swf/KTH-SP2-1996-2.1-cln.swf.gz, "},
		{"run topdrl --quick --agent philly=mine", "--agent philly=mine: experiment topdrl plays no agents but its own"},
		{"run rlscheduler --quick --agent mine", `--agent: got "mine", want LOG=DIR`},
		{"run rlscheduler --quick --agent generated=mine", "--agent generated=mine: mine is neither a checkpoint (no manifest.json) nor a run directory (no config.yaml)"},
		{"run topdrl --quick --data mine", "--data: mine/philly/philly_jobs.csv.gz: no such file or directory"},
	} {
		code, out, err := gymctl(t, append([]string{"experiment"}, strings.Fields(c[0])...)...)
		if code != exitMistake || out != "" || !strings.HasPrefix(err, "gymctl: "+c[1]) {
			t.Errorf("experiment %s: exit code %d, printed %q, said\n%swant\ngymctl: %s", c[0], code, out, err, c[1])
		}
	}
	if _, err := os.Stat("new"); err == nil {
		t.Error("a mistake left a folder behind")
	}
}

// A part that takes no time: the placements' gap, which is then the only table.
func TestAPartOfAnExperimentCanBeRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	out := must(t, "experiment", "run", "topdrl", "--quick", "--out", dir, "--only", "gap")
	for _, part := range []string{"TopDRL-like", "2 of 10 are computed", "closest-b", "topdrl-4x8x4"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in\n%s", part, out)
		}
	}
	if read(t, filepath.Join(dir, "table.txt")) != out || !strings.Contains(read(t, filepath.Join(dir, "index.html")), "<svg") {
		t.Error("the folder holds something else than what was printed")
	}
	var doc struct {
		Name    string `json:"name"`
		Missing int    `json:"missing_cells"`
		Tables  []struct {
			Name  string `json:"name"`
			Lines []any  `json:"lines"`
		} `json:"tables"`
	}
	if err := json.Unmarshal([]byte(must(t, "experiment", "run", "topdrl", "--quick", "--out", dir, "--only", "gap", "--json")), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Name != "topdrl" || doc.Missing != 8 || len(doc.Tables) != 5 || len(doc.Tables[3].Lines) != 12 {
		t.Errorf("%+v", doc)
	}
}
