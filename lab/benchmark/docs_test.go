package benchmark

import (
	"cmp"
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
	units := "windows"
	if v.streamed() {
		units = "draws or blocks"
	}
	b.WriteString("| task | what it tests | run times | " + units +
		" | steps | random → best | hash |\n|---|---|---|---|---|---|---|\n")
	for i := range v.Tasks {
		task := &v.Tasks[i]
		cfg, err := task.Config()
		if err != nil {
			t.Fatal(err)
		}
		ref, _ := v.Reference(task)
		m := metric(&cfg)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d | %d | %s: %s → %s (`%s`) | `%s` |\n", task.Name, task.Tests, Rung(&cfg),
			task.Units(&cfg, Development), cfg.Train.Steps, m.Title, m.Show(ref.Random), m.Show(ref.Best), ref.Rule, task.Hash[:12])
	}
	return b.String()
}

func boardTable(t *testing.T, v *Version) string {
	t.Helper()
	board, err := v.Leaderboard()
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
	over := "other tasks too"
	if v.streamed() {
		over = "other draws"
	}
	b.WriteString("| row | tasks | IQM, development [95 %, " + over + "] | IQM, sealed |\n|---|---|---|---|\n")
	for i := range dev.Rows {
		r := &dev.Rows[i]
		if !v.streamed() && r.Kind == KindRule && r.Tasks < len(all) { // most rules are of one environment
			continue
		}
		s, ci := "–", r.OnTasks
		if v.streamed() {
			ci = r.OnRuns
		}
		if x := sealed[r.Name]; x != nil {
			s = span(x.IQM, x.OnTasks)
			if v.streamed() {
				s = span(x.IQM, x.OnRuns)
			}
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", r.Name, r.Tasks, span(r.IQM, ci), s)
	}
	return b.String()
}

// agentTable has the scores of all rows of agents on each task that one of them has.
func agentTable(t *testing.T, v *Version) string {
	t.Helper()
	board, err := v.Leaderboard()
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

// ruleTable has what the rules of each task reach: the best ones, and all that are above 1.
func ruleTable(t *testing.T, v *Version) string {
	t.Helper()
	board, err := v.Leaderboard()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| task | rules on development draws | rules on sealed draws |\n|---|---|---|\n")
	for i := range v.Tasks {
		name := v.Tasks[i].Name
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, foremost(board.Entries(Development), name),
			foremost(board.Entries(Sealed), name))
	}
	return b.String()
}

// foremost names the rules ahead on a task, three and more where several are above 1, with their intervals.
func foremost(all []Entry, task string) string {
	rules := slices.DeleteFunc(slices.Clone(all), func(e Entry) bool {
		return e.Kind != KindRule || len(e.Scores[task]) == 0 || e.Name == "best"
	})
	slices.SortStableFunc(rules, func(a, b Entry) int { return cmp.Compare(b.Scores[task][0], a.Scores[task][0]) })
	var out []string
	for i, e := range rules {
		if s := e.Scores[task][0]; i < 4 || s > 1 {
			text := fmt.Sprintf("`%s` %.2f", e.Name, s)
			if ci, ok := e.CI95[task]; ok && ci.Known() && ci[0] < ci[1] {
				text += fmt.Sprintf(" [%.2f, %.2f]", ci[0], ci[1])
			}
			out = append(out, text)
		}
	}
	if out == nil {
		return "–"
	}
	return strings.Join(out, ", ")
}

func TestTablesOfThePageAreThoseOfTheProgram(t *testing.T) {
	v, two := Numbered(1), Numbered(2)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for name, want := range map[string]string{"tasks": taskTable(t, v), "board": boardTable(t, v),
		"agents": agentTable(t, v), "tasks of version 2": taskTable(t, two), "board of version 2": boardTable(t, two),
		"rules of version 2": ruleTable(t, two)} {
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
