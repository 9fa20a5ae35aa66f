package benchmark

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/statistic"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/evidence/benchmark.md, and bounds.json")

// page is the benchmark's page. Its tables stand between markers.
const page = "../../docs/evidence/benchmark.md"

func taskTable(t *testing.T, v *Version) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(
		"| task | what it tests | run times | windows | steps | random → best | hash |\n|---|---|---|---|---|---|---|\n")
	for i := range v.Tasks {
		task := &v.Tasks[i]
		cfg, err := task.Config()
		if err != nil {
			t.Fatal(err)
		}
		ref, _ := v.Reference(task)
		m := metric(&cfg)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d | %d | %s: %s → %s (`%s`) | `%s` |\n", task.Name, task.Tests, Rung(&cfg),
			Windows(&cfg), cfg.Train.Steps, m.Title, m.Show(ref.Random), m.Show(ref.Best), ref.Rule, task.Hash[:12])
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
		t.Fatal(err)
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

// agentTable has the scores of all rows of agents on each task that one of them has.
func agentTable(t *testing.T, v *Version) string {
	t.Helper()
	board, err := Leaderboard()
	if err != nil {
		t.Fatal(err)
	}
	var agents []*BoardRow
	head, line := "| task |", "|---|"
	for i := range board.Rows {
		if r := &board.Rows[i]; r.Kind != KindRule {
			agents = append(agents, r)
			head += fmt.Sprintf(" `%s`, development | `%s`, sealed [lowest, highest] |", r.Name, r.Name)
			line += "---|---|"
		}
	}
	var b strings.Builder
	b.WriteString(head + "\n" + line + "\n")
	for _, name := range v.Names() {
		text, has := "| `"+name+"` |", false
		for _, r := range agents {
			dev, sealed := r.Dev[name], r.Sealed[name]
			if len(dev) == 0 || len(sealed) == 0 {
				text += " – | – |"
				continue
			}
			has = true
			text += fmt.Sprintf(" %.3f | %.3f [%.3f, %.3f] |", statistic.Mean(dev), statistic.Mean(sealed), slices.Min(sealed),
				slices.Max(sealed))
		}
		if has {
			b.WriteString(text + "\n")
		}
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
	for name, want := range map[string]string{"tasks": taskTable(t, v), "board": boardTable(t, v),
		"agents": agentTable(t, v)} {
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
