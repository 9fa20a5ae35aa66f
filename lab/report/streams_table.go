package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"clustergym/env/jobselect"
	"clustergym/internal/plain"
	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
	"clustergym/lab/envs"
	"clustergym/lab/workload"
	"clustergym/simulator/policyname"
)

// WriteTable prints the comparison as a table: one row for each policy in the order of evaluation.
func (r *StreamReport) WriteTable(w io.Writer) error { return texttable.WriteSheets(w, r.Sheets()) }

// Counts returns the metric of the comparison.
func (r *StreamReport) Counts() envs.Metric { return MetricOf(r.Env) }

// Reference returns the policy with which the others are compared: the first program from outside, else the first
// agent, or else the first policy that has results. It is "" if there are fewer than two of these.
func (r *StreamReport) Reference() (name string, agent bool) {
	if len(r.Paired) == 0 {
		return "", false
	}
	for _, kinds := range [][]string{{KindExternal}, {KindCheckpoint, KindModel}} {
		for _, p := range r.Policies {
			if p.Metrics != nil && slices.Contains(kinds, p.Kind) {
				return p.Name, true
			}
		}
	}
	return r.Paired[0].B, false
}

// versus returns the comparison of the reference with the policy called name, nil if there is none.
func (r *StreamReport) versus(name string) *statistic.Replicated {
	_, agent := r.Reference()
	for i := range r.Paired {
		if p := &r.Paired[i]; agent && p.B == name || !agent && p.A == name {
			return p
		}
	}
	return nil
}

// Statistic returns the metric of the comparison for p, which must have metrics.
func (r *StreamReport) Statistic(p *StreamPolicy) StreamStatistic {
	switch m := p.Metrics; {
	case m.Score != nil:
		return *m.Score
	case r.Metric == "bounded_slowdown":
		return m.BoundedSlowdown
	default:
		return m.JCT
	}
}

// Sheets returns what WriteTable prints.
func (r *StreamReport) Sheets() []texttable.Sheet {
	metric := r.Counts()
	header := []string{"policy", metric.Title + " [95 %]"}
	if metric.Key != envs.JCT.Key {
		header = append(header, "mean JCT")
	}
	header = append(header, "p99 JCT", "mean wait")
	if metric.Key != "bounded_slowdown" {
		header = append(header, "bounded slowdown")
	}
	header = append(header, "GPUs used")
	ref, agent := r.Reference()
	switch {
	case agent:
		header = append(header, "agent vs it [95 %]", "verdict")
	case ref != "":
		header = append(header, "vs "+r.Shown(ref)+" [95 %]", "verdict")
	}
	var rows [][]string
	for i := range r.Policies {
		p := &r.Policies[i]
		know := r.row(p)
		name := Marked(r.Env, p.Kind, p.Name, know.Shown(r.Estimates))
		m := p.Metrics
		if m == nil {
			row := make([]string, len(header))
			row[0] = name + " missing: " + p.Missing
			rows = append(rows, row)
			continue
		}
		if !m.KeepsUp {
			name += " (does not keep up)"
		}
		if m.Unfinished > 0 {
			name = fmt.Sprintf("%s (%d unfinished)", name, m.Unfinished)
		}
		row := []string{name, spanCell(&metric, r.Statistic(p))}
		if metric.Key != envs.JCT.Key {
			row = append(row, texttable.Time(float64(m.JCT.Mean)))
		}
		row = append(row, texttable.Time(float64(m.JCT99.Mean)), texttable.Time(float64(m.Wait.Mean)))
		if metric.Key != "bounded_slowdown" {
			row = append(row, fmt.Sprintf("%.1f", m.BoundedSlowdown.Mean))
		}
		row = append(row, fmt.Sprintf("%.0f %%", 100*m.Use.Mean))
		if ref != "" {
			row = append(row, r.difference(p.Name)...)
		}
		rows = append(rows, row)
	}
	texttable.OneUnit(rows)
	return []texttable.Sheet{{
		Above: r.above(), Title: "Policies on the same streams of jobs", Header: header, Rows: rows, Left: 1,
		Least: []string{"p99 JCT", "bounded slowdown", "GPUs used", "mean wait"}, Below: r.below(),
	}}
}

// spanCell returns a value with its interval, where there is one.
func spanCell(m *envs.Metric, s StreamStatistic) string {
	if !s.CI95.Known() {
		return m.Cell(float64(s.Mean))
	}
	return m.SpanCell(float64(s.Mean), [2]float64(s.CI95))
}

// difference returns the cells of the comparison with the reference.
func (r *StreamReport) difference(name string) []string {
	p := r.versus(name)
	if p == nil {
		return []string{"", ""}
	}
	return []string{ReplicatedText(p), verdictText(p.Verdict)}
}

// ReplicatedText returns a difference with its interval, if it has one, as tables show it: -3.1 % [-5.0, -1.2].
func ReplicatedText(p *statistic.Replicated) string {
	if !p.CI95.Known() {
		return fmt.Sprintf("%+.1f %%", p.Difference)
	}
	return fmt.Sprintf("%+.1f %% [%+.1f, %+.1f]", p.Difference, p.CI95[0], p.CI95[1])
}

// verdictText is a verdict in a table.
func verdictText(v statistic.Verdict) string {
	if v == statistic.Apart {
		return "–"
	}
	return string(v)
}

// above is what stands above the table: what is known, the load, what is assumed, and what was recorded.
func (r *StreamReport) above() string {
	text := EstimatesHeader(r.Estimates) + r.load() + Wrapped(r.Assumed())
	if r.Recorded != nil {
		text += Wrapped(r.Recorded.String())
	}
	return text
}

// load is the line of the load.
func (r *StreamReport) load() string {
	asked := "as recorded"
	if r.Load.Asked > 0 {
		asked = fmt.Sprintf("%.3g", r.Load.Asked)
	}
	return fmt.Sprintf("load: %s; the counted jobs offer %.2f\n", asked, r.Load.Offered)
}

// below is what stands below the table.
func (r *StreamReport) below() string {
	var b strings.Builder
	add := func(format string, args ...any) { b.WriteString(Wrapped(fmt.Sprintf(format, args...))) }
	add("%s Means are over the counted jobs%s.", r.played(),
		map[bool]string{true: ", then over draws"}[r.Streams.Blocks == nil])
	units := r.units(r.Streams.Units)
	ref, agent := r.Reference()
	if ref != "" {
		what := "it vs " + r.Shown(ref)
		if agent {
			what = "agent vs it"
		}
		all := ""
		if n := len(r.Paired); n > 1 {
			all = fmt.Sprintf(" for all %d rivals together (Holm)", n)
		}
		add("%s: difference of the %s on the same jobs. Verdicts need %d independent units and hold at 5 %%%s.", what,
			r.Counts().Title, statistic.MinUnits, all)
	}
	switch {
	case r.Streams.Units < statistic.MinUnits:
		add("%s are too few for intervals and verdicts: %s.", units, r.more())
	case ref != "":
		b.WriteString(r.verdict(ref, agent))
	}
	b.WriteString(r.warnings())
	b.WriteString(r.forms())
	b.WriteString(Below(r.Estimates, r.knowledge()) + r.rules())
	return b.String()
}

// Units returns the number of independent units in words, as 16 draws.
func (r *StreamReport) Units() string { return r.units(r.Streams.Units) }

// TooFew reports whether there are fewer units than intervals and verdicts need.
func (r *StreamReport) TooFew() bool { return r.Streams.Units < statistic.MinUnits }

// units returns a number of units in words.
func (r *StreamReport) units(n int) string {
	if r.Streams.Blocks == nil {
		return plain.Count(n, "draw", "draws")
	}
	return plain.Count(n, "block", "blocks")
}

// played says what was played.
func (r *StreamReport) played() string {
	s := &r.Streams
	if k := s.Blocks; k != nil {
		return fmt.Sprintf(
			"One stream of %s counted jobs after %s of warm-up, in %s of %.3g h: five times what the queue of "+
				"fifo+skip remembers.", workload.Thousands(s.Counted), workload.Thousands(s.Warm), r.units(s.Units), k.Hours)
	}
	settled := ""
	if k := s.Settling; k != nil {
		settled = fmt.Sprintf(" (MSER-5 asks for %s)", workload.Thousands(k.MSER))
	}
	return fmt.Sprintf(
		"%s of the generator, each with %s counted jobs after %s of warm-up%s; arrivals continue until the "+
			"counted jobs have ended.", r.units(s.Units), workload.Thousands(s.Counted), workload.Thousands(s.Warm), settled)
}

// more says how to get more units.
func (r *StreamReport) more() string {
	if r.Streams.Blocks == nil {
		return "eval.streams.draws says how many are played"
	}
	return "a longer log has more, and eval.protocol windows compares short windows"
}

// verdict says whether the agent is ahead of SJF, or how many units would show a small difference.
func (r *StreamReport) verdict(ref string, agent bool) string {
	rival := ""
	if agent {
		for _, name := range []string{"sjf+skip", policyname.Slots("sjf")} {
			if rival == "" && r.versus(name) != nil {
				rival = name
			}
		}
	}
	if rival == "" {
		for i := range r.Policies {
			if name := r.Policies[i].Name; rival == "" && r.versus(name) != nil {
				rival = name
			}
		}
	}
	p := r.versus(rival)
	if p == nil {
		return ""
	}
	first, second := p.A, p.B
	var b strings.Builder
	switch p.Verdict {
	case statistic.Ahead, statistic.Behind:
		fmt.Fprintf(&b, "%s is %s of %s", r.Shown(first), p.Verdict, r.Shown(second))
		if p.Verdict == statistic.Behind {
			b.Reset()
			fmt.Fprintf(&b, "%s is behind %s", r.Shown(first), r.Shown(second))
		}
	default:
		fmt.Fprintf(&b, "%s and %s cannot be told apart", r.Shown(first), r.Shown(second))
	}
	fmt.Fprintf(&b, ": %s %s.", r.Counts().Title, ReplicatedText(p))
	if p.UnitsFor > 0 {
		fmt.Fprintf(&b, " To show a difference of 3 %% between these two, about %s are needed.", r.units(p.UnitsFor))
	}
	return Wrapped(b.String())
}

// warnings say what makes the means of the table no means.
func (r *StreamReport) warnings() string {
	var b strings.Builder
	add := func(format string, args ...any) { b.WriteString(Wrapped(fmt.Sprintf(format, args...))) }
	var slow, late []string
	for i := range r.Policies {
		p := &r.Policies[i]
		if p.Metrics == nil {
			continue
		}
		if !p.Metrics.KeepsUp {
			slow = append(slow, r.Shown(p.Name))
		}
		if p.Metrics.After > .01 {
			late = append(late, fmt.Sprintf("%s (%.0f %%)", r.Shown(p.Name), 100*p.Metrics.After))
		}
	}
	if s := r.Load.warning(); s != "" {
		add("%s", s)
	}
	if len(slow) > 0 {
		add("%s", noMean(slow))
	}
	if len(late) > 0 && r.Streams.Blocks == nil {
		add("Counted jobs that ended after the last arrival, on an emptier cluster: %s.", strings.Join(late, ", "))
	}
	if s := r.Streams.Settling; s != nil && !s.Settled {
		add("%s", unsettled(workload.Thousands(s.PilotJobs)))
	}
	return b.String()
}

// warning is that of counted jobs that ask for more GPU time than there is, "" if they do not. Those of short streams
// may do so by chance.
func (l *LoadInfo) warning() string {
	switch {
	case l.Asked > 1 || l.Asked == 0 && l.Offered > 1:
		return "The jobs ask for more GPU time than there is: no policy can keep up, and waits grow with the length of the " +
			"streams."
	case l.Offered > 1:
		return fmt.Sprintf("The counted jobs happen to offer %.2f, where the whole workload offers %.3g: waits are those of "+
			"a crowded time, and longer streams come closer to the workload's.", l.Offered, l.Asked)
	}
	return ""
}

// noMean is the warning of policies that do not keep up.
func noMean(names []string) string {
	return "Not a mean: the backlog of " + strings.Join(names, ", ") +
		" grows as long as jobs arrive, so these waits grow with the length of the streams."
}

// unsettled is the warning of a queue that MSER-5 finds unsettled in so many jobs.
func unsettled(jobs string) string {
	return "The queue of fifo+skip has not settled after half of " + jobs + " jobs: at this load it may never."
}

// row is what the table says of what p knows.
func (r *StreamReport) row(p *StreamPolicy) Knowledge {
	return Knowledge{Name: r.Shown(p.Name), Nothing: p.Nothing, Knows: p.Knows, Trained: p.Trained}
}

// knowledge returns what the policies know.
func (r *StreamReport) knowledge() []Knowledge {
	var rows []Knowledge
	for i := range r.Policies {
		rows = append(rows, r.row(&r.Policies[i]))
	}
	return rows
}

// Shown returns the name of a policy in the table: checkpoints lose the name of their run if all are of one run.
func (r *StreamReport) Shown(name string) string { return r.named().Shown(name) }

// forms returns the sentence about the names of policies, as a line.
func (r *StreamReport) forms() string {
	if s := strings.TrimSpace(r.named().forms()); s != "" {
		return Wrapped(s)
	}
	return ""
}

// named is a report of windows with the same policies, which knows how they are named.
func (r *StreamReport) named() *Report {
	x := &Report{}
	if !jobselect.Is(r.Env) { // whose actions are slots
		x.Env = r.Env
	}
	for _, p := range r.Policies {
		x.Policies = append(x.Policies, PolicyReport{Name: p.Name, Kind: p.Kind})
	}
	return x
}
