package benchmark

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newRow returns a row of a rule on one cheap task, and its file.
func newRow(t *testing.T) (*Version, *Row, string) {
	t.Helper()
	v := Current()
	tasks, err := v.Match("dagplace-fork-join")
	if err != nil {
		t.Fatal(err)
	}
	r, err := v.Play(t.Context(), rule("peft", "peft"), Options{Dir: t.TempDir(), Tasks: tasks})
	if err != nil {
		t.Fatal(err)
	}
	row, err := v.NewRow(r, "A. Person", "a planner", []string{"gymctl benchmark run --policy peft -o runs/peft"}, Program{Version: "(devel)", Go: "go1", Platform: "a/b"})
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
		{"a task's hash, with a digest", func(r *Row) { r.Tasks[0].Hash = strings.Repeat("0", 64); r.Digest = r.digest() }, "played on other windows"},
		{"windows, with a digest", func(r *Row) { r.Tasks[0].Values[0] = r.Tasks[0].Values[0][1:]; r.Digest = r.digest() }, "has 199 windows, want 200"},
		{"no runs, with a digest", func(r *Row) { r.Tasks[0].Values = nil; r.Digest = r.digest() }, "has 0 runs"},
		{"a version, with a digest", func(r *Row) { r.Version = 2; r.Digest = r.digest() }, "of version 2"},
		{"a negative value, with a digest", func(r *Row) { r.Tasks[0].Values[0][0] = -1; r.Digest = r.digest() }, "no number of 0 or more"},
	} {
		var changed Row
		if err := json.Unmarshal(b, &changed); err != nil {
			t.Fatal(err)
		}
		c.change(&changed)
		if err := writeJSON(name, &changed); err != nil {
			t.Fatal(err)
		}
		if _, err := v.ReadRow(name); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
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
	for _, text := range []string{"", "{}", "[]", string(b) + "{}", strings.Replace(string(b), `"format"`, `"unknown": 1, "format"`, 1)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := v.ReadRow(name); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q…: %v", text, err)
		}
	}
}

func TestRowsOfPoliciesThatKnowTheWindowsAreRefused(t *testing.T) {
	v, row, _ := newRow(t)
	r := row.Results
	r.Tasks = append([]TaskResult(nil), r.Tasks...)
	r.Tasks[0].Knows = true
	if _, err := v.NewRow(&r, "", "", []string{"x"}, Program{}); err == nil || !strings.Contains(err.Error(), "knows the windows beforehand") {
		t.Errorf("got %v", err)
	}
	r = row.Results
	if _, err := v.NewRow(&r, "", "", nil, Program{}); err == nil || !strings.Contains(err.Error(), "commands") {
		t.Errorf("a row that nobody can repeat: %v", err)
	}
	r.Split = Sealed
	if _, err := v.NewRow(&r, "", "", []string{"x"}, Program{}); err == nil || !strings.Contains(err.Error(), "sealed windows") {
		t.Errorf("a row of sealed windows: %v", err)
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
		b.Put(row, e.Scores, e.Scores, day)
	}
	name := filepath.Join(t.TempDir(), "board.json")
	if err := b.Write(name); err != nil {
		t.Fatal(err)
	}
	got, err := ReadBoard(name)
	if err != nil || len(got.Rows) != 1 || got.Rows[0].Opened != "2026-01-02" || got.Rows[0].Plays["dagplace-fork-join"] != "peft" {
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
	v := Current()
	b, err := Leaderboard()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, r := range b.Rows {
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
