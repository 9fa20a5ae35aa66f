package benchmark

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/benchmark.md")

// page is the benchmark's page. Its tables stand between markers.
const page = "../../docs/benchmark.md"

func taskTable(t *testing.T, v *Version) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| task | what it tests | run times | windows | steps | random → best | hash |\n|---|---|---|---|---|---|---|\n")
	for i := range v.Tasks {
		task := &v.Tasks[i]
		cfg, err := task.Config()
		if err != nil {
			t.Fatal(err)
		}
		ref, _ := v.Reference(task)
		m := metric(&cfg)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d | %d | %s: %s → %s (`%s`) | `%s` |\n", task.Name, task.Tests, Rung(&cfg), Windows(&cfg), cfg.Train.Steps, m.Title, m.Show(ref.Random), m.Show(ref.Best), ref.Rule, task.Hash[:12])
	}
	return b.String()
}

func boardTable(t *testing.T, v *Version) string {
	t.Helper()
	board, err := Leaderboard()
	if err != nil {
		t.Fatal(err)
	}
	all, _ := v.Match()
	dev, err := v.NewReport(Development, all, board.Entries(Development))
	if err != nil {
		return ""
	}
	sealed := map[string]*ReportRow{}
	if r, err := v.NewReport(Sealed, all, board.Entries(Sealed)); err == nil {
		for i := range r.Rows {
			sealed[r.Rows[i].Name] = &r.Rows[i]
		}
	}
	var b strings.Builder
	b.WriteString("| row | tasks | IQM, development [95 %, other tasks too] | IQM, sealed |\n|---|---|---|---|\n")
	for i := range dev.Rows {
		r := &dev.Rows[i]
		if r.Kind == KindRule && r.Tasks < len(all) { // most rules are of one environment
			continue
		}
		s := "–"
		if x := sealed[r.Name]; x != nil {
			s = span(x.IQM, x.OnTasks)
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", r.Name, r.Tasks, span(r.IQM, r.OnTasks), s)
	}
	return b.String()
}

func TestTablesOfThePageAreThoseOfTheProgram(t *testing.T) {
	v := Current()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for name, want := range map[string]string{"tasks": taskTable(t, v), "board": boardTable(t, v)} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end -->\n"
		before, rest, ok1 := strings.Cut(doc, begin)
		got, after, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Fatalf("%s has no table %s", page, name)
		}
		if *update {
			doc = before + begin + want + end + after
		} else if got != want {
			t.Errorf("the table %s differs: go test ./experiments/benchmark -run %s -update", name, t.Name())
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(doc), 0o644); err != nil { //nolint:gosec // a page of the repository
			t.Fatal(err)
		}
	}
}
