package benchmark

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"

	"clustergym/internal/fault"
	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
	"clustergym/lab/htmlpage"
	"clustergym/lab/report"
)

// Report compares rows on one split. As JSON it is the document of gymctl benchmark report --json.
type Report struct {
	Version int           `json:"version"`
	Split   string        `json:"split"`
	Rows    []ReportRow   `json:"rows"` // those with most tasks first, of these the best
	Tau     []float64     `json:"tau"`  // where profiles are given
	Pairs   []Improvement `json:"improvement"`

	tasks []*Task
}

// ReportRow is one row with its aggregates over the tasks that it has.
type ReportRow struct {
	Name    string             `json:"name"`
	Kind    string             `json:"kind"`
	Numbers string             `json:"numbers"` // a value of Numbers
	Tasks   int                `json:"tasks"`
	Runs    int                `json:"runs"` // of all tasks
	IQM     float64            `json:"iqm"`
	OnRuns  [2]float64         `json:"iqm_ci95"`       // other runs on these tasks
	OnTasks [2]float64         `json:"iqm_ci95_tasks"` // other tasks too
	Mean    float64            `json:"mean"`
	Median  float64            `json:"median"`
	Gap     float64            `json:"optimality_gap"`
	Profile []float64          `json:"profile"` // share of runs above each tau
	Scores  map[string]Reached `json:"scores"`
	Metric  map[string]float64 `json:"metric,omitempty"` // means of results that are not recorded ones

	of Scores
}

// Improvement is the probability that a run of A scores higher than one of B on a task that both have.
type Improvement struct {
	A           string     `json:"a"`
	B           string     `json:"b"`
	Tasks       int        `json:"tasks"`
	Probability float64    `json:"probability"`
	CI95        [2]float64 `json:"ci95"`
}

// Where the numbers of an entry come from. A row or a folder of results holds what its author wrote: its hashes match
// whatever the numbers are, and only playing the policy again shows whether they are true.
const (
	NotReplayed = "not replayed" // read from a file
	Replayed    = "replayed"     // played again by those who keep the secret, before the row came into the leaderboard
	PlayedNow   = "played now"   // by the same call
)

// Entry is a row to report on.
type Entry struct {
	Name, Kind string
	Numbers    string // where they come from
	Scores     map[string]Reached
	Metric     map[string]float64
}

// Entry returns results on the development windows as an entry.
func (v *Version) Entry(r *Results) (Entry, error) {
	if r.Split != Development {
		return Entry{},
			fault.Mistakef("%s: results on sealed windows have no recorded references; gymctl benchmark open scores them",
				r.Policy.Name)
	}
	e := Entry{Name: r.Policy.Name, Kind: r.Policy.Kind, Numbers: NotReplayed, Metric: map[string]float64{}}
	var err error
	e.Scores, err = r.Scores(func(task string) (Reference, bool) {
		t, err := v.Task(task)
		if err != nil {
			return Reference{}, false
		}
		return v.Reference(t)
	})
	for i := range r.Tasks {
		e.Metric[r.Tasks[i].Task] = statistic.Mean(r.Tasks[i].Means())
	}
	return e, err
}

// Entries returns the rows of the leaderboard on one split, those that have it.
func (b *Board) Entries(split string) []Entry {
	var all []Entry
	for i := range b.Rows {
		r := &b.Rows[i]
		e := Entry{Name: r.Name, Kind: r.Kind, Numbers: NotReplayed, Scores: r.Dev}
		if r.Opened != "" {
			e.Numbers = Replayed
		}
		if split == Sealed {
			e.Scores = r.Sealed
		}
		if len(e.Scores) > 0 {
			all = append(all, e)
		}
	}
	return all
}

// most is how many rows take part in the probabilities of improvement, and in the figures.
const most = 12

// NewReport compares entries on tasks. Entries without any of the tasks are left out.
func (v *Version) NewReport(split string, tasks []*Task, entries []Entry) (*Report, error) {
	r := &Report{Version: v.Version, Split: split, tasks: tasks, Rows: []ReportRow{}, Pairs: []Improvement{}}
	for i := range 41 {
		r.Tau = append(r.Tau, float64(i-8)/20) // -0.4 to 1.6
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if seen[e.Name] {
			return nil, fault.Mistakef("row %s is there twice; give one another name", e.Name)
		}
		seen[e.Name] = true
		row := ReportRow{Name: e.Name, Kind: e.Kind, Numbers: e.Numbers, Scores: e.Scores, Metric: e.Metric}
		for _, t := range tasks {
			if s := e.Scores[t.Name]; len(s) > 0 {
				row.of = append(row.of, s)
				row.Tasks++
				row.Runs += len(s)
			}
		}
		if row.Tasks == 0 {
			continue
		}
		row.IQM, row.Mean, row.Median, row.Gap, row.Profile = row.of.IQM(), row.of.Mean(), row.of.Median(), row.of.Gap(),
			row.of.Profile(r.Tau)
		row.OnRuns = row.of.Interval(1, false, Scores.IQM)
		row.OnTasks = row.of.Interval(1, true, Scores.IQM)
		r.Rows = append(r.Rows, row)
	}
	if len(r.Rows) == 0 {
		return nil, fault.Mistakef("there is no row with any of the tasks")
	}
	sort.SliceStable(r.Rows, func(i, k int) bool {
		a, b := &r.Rows[i], &r.Rows[k]
		if a.Tasks != b.Tasks { // a row that leaves out the hard tasks does not stand above one that has them
			return a.Tasks > b.Tasks
		}
		return a.IQM > b.IQM
	})
	top := r.Rows[:min(most, len(r.Rows))]
	for i := range top {
		for k := range top {
			if i < k {
				r.pair(&top[i], &top[k])
			}
		}
	}
	return r, nil
}

// pair adds the comparison of two rows, if they have a task in common.
func (r *Report) pair(a, b *ReportRow) {
	var x, y Scores
	for _, t := range r.tasks {
		if s, o := a.Scores[t.Name], b.Scores[t.Name]; len(s) > 0 && len(o) > 0 {
			x, y = append(x, s), append(y, o)
		}
	}
	if len(x) > 0 {
		r.Pairs = append(r.Pairs, Improvement{a.Name, b.Name, len(x), x.Improvement(y), x.ImprovementInterval(1, y)})
	}
}

// WriteTable prints the comparison.
func (r *Report) WriteTable(w io.Writer) error { return texttable.WriteSheets(w, r.Sheets()) }

// Sheets returns what WriteTable prints.
func (r *Report) Sheets() []texttable.Sheet {
	rows := [][]string{}
	for i := range r.Rows {
		x := &r.Rows[i]
		rows = append(rows, []string{
			x.Name, x.Numbers, fmt.Sprintf("%d of %d", x.Tasks,
				len(r.tasks)), fmt.Sprint(x.Runs), span(x.IQM, x.OnRuns), bracket(x.OnTasks),
			number(x.Mean), number(x.Median), number(x.Gap),
		})
	}
	all := []texttable.Sheet{{
		Title: fmt.Sprintf("%s, version %d, %s windows", Name, r.Version, r.Split), Left: 2,
		Header: []string{"row", "numbers", "tasks", "runs", "IQM [95 %]", "other tasks too", "mean", "median", "gap"},
		Rows:   rows, Least: []string{"median", "gap", "runs", "mean"},
		Above: fmt.Sprintf("%s, version %d, %s windows. Score 0 = random play, 1 = the best rule of the task.\n", Name,
			r.Version, r.Split),
		Below: report.Wrapped("IQM: interquartile mean over all runs of all tasks, with the 95 % interval over other runs, " +
			"and then over other tasks too. Rules have one run, so that only tasks vary. gap: by how much runs fall short of " +
			"1 in the mean. Rows without all tasks compare on theirs alone, and stand below those with more. not replayed: " +
			"the numbers are those of a file, and nothing but their hashes was checked; gymctl benchmark verify --replay " +
			"plays a row again."),
	}}
	if len(r.Pairs) > 0 {
		rows = nil
		for _, p := range r.Pairs {
			rows = append(rows, []string{p.A, p.B, fmt.Sprint(p.Tasks), span(p.Probability, p.CI95)})
		}
		all = append(all, texttable.Sheet{
			Title: "Probability of improvement", Header: []string{"a", "b", "tasks", "P(a > b) [95 %]"}, Rows: rows, Left: 2,
			Below: report.Wrapped("P(a > b): the probability that a run of a scores higher than a run of b on a task that " +
				"both have, ties half."),
		})
	}
	return append(all, r.byTask())
}

// byTask is the sheet of the scores on each task.
func (r *Report) byTask() texttable.Sheet {
	header := []string{"task"}
	top := r.Rows[:min(most, len(r.Rows))]
	for i := range top {
		header = append(header, top[i].Name)
	}
	var rows [][]string
	for _, t := range r.tasks {
		row := []string{t.Name}
		for i := range top {
			s := top[i].Scores[t.Name]
			switch {
			case len(s) == 0:
				row = append(row, "–")
			case len(s) == 1:
				row = append(row, number(s[0]))
			default:
				row = append(row,
					fmt.Sprintf("%s [%s, %s]", number(statistic.Mean(s)), number(slices.Min(s)), number(slices.Max(s))))
			}
		}
		rows = append(rows, row)
	}
	var least []string
	for i := len(header) - 1; i > 3; i-- {
		least = append(least, header[i])
	}
	return texttable.Sheet{
		Title: "Scores by task", Header: header, Rows: rows, Left: 1, Least: least,
		Below: report.Wrapped("Means of a task's runs, with the lowest and the highest where there are several."),
	}
}

// Page returns the comparison as a page: tables, performance profiles, and IQMs with their intervals.
func (r *Report) Page() *htmlpage.Page {
	p := htmlpage.New(1)
	p.Title = fmt.Sprintf("%s, version %d: %s windows", Name, r.Version, r.Split)
	p.Facts = [][2]string{
		{"tasks", fmt.Sprint(len(r.tasks))}, {"score", "0 = random play, 1 = the best rule of the task"},
		{"rows", fmt.Sprint(len(r.Rows))},
	}
	chart := htmlpage.Chart{
		Name: "profiles", Title: "Performance profiles", X: "score", Y: "share of runs above it",
		Text: "For each score, the share of all runs of all tasks that are above it: higher is better. A curve that ends " +
			"further right has tasks on which it is far ahead of every rule.",
	}
	forest := htmlpage.Forest{Name: "iqm", Title: "Interquartile mean of scores", X: "score",
		Text: "With the 95 % interval over other runs and other tasks."}
	for i := range r.Rows[:min(most, len(r.Rows))] {
		x := &r.Rows[i]
		c := htmlpage.Curve{Name: x.Name, Best: -1}
		for k, tau := range r.Tau {
			c.Points = append(c.Points, htmlpage.Point{X: tau, Y: x.Profile[k]})
		}
		chart.Curves = append(chart.Curves, c)
		forest.Rows = append(forest.Rows,
			htmlpage.Difference{Name: x.Name, Value: x.IQM, Low: x.OnTasks[0], High: x.OnTasks[1], Text: span(x.IQM, x.OnTasks)})
	}
	p.Charts, p.Forests = append(p.Charts, chart), append(p.Forests, forest)
	for _, s := range r.Sheets() {
		p.Tables = append(p.Tables,
			htmlpage.Table{Title: s.Title, Header: s.Header, Rows: s.Rows, Text: strings.Join(strings.Fields(s.Below), " ")})
	}
	return p
}

func number(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.3f", v+0) // no negative zero
}

func bracket(ci [2]float64) string { return fmt.Sprintf("[%s, %s]", number(ci[0]), number(ci[1])) }

func span(v float64, ci [2]float64) string { return number(v) + " " + bracket(ci) }
