package run

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"clustergym/experiments/statistic"
	"clustergym/experiments/texttable"
	"clustergym/experiments/workload"
)

// WriteTable prints the comparison for people: one row for each policy in the order given, and the first
// checkpoint's difference to each of them.
func (r *Report) WriteTable(w io.Writer) error {
	header := []string{"policy", "mean JCT", "IQM [95 %]", "p99 JCT", "mean wait", "bounded slowdown", "GPUs used"}
	versus := map[string]statistic.Paired{}
	reference := r.reference()
	if reference != "" {
		header = append(header, "agent vs it [95 %]", "wins")
		for _, p := range r.Paired {
			if p.A == reference && p.Metric == "jct_s" {
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
			name, Hours(m.JCT.Mean), span(m.JCT.IQM, m.JCT.CI95),
			Hours(m.JCT99.Mean), Hours(m.Wait.Mean), fmt.Sprintf("%.1f", m.BoundedSlowdown.Mean), fmt.Sprintf("%.0f %%", 100*m.Utilization.Mean),
		}
		if reference != "" {
			difference, wins := "", ""
			if v, ok := versus[p.Name]; ok {
				difference = fmt.Sprintf("%+.1f %% [%+.1f, %+.1f]", v.Difference, v.CI95[0], v.CI95[1])
				wins = fmt.Sprintf("%d of %d", v.Wins, len(r.Windows))
			}
			row = append(row, difference, wins)
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
		fmt.Fprintf(&b, "agent vs it: difference of mean JCT on the same windows, negative = %s is faster.\n", r.shown(reference))
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
			r.shown(p.Name), Hours(m.JCT.Mean), Hours(m.JCT.P50), Hours(m.JCT.P99), Hours(m.Wait.Mean),
			fmt.Sprintf("%.1f", m.BoundedSlowdown.Mean), fmt.Sprintf("%.0f %%", 100*m.Utilization),
		})
	}
	return texttable.Write(w, []string{"policy", "mean JCT", "p50 JCT", "p99 JCT", "mean wait", "bounded slowdown", "GPUs used"}, rows, 1)
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

// span prints a time and its interval in one unit.
func span(seconds float64, ci [2]float64) string {
	value, unit, _ := strings.Cut(Hours(seconds), " ")
	size := map[string]float64{"s": 1, "min": 60, "h": 3600, "d": 86400}[unit]
	if size == 0 {
		return Hours(seconds)
	}
	_, places, _ := strings.Cut(value, ".")
	return fmt.Sprintf("%s [%.*f, %.*f] %s", value, len(places), ci[0]/size, len(places), ci[1]/size, unit)
}

// Hours prints seconds as people read them: "52 s", "14.3 min", "6.02 h", "3.1 d".
func Hours(seconds float64) string {
	switch a := math.Abs(seconds); {
	case math.IsNaN(seconds):
		return "–"
	case a < 120:
		return fmt.Sprintf("%.0f s", seconds)
	case a < 2*3600:
		return fmt.Sprintf("%.1f min", seconds/60)
	case a < 100*3600:
		return fmt.Sprintf("%.2f h", seconds/3600)
	}
	return fmt.Sprintf("%.1f d", seconds/86400)
}

// Clock tells the wall time; tests replace it.
type Clock func() time.Time
