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

	tasks    []*Task
	streamed bool
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
	// CI95 are the intervals of the mean scores of tasks that are played on streams: over draws or blocks, and over runs.
	CI95   map[string]statistic.Interval `json:"scores_ci95,omitempty"`
	Tries  int                           `json:"tries,omitempty"`  // most of a task, of a program that began again
	Metric map[string]float64            `json:"metric,omitempty"` // means of results that are not recorded ones

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
	CI95       map[string]statistic.Interval // of the mean scores, in versions that are played on streams
	Tries      int                           // the most of a task
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
	of := func(task string) (Reference, bool) {
		t, err := v.Task(task)
		if err != nil {
			return Reference{}, false
		}
		return v.Reference(t)
	}
	var err error
	e.Scores, err = r.Scores(of)
	e.CI95 = r.Intervals(of)
	for i := range r.Tasks {
		e.Metric[r.Tasks[i].Task] = statistic.Mean(r.Tasks[i].Means())
		e.Tries = max(e.Tries, r.Tasks[i].Tries)
	}
	return e, err
}

// Entries returns the rows of the leaderboard on one split, those that have it.
func (b *Board) Entries(split string) []Entry {
	var all []Entry
	for i := range b.Rows {
		r := &b.Rows[i]
		e := Entry{Name: r.Name, Kind: r.Kind, Numbers: NotReplayed, Scores: r.Dev, CI95: r.DevCI95, Tries: r.Tries}
		if r.Opened != "" {
			e.Numbers = Replayed
		}
		if split == Sealed {
			e.Scores, e.CI95 = r.Sealed, r.SealedCI95
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
	r := &Report{Version: v.Version, Split: split, tasks: tasks, Rows: []ReportRow{}, Pairs: []Improvement{},
		streamed: v.streamed()}
	for i := range 41 {
		r.Tau = append(r.Tau, float64(i-8)/20) // -0.4 to 1.6
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if seen[e.Name] {
			return nil, fault.Mistakef("row %s is there twice; give one another name", e.Name)
		}
		seen[e.Name] = true
		row := ReportRow{Name: e.Name, Kind: e.Kind, Numbers: e.Numbers, Scores: e.Scores, Metric: e.Metric, CI95: e.CI95,
			Tries: e.Tries}
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
		if v.streamed() {
			row.OnRuns = row.onDraws(tasks)
		}
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
			x.Name, x.numbers(), fmt.Sprintf("%d of %d", x.Tasks,
				len(r.tasks)), fmt.Sprint(x.Runs), span(x.IQM, x.OnRuns), bracket(x.OnTasks),
			number(x.Mean), number(x.Median), number(x.Gap),
		})
	}
	all := []texttable.Sheet{{
		Title: fmt.Sprintf("%s, version %d, %s %s", Name, r.Version, r.Split, r.units()), Left: 2,
		Header: []string{"row", "numbers", "tasks", "runs", "IQM [95 %]", "other tasks too", "mean", "median", "gap"},
		Rows:   rows, Least: []string{"median", "gap", "runs", "mean"},
		Above: fmt.Sprintf("%s, version %d, %s %s. Score 0 = random play, 1 = the best rule of the task.\n", Name,
			r.Version, r.Split, r.units()),
		Below: report.Wrapped("IQM: interquartile mean over all runs of all tasks, with the 95 % interval over " + r.varies() +
			" gap: by how much runs fall short of " +
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
			switch ci, known := top[i].CI95[t.Name]; {
			case len(s) == 0:
				row = append(row, "–")
			case known && ci.Known():
				row = append(row, span(statistic.Mean(s), ci))
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
		Below: report.Wrapped(r.aboutTasks()),
	}
}

// units is what the tasks are played on.
func (r *Report) units() string {
	if r.streamed {
		return "draws"
	}
	return "windows"
}

// varies says over what the intervals of an IQM are.
func (r *Report) varies() string {
	if r.streamed {
		return "other draws and other runs, and then over other tasks too."
	}
	return "other runs, and then over other tasks too. Rules have one run, so that only tasks vary."
}

// aboutTasks explains the scores by task, and names the rules that are above the best one.
func (r *Report) aboutTasks() string {
	if !r.streamed {
		return "Means of a task's runs, with the lowest and the highest where there are several."
	}
	text := "Means of a task's runs with their 95 % interval over draws (blocks of a recorded task) and runs, against random " +
		"play and the best rule on the same draws. The best rule was chosen on development draws."
	var above []string
	for _, t := range r.tasks {
		for i := range r.Rows {
			if s := r.Rows[i].Scores[t.Name]; r.Rows[i].Kind == KindRule && len(s) > 0 && statistic.Mean(s) > 1 {
				above = append(above, fmt.Sprintf("%s on %s (%s)", r.Rows[i].Name, t.Name, number(statistic.Mean(s))))
			}
		}
	}
	if len(above) > 0 {
		text += " Rules above the best rule of development draws: " + strings.Join(above, ", ") + "."
	}
	return text
}

// numbers says where the numbers of the row come from.
func (x *ReportRow) numbers() string {
	if x.Tries > 1 {
		return fmt.Sprintf("%s, try %d", x.Numbers, x.Tries)
	}
	return x.Numbers
}

// onDraws returns the 95 % interval of the IQM over draws and runs: each task's score moves to the ends of its own
// interval, and the changes of the IQM, of tasks that are independent, add up in squares.
func (x *ReportRow) onDraws(tasks []*Task) (ci [2]float64) {
	down, up, i := 0.0, 0.0, 0
	for _, t := range tasks {
		if len(x.Scores[t.Name]) == 0 {
			continue
		}
		if own, ok := x.CI95[t.Name]; ok && own.Known() {
			mean := statistic.Mean(x.of[i])
			low, high := x.IQM-x.of.moved(i, own[0]-mean).IQM(), x.of.moved(i, own[1]-mean).IQM()-x.IQM
			down, up = down+low*low, up+high*high
		}
		i++
	}
	return [2]float64{x.IQM - math.Sqrt(down), x.IQM + math.Sqrt(up)}
}

// Page returns the comparison as a page: tables, performance profiles, and IQMs with their intervals.
func (r *Report) Page() *htmlpage.Page {
	p := htmlpage.New(1)
	p.Title = fmt.Sprintf("%s, version %d: %s %s", Name, r.Version, r.Split, r.units())
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
