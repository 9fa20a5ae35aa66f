package benchmark

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/safefile"
)

// newRow returns a row of a rule on one cheap task, and its file.
func newRow(t *testing.T) (*Version, *Row, string) {
	t.Helper()
	v := Numbered(1)
	tasks, err := v.Match("dagplace-fork-join")
	if err != nil {
		t.Fatal(err)
	}
	r, err := v.Play(t.Context(), rule("peft", "peft"), Options{Dir: t.TempDir(), Tasks: tasks})
	if err != nil {
		t.Fatal(err)
	}
	row, err := v.NewRow(r, "A. Person", "a planner", []string{"gymctl benchmark run --policy peft -o runs/peft"},
		Program{Version: "(devel)", Go: "go1", Platform: "a/b"})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "row.json")
	if err := row.Write(name); err != nil {
		t.Fatal(err)
	}
	return v, row, name
}

func TestARowIsReadAgain(t *testing.T) {
	v, row, name := newRow(t)
	got, err := v.ReadRow(name)
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != row.Digest || got.Policy.Name != "peft" || len(got.Tasks) != 1 {
		t.Errorf("got %+v", got)
	}
	if err := got.Compare(&row.Results); err != nil {
		t.Errorf("a row compared with itself: %v", err)
	}
}

// A file of two rows, or of two leaderboards, is refused: only the first would count.
func TestASecondRowIsRefused(t *testing.T) {
	v, _, name := newRow(t)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{string(b), "}", "]", "rubbish"} {
		if err := os.WriteFile(name, append(b[:len(b):len(b)], more...), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := v.ReadRow(name); err == nil || !strings.Contains(err.Error(), "there is more after it") {
			t.Errorf("%.10q behind a row: %v", more, err)
		}
		board := filepath.Join(t.TempDir(), "board.json")
		if err := (&Board{Format: resultsFormat, Version: 1}).Write(board); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(board)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(board, append(text, more...), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadBoard(board); err == nil || !strings.Contains(err.Error(), "there is more after it") {
			t.Errorf("%.10q behind a leaderboard: %v", more, err)
		}
	}
}

// A row that was changed is refused in one sentence; with a hash made for the change, the values do not repeat.
func TestATamperedRowIsRefused(t *testing.T) {
	v, row, name := newRow(t)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		change func(r *Row)
		want   string
	}{
		{"a value", func(r *Row) { r.Tasks[0].Values[0][3] /= 2 }, "its hash does not match"},
		{"a name", func(r *Row) { r.Policy.Name = "mine" }, "its hash does not match"},
		{"a command", func(r *Row) { r.Commands[0] += " --fast" }, "its hash does not match"},
		{"a task's hash, with a digest", func(r *Row) { r.Tasks[0].Hash = strings.Repeat("0", 64); r.Digest = r.digest() },
			"played on other windows"},
		{"windows, with a digest", func(r *Row) { r.Tasks[0].Values[0] = r.Tasks[0].Values[0][1:]; r.Digest = r.digest() },
			"has 199 windows, want 200"},
		{"no runs, with a digest", func(r *Row) { r.Tasks[0].Values = nil; r.Digest = r.digest() }, "has 0 runs"},
		{"a version, with a digest", func(r *Row) { r.Version = 2; r.Digest = r.digest() }, "of version 2"},
		{"a negative value, with a digest", func(r *Row) { r.Tasks[0].Values[0][0] = -1; r.Digest = r.digest() },
			"no number of 0 or more"},
	} {
		var changed Row
		if err := json.Unmarshal(b, &changed); err != nil {
			t.Fatal(err)
		}
		c.change(&changed)
		if err := safefile.WriteJSON(name, &changed); err != nil {
			t.Fatal(err)
		}
		if _, err := v.ReadRow(name); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
	// A made-up value with a digest of its own is found by playing again.
	var forged Row
	if err := json.Unmarshal(b, &forged); err != nil {
		t.Fatal(err)
	}
	forged.Tasks[0].Values[0][3] /= 2
	forged.Digest = forged.digest()
	if err := forged.Compare(&row.Results); err == nil || !strings.Contains(err.Error(), "window 3: it says") {
		t.Errorf("a made-up value: %v", err)
	}
	other := row.Results
	other.Hash = strings.Repeat("0", 64)
	if err := row.Compare(&other); err == nil || !strings.Contains(err.Error(), "it is another policy") {
		t.Errorf("another policy: %v", err)
	}
	for _, text := range []string{"", "{}", "[]", string(b) + "{}",
		strings.Replace(string(b), `"format"`, `"unknown": 1, "format"`, 1)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := v.ReadRow(name); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q…: %v", text, err)
		}
	}
}

// agentRow returns a row of five checkpoints, which nobody has trained, on a task.
func agentRow(task string) *Row {
	v := Numbered(1)
	t, err := v.Task(task)
	if err != nil {
		panic(err)
	}
	cfg, err := t.Config()
	if err != nil {
		panic(err)
	}
	res := TaskResult{Task: task, Hash: t.Hash, Policy: "ppo"}
	for i := range Seeds {
		res.Values = append(res.Values, slices.Repeat([]float64{float64(i + 1)}, Windows(&cfg)))
		res.Files = append(res.Files, strings.Repeat(string(rune('a'+i)), 64))
		res.Seeds = append(res.Seeds, uint64(i+1))
		res.Steps = append(res.Steps, cfg.Train.Steps)
	}
	r := &Row{Results: Results{Format: resultsFormat, Version: v.Version, Split: Development,
		Policy: Policy{Name: "agents", Kind: KindCheckpoint}, Tasks: []TaskResult{res}}, Commands: []string{"x"}}
	r.Hash = r.policyHash("")
	return r
}

// What can be seen of the protocol in a row is checked when it is made and when it is read, whatever its digest says.
func TestRowsThatBreakTheProtocolAreRefused(t *testing.T) {
	v := Numbered(1)
	ruleOn := func(task, rule string) func(r *Row) {
		return func(r *Row) {
			plain := agentRow(task)
			*r = *plain
			r.Policy = Policy{Name: "rule", Kind: KindRule, Rules: []string{rule}}
			one := &r.Tasks[0]
			one.Policy, one.Values, one.Files, one.Seeds, one.Steps = rule, one.Values[:1], nil, nil, nil
		}
	}
	cut := func(n int) func(r *Row) {
		return func(r *Row) {
			one := &r.Tasks[0]
			one.Values, one.Files, one.Seeds, one.Steps = one.Values[:n], one.Files[:n], one.Seeds[:n], one.Steps[:n]
		}
	}
	for _, c := range []struct {
		what   string
		change func(r *Row)
		want   string
	}{
		{"nothing", func(*Row) {}, ""},
		{"a model has no seeds", func(r *Row) { r.Policy.Kind, r.Tasks[0].Seeds, r.Tasks[0].Steps = KindModel, nil, nil },
			""},
		{"a rule has one run", ruleOn("dagplace-erdos", "peft"), ""},
		{"the best four seeds", cut(4), "it has 4 runs, want 5, one for each seed"},
		{"the best seed", cut(1), "it has 1 run, want 5"},
		{"an agent twice", func(r *Row) { r.Tasks[0].Files[4] = r.Tasks[0].Files[0] },
			"run 5 is of an agent that has a run already"},
		{"no agents", func(r *Row) { r.Tasks[0].Files = nil }, "have 0 hashes"},
		{"no hash of an agent", func(r *Row) { r.Tasks[0].Files[1] = "\x1b[2J" }, "want a SHA-256"},
		{"a seed twice", func(r *Row) { r.Tasks[0].Seeds[1] = 1 }, "seed 1 is there twice"},
		{"longer training", func(r *Row) { r.Tasks[0].Steps[2] *= 2 }, "steps, want at most"},
		{"an agent that knows", func(r *Row) { r.Tasks[0].Knows = true }, "knows the windows beforehand"},
		{"a rule that knows", ruleOn("jobselect-users-causal", "hindsight:sjf+skip"), "knows the windows beforehand"},
		{"true speeds", ruleOn("workerplace-ps", "oracle-waits@slots"), "or what no policy of the rung sees"},
		{"a search by the clock", func(r *Row) {
			ruleOn("jobselect-users-causal", "rollout:sjf+skip")(r)
			r.Policy.Set = []string{"eval.rollout.budget=20ms"}
		}, "which nobody can repeat"},
		{"a rule of another environment", ruleOn("dagplace-erdos", "sjf+skip"), "is unknown"},
		{"another environment's setting", func(r *Row) { r.Policy.Set = []string{"eval.hold.x=1"} }, "no keys of eval"},
		{"plays of a rule", func(r *Row) {
			ruleOn("dagplace-erdos", "peft")(r)
			r.Tasks[0].Values = [][]float64{r.Tasks[0].Values[0], r.Tasks[0].Values[0]}
		}, "it has 2 plays"},
		{"other windows", func(r *Row) { r.Split, r.Sealed = Sealed, v.Commitment }, "on sealed windows"},
		{"the windows of another secret", func(r *Row) { r.Sealed = strings.Repeat("0", 64) }, "of the commitment"},
		{"no commands", func(r *Row) { r.Commands = nil }, "want the commands"},
		{"a name that moves the cursor", func(r *Row) { r.Policy.Name = "a\x1b[2J" }, "printable characters"},
		{"numbers whose sum is none",
			func(r *Row) { r.Tasks[0].Values[0] = slices.Repeat([]float64{1e308}, len(r.Tasks[0].Values[0])) },
			"the mean is none"},
		{"a task twice", func(r *Row) { r.Tasks = append(r.Tasks, r.Tasks[0]) }, "is there twice"},
		{"a hash of nothing", func(*Row) {}, "not that of what it says plays"},
	} {
		r := agentRow("dagplace-erdos")
		c.change(r)
		if r.Hash = r.policyHash(""); c.what == "a hash of nothing" {
			r.Hash = strings.Repeat("0", 64)
		}
		if _, err := v.NewRow(&r.Results, "", "", r.Commands, Program{}); (err == nil) != (c.want == "") ||
			err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: made: %v, want %q", c.what, err, c.want)
		}
		r.Digest = r.digest()
		name := filepath.Join(t.TempDir(), "row.json")
		if err := safefile.WriteJSON(name, r); err != nil {
			t.Fatal(err)
		}
		_, err := v.ReadRow(name)
		if (err == nil) != (c.want == "") || err != nil &&
			(!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: read: %v, want %q", c.what, err, c.want)
		}
	}
}

// What scores refer to is checked, so that a score is a number.
func TestReferencesWithoutAScaleAreRefused(t *testing.T) {
	v := Numbered(1)
	task := &v.Tasks[0]
	good, ok := v.Reference(task)
	if !ok {
		t.Fatal("there is no reference")
	}
	good.Sealed = v.Commitment
	name := filepath.Join(t.TempDir(), "references.json")
	for _, c := range []struct {
		what   string
		change func(r *Reference)
		want   string
	}{
		{"nothing", func(*Reference) {}, ""},
		{"random play is as good", func(r *Reference) { r.Random = r.Best }, "there is no scale"},
		{"random play is better", func(r *Reference) { r.Random = r.Best / 2 }, "there is no scale"},
		{"a negative mean", func(r *Reference) { r.Best = -1 }, "there is no scale"},
		{"development windows", func(r *Reference) { r.Sealed = "" }, "of other windows"},
		{"another task", func(r *Reference) { r.Hash = v.Tasks[1].Hash }, "its hash is"},
		{"no rule of the task", func(r *Reference) { r.Rule = "peft" }, "none of its rules"},
	} {
		r := good
		c.change(&r)
		if err := safefile.WriteJSON(name, map[string]Reference{task.Name: r}); err != nil {
			t.Fatal(err)
		}
		_, err := v.ReadReferences(name)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
	if err := safefile.WriteJSON(name, map[string]Reference{"unknown": good}); err != nil {
		t.Fatal(err)
	}
	if _, err := v.ReadReferences(name); err == nil || !strings.Contains(err.Error(), `"unknown" is unknown`) {
		t.Errorf("an unknown task: %v", err)
	}
}

func TestTheLeaderboardTakesARowOnce(t *testing.T) {
	v, row, _ := newRow(t)
	e, err := v.Entry(&row.Results)
	if err != nil {
		t.Fatal(err)
	}
	b := &Board{Format: resultsFormat, Version: 1}
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for range 2 {
		b.Put(row, e, e, day)
	}
	if err := b.Takes(row); err != nil {
		t.Errorf("a new form of a row: %v", err)
	}
	other, kind, later := *row, *row, *row
	other.Author, kind.Policy.Kind, later.Version = "B. Person", KindModel, 2
	for want, r := range map[string]*Row{`by "A. Person"`: &other, "of kind model": &kind, "of version 2": &later} {
		if err := b.Takes(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	name := filepath.Join(t.TempDir(), "board.json")
	if err := b.Write(name); err != nil {
		t.Fatal(err)
	}
	got, err := ReadBoard(name)
	if err != nil || len(got.Rows) != 1 || got.Rows[0].Opened != "2026-01-02" ||
		got.Rows[0].Plays["dagplace-fork-join"] != "peft" {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, split := range []string{Development, Sealed} {
		tasks, _ := v.Match("dagplace-*")
		r, err := v.NewReport(split, tasks, got.Entries(split))
		if err != nil || len(r.Rows) != 1 || r.Rows[0].Tasks != 1 {
			t.Errorf("%s: %+v, %v", split, r, err)
		}
	}
}

// The recorded leaderboard is of this version, with rows for random play and the best rule on all tasks.
func TestTheLeaderboardIsRecorded(t *testing.T) {
	v := Numbered(1)
	b, err := v.Leaderboard()
	if err != nil {
		t.Fatal(err)
	}
	found, names := 0, map[string]bool{}
	for i := range b.Rows {
		r := b.Rows[i]
		if names[r.Name] || len(r.Commands) == 0 || r.Opened == "" || len(r.Dev) != len(r.Sealed) {
			t.Errorf("row %s: it is there twice, or has no commands, no day, or not as many sealed tasks as others", r.Name)
		}
		names[r.Name] = true
		for name, s := range r.Dev {
			task, err := v.Task(name)
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := task.Config()
			if err != nil {
				t.Fatal(err)
			}
			runs := len(s)
			if r.Kind != KindRule && runs != Seeds || r.Kind == KindRule && runs != 1 && runs != Plays ||
				len(r.Sealed[name]) != runs {
				t.Errorf("row %s: %d and %d runs on %s", r.Name, runs, len(r.Sealed[name]), name)
			}
			if rule, err := cfg.Rival(r.Plays[name]); r.Kind == KindRule &&
				(err != nil || rule.Hindsight || rule.Rule != nil && rule.Rule.Knows) {
				t.Errorf("row %s: %s on %s: %v, or it knows more than the rung", r.Name, r.Plays[name], name, err)
			}
		}
		want := map[string]float64{"random@slots": 0, "best": 1}
		x, ok := want[r.Name]
		if !ok {
			continue
		}
		found++
		for _, scores := range []map[string]Reached{r.Dev, r.Sealed} {
			for _, name := range v.Names() {
				if s := scores[name]; len(s) != 1 || s[0] != x {
					t.Errorf("%s on %s: %v, want %v", r.Name, name, s, x)
				}
			}
		}
	}
	if found != 2 || b.Version != v.Version {
		t.Errorf("version %d, and %d of the rows random@slots and best", b.Version, found)
	}
}
