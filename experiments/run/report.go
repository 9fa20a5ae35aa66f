package run

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"clustergym/experiments/envs"
	"clustergym/experiments/statistic"
	"clustergym/experiments/texttable"
	"clustergym/experiments/workload"
)

// WriteTable prints the comparison for people: one row for each policy in the order given, and the first
// checkpoint's difference to each of them.
func (r *Report) WriteTable(w io.Writer) error {
	metric := r.metricOf()
	header := []string{"policy", "mean JCT", "IQM [95 %]", "p99 JCT", "mean wait", "bounded slowdown", "GPUs used"}
	if r.own() {
		header = append([]string{"policy", metric.Title, "its IQM [95 %]"}, header[1:]...)
	}
	versus := map[string]statistic.Paired{}
	reference := r.reference()
	if reference != "" {
		header = append(header, "agent vs it [95 %]", "wins")
		for _, p := range r.Paired {
			if p.A == reference && p.Metric == r.metricOf().Key {
				versus[p.B] = p
			}
		}
	}
	var rows [][]string
	for _, p := range r.Policies {
		m := p.Metrics
		name := r.shown(p.Name)
		if m == nil {
			row := make([]string, len(header))
			row[0] = name + " missing: " + p.Missing
			rows = append(rows, row)
			continue
		}
		if m.Unfinished > 0 {
			name = fmt.Sprintf("%s (%d unfinished)", name, m.Unfinished)
		}
		row := []string{
			name, texttable.Hours(m.JCT.Mean), texttable.Span(m.JCT.IQM, m.JCT.CI95),
			texttable.Hours(m.JCT99.Mean), texttable.Hours(m.Wait.Mean), fmt.Sprintf("%.1f", m.BoundedSlowdown.Mean), fmt.Sprintf("%.0f %%", 100*m.Utilization.Mean),
		}
		if r.own() {
			score := []string{name, "–", ""}
			if m.Score != nil {
				score = []string{name, metric.Show(m.Score.Mean), metric.Span(m.Score.IQM, m.Score.CI95)}
			}
			row = append(score, row[1:]...)
		}
		if reference != "" {
			row = append(row, difference(versus, p.Name), wins(versus, p.Name, len(r.Windows)))
		}
		rows = append(rows, row)
	}
	if err := texttable.Write(w, header, rows, 1); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s of %d jobs each: means over jobs, then over windows; IQM over windows with its 95 %% bootstrap\n", workload.Plural(len(r.Windows), "window", "windows"), r.Windows[0].Jobs)
	fmt.Fprintf(&b, "interval. ORDER+ADMISSION sees the whole queue; RULE@slots acts through the agent's slots.\n")
	if reference != "" {
		word := "faster"
		if metric.Key != envs.JCT.Key {
			word = "better"
		}
		fmt.Fprintf(&b, "agent vs it: difference of %s on the same windows, %s = %s is %s.\n", metric.Title, better(metric), r.shown(reference), word)
	}
	if _, err := io.WriteString(w, b.String()); err != nil || r.Whole == nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\nOne run over the whole test part: %d jobs, %d counted.\n\n", r.Whole.Jobs, r.Whole.Counted); err != nil {
		return err
	}
	rows = nil
	for _, p := range r.Whole.Policies {
		m := &p.Metrics
		rows = append(rows, []string{
			r.shown(p.Name), texttable.Hours(m.JCT.Mean), texttable.Hours(m.JCT.P50), texttable.Hours(m.JCT.P99), texttable.Hours(m.Wait.Mean),
			fmt.Sprintf("%.1f", m.BoundedSlowdown.Mean), fmt.Sprintf("%.0f %%", 100*m.Utilization),
		})
	}
	return texttable.Write(w, []string{"policy", "mean JCT", "p50 JCT", "p99 JCT", "mean wait", "bounded slowdown", "GPUs used"}, rows, 1)
}

// metricOf is what the comparison counts.
func (r *Report) metricOf() envs.Metric {
	if r.Env == "" {
		return envs.JCT
	}
	return metricOf(r.Env)
}

// own says whether the metric is none of the simulator's, and has columns of its own.
func (r *Report) own() bool {
	return !slices.Contains([]string{"", envs.JCT.Key, "bounded_slowdown"}, r.Metric)
}

// reference is the agent that a table compares with everything: the first checkpoint, else the first policy that
// played from outside.
func (r *Report) reference() string {
	for _, kind := range []string{kindCheckpoint, kindExternal} {
		for _, p := range r.Policies {
			if p.Kind == kind && p.Metrics != nil {
				return p.Name
			}
		}
	}
	return ""
}

// shown is how a table calls a policy: a checkpoint without its run where no other run's stands beside it.
func (r *Report) shown(name string) string {
	var runs []string
	short := name
	for _, p := range r.Policies {
		if p.Kind != kindCheckpoint {
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

// Clock tells the wall time; tests replace it.
type Clock func() time.Time
