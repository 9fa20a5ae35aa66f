package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"clustergym/env/jobselect"
	"clustergym/internal/plain"
	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
	"clustergym/lab/envs"
	"clustergym/simulator/policyname"
)

// WriteTable prints the comparison as a table: one row for each policy in the order of evaluation, with the first
// checkpoint's difference to each.
func (r *Report) WriteTable(w io.Writer) error { return texttable.WriteSheets(w, r.Sheets()) }

// Sheets returns what WriteTable prints.
func (r *Report) Sheets() []texttable.Sheet {
	if r.Whole == nil {
		return []texttable.Sheet{r.windowsSheet()}
	}
	return []texttable.Sheet{r.windowsSheet(), r.wholeSheet()}
}

// windowsSheet is the table of the windows.
func (r *Report) windowsSheet() texttable.Sheet {
	metric := r.Counts()
	header := []string{"policy", "mean JCT", "IQM [95 %]", "p99 JCT", "mean wait", "bounded slowdown", "GPUs used"}
	if metric.Key != envs.JCT.Key {
		header = []string{"policy", metric.Title, "IQM [95 %]", "mean JCT", "p99 JCT", "mean wait"}
		if r.HasScores() {
			header = append(header, "bounded slowdown")
		}
		header = append(header, "GPUs used")
	}
	versus := map[string]statistic.Paired{}
	reference := r.Reference()
	if reference != "" {
		header = append(header, "agent vs it [95 %]", "wins")
		for _, p := range r.Paired {
			if p.A == reference && p.Metric == r.Counts().Key {
				versus[p.B] = p
			}
		}
	}
	var rows [][]string
	for _, p := range r.Policies {
		m := p.Metrics
		name := r.told(&p)
		if m == nil {
			row := make([]string, len(header))
			row[0] = name + " missing: " + p.Missing
			rows = append(rows, row)
			continue
		}
		if m.Unfinished > 0 {
			name = fmt.Sprintf("%s (%d unfinished)", name, m.Unfinished)
		}
		row := []string{name, "–", ""}
		if m.Score != nil || !r.HasScores() {
			score := r.Statistic(&p)
			row = []string{name, metric.Cell(score.Mean), metric.SpanCell(score.IQM, score.CI95)}
		}
		if metric.Key != envs.JCT.Key {
			row = append(row, texttable.Time(m.JCT.Mean))
		}
		row = append(row, texttable.Time(m.JCT99.Mean), texttable.Time(m.Wait.Mean))
		if metric.Key != "bounded_slowdown" {
			row = append(row, fmt.Sprintf("%.1f", m.BoundedSlowdown.Mean))
		}
		row = append(row, fmt.Sprintf("%.0f %%", 100*m.Utilization.Mean))
		if reference != "" {
			row = append(row, difference(versus, p.Name), wins(versus, p.Name, len(r.Windows)))
		}
		rows = append(rows, row)
	}
	texttable.OneUnit(rows)
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %d jobs each: means over jobs, then over windows; IQM over windows with its 95 %% bootstrap\n",
		plain.Count(len(r.Windows), "window", "windows"), r.Windows[0].Jobs)
	fmt.Fprintf(&b, "interval.%s\n", r.forms())
	if reference != "" {
		word := "faster"
		if metric.Key != envs.JCT.Key {
			word = "better"
		}
		fmt.Fprintf(&b, "agent vs it: difference of %s on the same windows, %s = %s is %s.\n", metric.Title, better(metric),
			r.Shown(reference), word)
		b.WriteString(r.verdict(reference, versus))
	}
	b.WriteString(Below(r.Estimates, r.knowledge()) + r.rules())
	return texttable.Sheet{
		Above: EstimatesHeader(r.Estimates) + r.stopsLine(),
		Title: "Policies on the same test windows", Header: header, Rows: rows, Left: 1,
		Least: []string{"GPUs used", "p99 JCT", "bounded slowdown", "mean wait", "wins"}, Below: b.String(),
	}
}

// wholeSheet is the table of the whole test part.
func (r *Report) wholeSheet() texttable.Sheet {
	var rows [][]string
	for _, p := range r.Whole.Policies {
		m := &p.Metrics
		name := r.Shown(p.Name)
		if i := slices.IndexFunc(r.Policies, func(q PolicyReport) bool { return q.Name == p.Name }); i >= 0 {
			name = r.told(&r.Policies[i])
		}
		rows = append(rows, []string{
			name, texttable.Time(m.JCT.Mean), texttable.Time(m.JCT.P50), texttable.Time(m.JCT.P99), texttable.Time(m.Wait.Mean),
			fmt.Sprintf("%.1f", m.BoundedSlowdown.Mean), fmt.Sprintf("%.0f %%", 100*m.Utilization),
		})
	}
	texttable.OneUnit(rows)
	known := ""
	if h := EstimatesHeader(r.Estimates); h != "" {
		known = "; " + strings.TrimSpace(h)
	}
	return texttable.Sheet{
		Title:  "The whole test part",
		Header: []string{"policy", "mean JCT", "p50 JCT", "p99 JCT", "mean wait", "bounded slowdown", "GPUs used"},
		Rows:   rows, Left: 1,
		Least: []string{"p50 JCT", "GPUs used", "mean wait"},
		Above: fmt.Sprintf("One run over the whole test part: %d jobs, %d counted%s.\n", r.Whole.Jobs, r.Whole.Counted,
			known),
	}
}

// verdict says whether the agent is ahead of SJF, which most tables have, "" if this one does not.
func (r *Report) verdict(reference string, versus map[string]statistic.Paired) string {
	for _, rival := range []string{"sjf+skip", policyname.Slots("sjf")} {
		p, ok := versus[rival]
		if !ok {
			continue
		}
		low, high := p.CI95[0], p.CI95[1]
		if r.Counts().Higher {
			low, high = -high, -low
		}
		agent := r.Shown(reference)
		text := fmt.Sprintf("%s and %s cannot be told apart", agent, rival)
		switch {
		case high < 0:
			text = agent + " is ahead of " + rival
		case low > 0:
			text = agent + " is behind " + rival
		}
		return Wrapped(fmt.Sprintf("%s: %s %s.", text, r.Counts().Title, PairedText(p)))
	}
	return ""
}

// row is what the table says of what p knows.
func (r *Report) row(p *PolicyReport) Knowledge {
	return Knowledge{Name: r.Shown(p.Name), Nothing: p.Nothing, Knows: p.Knows, Trained: p.Trained}
}

// told returns the name of p in the table, with a mark if it was trained on another rung or stops running jobs.
func (r *Report) told(p *PolicyReport) string {
	row := r.row(p)
	return Marked(r.ID(), p.Kind, p.Name, row.Shown(r.Estimates))
}

// ID returns the environment of the comparison.
func (r *Report) ID() string { return cmp.Or(r.Env, jobselect.V1) }

// knowledge returns what the policies know.
func (r *Report) knowledge() []Knowledge {
	var rows []Knowledge
	for i := range r.Policies {
		rows = append(rows, r.row(&r.Policies[i]))
	}
	return rows
}

// forms returns the sentence about the names of policies in the table, "" if they are all agents.
func (r *Report) forms() string {
	has := func(kind string) bool {
		return slices.ContainsFunc(r.Policies, func(p PolicyReport) bool { return p.Kind == kind })
	}
	through := "the agent's slots"
	if r.Env != "" { // JobSelect-v1 is the one whose actions are slots
		through = "the agent's actions"
	}
	var parts []string
	if has("heuristic") {
		parts = append(parts, "ORDER+ADMISSION sees the whole queue")
	}
	if has("slots") {
		parts = append(parts, policyname.RuleForm+" acts through "+through)
	}
	if len(parts) == 0 {
		return ""
	}
	return " " + strings.Join(parts, "; ") + "."
}

// Counts returns the metric of the comparison.
func (r *Report) Counts() envs.Metric {
	if r.Env == "" {
		return envs.JCT
	}
	return MetricOf(r.Env)
}

// HasScores returns whether the metric is not one of the simulator's, so that it needs columns of its own.
func (r *Report) HasScores() bool {
	return !slices.Contains([]string{"", envs.JCT.Key, "bounded_slowdown"}, r.Metric)
}

// Statistic returns the metric of the comparison for p, which must have metrics.
func (r *Report) Statistic(p *PolicyReport) statistic.Statistic {
	switch m := p.Metrics; {
	case m.Score != nil && r.HasScores():
		return *m.Score
	case r.Counts().Key == "bounded_slowdown":
		return m.BoundedSlowdown
	default:
		return m.JCT
	}
}

// Reference returns the agent that the table compares with every other policy: the first checkpoint, or else the first
// ONNX model, or external policy. It is "" without agents.
func (r *Report) Reference() string {
	for _, kind := range []string{KindCheckpoint, KindModel, KindExternal} {
		for _, p := range r.Policies {
			if p.Kind == kind && p.Metrics != nil {
				return p.Name
			}
		}
	}
	return ""
}

// Shown returns the name of a policy in the table: checkpoints lose the name of their run if all are of one run, and
// orders that are written out have a short one.
func (r *Report) Shown(name string) string {
	if policyname.IsWritten(name) {
		return policyname.Short(name)
	}
	var runs []string
	short := name
	for _, p := range r.Policies {
		if p.Kind != KindCheckpoint {
			continue
		}
		agent, rest, _ := strings.Cut(p.Name, ":")
		at := strings.LastIndexByte(rest, '@') // a run's folder may have one in its name
		if at < 0 {
			continue
		}
		if run := rest[:at]; !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
		if p.Name == name {
			short = agent + rest[at:]
		}
	}
	if len(runs) > 1 {
		return name
	}
	return short
}

// MetricOf returns the metric of the environment called id; mean JCT for a problem with a known answer.
func MetricOf(id string) envs.Metric {
	if d := envs.Find(id); d != nil && d.Scheduling() {
		return d.Metric
	}
	return envs.JCT
}
