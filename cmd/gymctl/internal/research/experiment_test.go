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
)

func TestExperimentsAreListed(t *testing.T) {
	var list []struct{ Name, Title, Source, Takes, Command string }
	if err := json.Unmarshal([]byte(clitest.Must(t, "experiment", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	table := clitest.Must(t, "experiment", "list")
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
		if e.Title == "" || e.Source == "" || e.Takes == "" || e.Command != "gymctl experiment run "+e.Name ||
			!strings.Contains(table, e.Name) {
			t.Errorf("%+v", e)
		}
		// Each has a folder with the files that define it.
		for _, file := range []string{"README.md", "experiment.yaml", "report.yaml", "expected.csv.zst"} {
			if _,
				err := os.Stat(filepath.Join("..", "..", "..", "..", "experiments", strings.ReplaceAll(e.Name, "-", ""),
				file)); err != nil {
				t.Error(err)
			}
		}
	}
	if want := []string{"worl-rtgs", "topdrl", "dally", "meta-scheduler", "rlscheduler", "rltune", "lwf", "a-srpt",
		"improper", "ddppo", "estimates", "lookahead"}; !slices.Equal(names, want) {
		t.Errorf("listed are %q, want %q", names, want)
	}
}

func TestExperimentMistakes(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	clitest.Write(t, "full", "a file")
	if err := os.MkdirAll("mine", 0o750); err != nil {
		t.Fatal(err)
	}
	clitest.Write(t, filepath.Join("mine", "notes.txt"), "")
	clitest.Write(t, "bad.yaml", "draws: 3\nspans: [x]\n")
	clitest.Write(t, "odd.yaml", "draws: 3\nspams: [6]\n")
	for _, c := range [][2]string{
		{"run topdlr", `experiment "topdlr" is unknown; did you mean topdrl?`},
		{"run", "experiment run: want one NAME; see gymctl experiment run --help"},
		{"rum", `experiment: verb "rum" is unknown; did you mean run?`},
		{"run topdrl --quick --workers 0", "--workers: got 0, want 1 or more"},
		{"run topdrl --quick --seeds 0", "--seeds: got 0, want 1 or more"},
		{"run topdrl --quick --out full", "folder full: there is a file of that name"},
		{"run topdrl --quick --out mine", "folder mine is not empty and holds no experiment; name another one"},
		{"run topdrl --quick --out new --only evil",
			`no cell's name begins with "evil"; there are 34, such as train/pick/gpupick-shared/seed-1`},
		{"run topdrl --quick --data nowhere", "data folder nowhere: no such file or directory"},
		{"run estimates --quick --data mine",
			"data folder mine: it has none of philly/philly_jobs.csv.gz, swf/KTH-SP2-1996-2.1-cln.swf.gz, "},
		{"run topdrl --quick --agent philly=mine", "--agent philly=mine: experiment topdrl plays no agents but its own"},
		{"run rlscheduler --quick --agent mine", `--agent: got "mine", want LOG=DIR`},
		{"run rlscheduler --quick --agent generated=mine",
			"--agent generated=mine: mine is neither a checkpoint (no manifest.json) nor a run directory (no config.yaml)"},
		{"run topdrl --quick --data mine", "--data: mine/philly/philly_jobs.csv.gz: no such file or directory"},
		{"run lwf --quick --out new --set draw=5",
			`--set "draw=5": draw: unknown key; did you mean draws? Known are draws, spans, span_draws, fluid_spans, fluid_draws, paper_draws, fluid_paper_draws`},
		{"run improper --quick --out new --seeds 3 --set seeds=4",
			"seeds: got 4 among the settings and 3 by --seeds, want one of the two"},
		{"run lwf --quick --out new --set draws=0", `--set "draws=0": draws: got 0, want 1 to 100000`},
		{"run lwf --quick --out new --set spans=[6,x]", `--set "spans=[6,x]": spans[1]: got "x", want a whole number`},
		{"run lwf --quick --out new --settings bad.yaml", `bad.yaml:2: spans[0]: got "x", want a whole number`},
		{"run lwf --quick --out new --settings odd.yaml", "odd.yaml:2: spams: unknown key; did you mean spans?"},
		{"run lwf --quick --out new --settings none.yaml", "--settings none.yaml: no such file or directory"},
		{"show rltune --set agent.ppo.lr=0", `--set "agent.ppo.lr=0": agent.ppo.lr: got 0, want a number in (0, 1]`},
		{"show rltune --set agent.train.steps=8",
			`--set "agent.train.steps=8": agent.train.steps: got 8, want 409600: steps sets it`},
		{"show rltune --set agent.env.id=JobSelect-v1",
			`--set "agent.env.id=JobSelect-v1": agent.env.id: got "JobSelect-v1", want QueueRank-v1, whose settings env holds`},
		{"show dally --set leases[1]=5x", `--set "leases[1]=5x": leases: got "5x", want a time of 1m or more`},
		{"show dalli", `experiment "dalli" is unknown; did you mean dally?`},
		{"show", "experiment show: want one NAME; see gymctl experiment show --help"},
	} {
		code, out, err := clitest.Run(t, append([]string{"experiment"}, strings.Fields(c[0])...)...)
		if code != cli.ExitMistake || out != "" || !strings.HasPrefix(err, "gymctl: "+c[1]) {
			t.Errorf("experiment %s: exit code %d, printed %q, said\n%swant\ngymctl: %s", c[0], code, out, err, c[1])
		}
	}
	if _, err := os.Stat("new"); err == nil {
		t.Error("a mistake left a folder behind")
	}
}

// A part that takes no time: the placements' gap, which is then the only table.
func TestAPartOfAnExperimentCanBeRun(t *testing.T) {
	clitest.OneGoroutine(t)
	dir := filepath.Join(t.TempDir(), "out")
	out := clitest.Must(t, "experiment", "run", "topdrl", "--quick", "--out", dir, "--only", "gap")
	for _, part := range []string{"TopDRL-like", "2 of 34 are computed", "closest-b", "topdrl-4x8x4"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in\n%s", part, out)
		}
	}
	if clitest.Read(t, filepath.Join(dir, "table.txt")) != out ||
		!strings.Contains(clitest.Read(t, filepath.Join(dir, "index.html")), "<svg") {
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
	if err := json.Unmarshal(
		[]byte(clitest.Must(t, "experiment", "run", "topdrl", "--quick", "--out", dir, "--only", "gap", "--json")),
		&doc); err != nil {
		t.Fatal(err)
	}
	if doc.Name != "topdrl" || doc.Missing != 32 {
		t.Errorf("%s lacks %d cells, want topdrl to lack 32", doc.Name, doc.Missing)
	}
	for _, table := range doc.Tables {
		if want := map[string]int{"gap": 12}[table.Name]; len(table.Lines) != want {
			t.Errorf("table %s has %d lines, want %d", table.Name, len(table.Lines), want)
		}
	}
}

// What show prints is a file that run takes, for every experiment and both forms.
func TestShownSettingsAreAFile(t *testing.T) {
	clitest.OneGoroutine(t)
	dir := t.TempDir()
	for _, name := range research.PaperNames() {
		for _, form := range [][]string{nil, {"--quick"}} {
			text := clitest.Must(t, append([]string{"experiment", "show", name}, form...)...)
			file := filepath.Join(dir, "settings.yaml")
			clitest.Write(t, file, text)
			if again := clitest.Must(t, append([]string{"experiment", "show", name, "--settings", file}, form...)...); again !=
				text {
				t.Errorf("%s %v: the same settings are shown as\n%s\nwant\n%s", name, form, again, text)
			}
			var doc struct {
				Name, Form string
				Settings   map[string]any
			}
			if err := json.Unmarshal([]byte(clitest.Must(t, append([]string{"experiment", "show", name, "--json"}, form...)...)),
				&doc); err != nil || doc.Name != name || len(doc.Settings) < 2 {
				t.Errorf("%s: %v %+v", name, err, doc)
			}
		}
	}
}

func TestAnExperimentIsRunWithOtherSettings(t *testing.T) {
	clitest.OneGoroutine(t)
	dir := filepath.Join(t.TempDir(), "out")
	run := func(more ...string) string {
		return clitest.Must(t,
			append([]string{"experiment", "run", "topdrl", "--quick", "--out", dir, "--only", "gap"}, more...)...)
	}
	if out := run(); strings.Contains(out, "changed") || !strings.Contains(out, "Beside expected.csv") {
		t.Fatalf("as recorded:\n%s", out)
	}
	out := run("--set", "gap.states=20")
	for _, part := range []string{"changed   gap.states: 200 → 20\n",
		"Not compared with expected.csv: settings are changed (above).\n"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in\n%s", part, out)
		}
	}
}
