package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"clustergym/env/sched"
	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
	"clustergym/lab/workload"
	"clustergym/simulator/sim"
)

// StreamLadder is a comparison of policies on the same streams, repeated with several estimates of run times: how much
// each policy loses by not knowing. It is the document of gymctl eval --rungs --json.
type StreamLadder struct {
	Protocol string               `json:"protocol"` // "streams"
	Metric   string               `json:"metric"`
	Against  sim.Estimates        `json:"against"` // the estimates that losses refer to
	Policies []StreamLadderPolicy `json:"policies"`
	Rungs    []*StreamReport      `json:"rungs"` // the whole comparison with each of the estimates
	// LeftOut counts the jobs of the workload that the environment does not take; nil = none.
	LeftOut *sched.LeftOut `json:"left_out,omitempty"`
}

// StreamLadderPolicy is one policy with each of the estimates.
type StreamLadderPolicy struct {
	Name    string             `json:"name"`
	Kind    string             `json:"kind"`
	Trained sim.Estimates      `json:"trained_on,omitzero"`
	Nothing bool               `json:"asks_nothing,omitempty"`
	Rungs   []StreamLadderCell `json:"rungs"`
}

// StreamLadderCell is the result of a policy with some estimates.
type StreamLadderCell struct {
	Estimates sim.Estimates      `json:"estimates"`
	Rung      string             `json:"rung"`
	Mean      *statistic.Number  `json:"mean"` // of the metric, null where the policy does not play
	CI95      statistic.Interval `json:"ci95"` // of the mean
	KeepsUp   bool               `json:"keeps_up"`
	// Loss compares the policy with itself with StreamLadder.Against, on the same streams. Its p_holm and verdict hold for
	// all policies of the rung together; null where there is nothing to compare.
	Loss   *statistic.Replicated `json:"loss"`
	Absent string                `json:"absent,omitempty"` // why it does not play
}

// Fill sets the policies, in the order of names, from l.Rungs. lost compares a policy on a rung with itself on that of
// Against.
func (l *StreamLadder) Fill(names []string, lost func(rung int, name string) statistic.Replicated) {
	metric := l.Rungs[0].Counts()
	l.Protocol, l.Metric = "streams", metric.Key
	for _, name := range names {
		row := StreamLadderPolicy{Name: name}
		own := l.against().policy(name)
		for i, r := range l.Rungs {
			c := StreamLadderCell{Estimates: r.Estimates, Rung: r.Rung}
			p := r.policy(name)
			switch {
			case p == nil:
				c.Absent = ranksByTimes
			case p.Metrics != nil:
				s := r.Statistic(p)
				c.Mean, c.CI95, c.KeepsUp = &s.Mean, s.CI95, p.Metrics.KeepsUp
				if own != nil && own.Metrics != nil && r.Estimates != l.Against {
					d := lost(i, name)
					c.Loss = &d
				}
			}
			if p != nil {
				row.Kind, row.Trained, row.Nothing = p.Kind, p.Trained, p.Nothing
			}
			row.Rungs = append(row.Rungs, c)
		}
		l.Policies = append(l.Policies, row)
	}
	for i := range l.Rungs {
		var family []statistic.Replicated
		var of []*statistic.Replicated
		for k := range l.Policies {
			// A policy that does not ask for run times plays the same on every rung: there is nothing to find out.
			if d := l.Policies[k].Rungs[i].Loss; d != nil && !l.Policies[k].Nothing {
				family, of = append(family, *d), append(of, d)
			}
		}
		statistic.JudgeAll(family, metric.Higher)
		for k := range family {
			*of[k] = family[k]
		}
	}
}

// against is the comparison with the estimates that losses refer to.
func (l *StreamLadder) against() *StreamReport {
	return l.Rungs[slices.IndexFunc(l.Rungs, func(r *StreamReport) bool { return r.Estimates == l.Against })]
}

// policy returns the row of a policy, nil if it does not play.
func (r *StreamReport) policy(name string) *StreamPolicy {
	if i := slices.IndexFunc(r.Policies, func(p StreamPolicy) bool { return p.Name == name }); i >= 0 {
		return &r.Policies[i]
	}
	return nil
}

// WriteTable prints a row for each policy.
func (l *StreamLadder) WriteTable(w io.Writer) error { return texttable.WriteSheets(w, l.Sheets()) }

// Sheets returns what WriteTable prints.
func (l *StreamLadder) Sheets() []texttable.Sheet {
	metric := l.Rungs[0].Counts()
	header, labels := []string{"policy"}, make([]string, len(l.Rungs))
	for i, r := range l.Rungs {
		labels[i] = r.Estimates.Label()
		header = append(header, labels[i])
	}
	for _, r := range l.Rungs {
		if r.Estimates != l.Against {
			header = append(header, "lost on "+r.Estimates.String(), "verdict")
		}
	}
	shown := l.longest()
	var rows [][]string
	var known []Knowledge
	var absent, slow []string
	for i := range l.Policies {
		p := &l.Policies[i]
		k := Knowledge{Name: shown.Shown(p.Name), Nothing: p.Nothing, Trained: p.Trained}
		known = append(known, k)
		row := []string{Marked(shown.Env, p.Kind, p.Name, k.Shown(sim.Estimates{}))}
		for _, c := range p.Rungs {
			if c.Mean == nil {
				row = append(row, "–")
				if !slices.Contains(absent, k.Name) {
					absent = append(absent, k.Name)
				}
				continue
			}
			if !c.KeepsUp {
				slow = append(slow, k.Name+" on "+c.Estimates.String())
			}
			row = append(row, spanCell(&metric, StreamStatistic{Mean: *c.Mean, CI95: c.CI95}))
		}
		for _, c := range p.Rungs {
			switch {
			case c.Estimates == l.Against:
			case c.Loss == nil:
				row = append(row, "–", "")
			case p.Nothing:
				row = append(row, ReplicatedText(c.Loss), "")
			default:
				row = append(row, ReplicatedText(c.Loss), verdictText(c.Loss.Verdict))
			}
		}
		rows = append(rows, row)
	}
	texttable.OneUnit(rows)
	return []texttable.Sheet{{
		Title: "What policies lose by not knowing run times", Header: header, Rows: rows, Left: 1,
		Above: EstimatesKey + ": " + strings.Join(labels, ", ") + "\n" + l.Rungs[0].load() +
			Wrapped(shown.Assumed()),
		Below: l.below(absent, slow) + Below(sim.Estimates{}, known),
	}}
}

// below is what stands below the table. absent are policies with a dash, slow those that do not keep up somewhere.
func (l *StreamLadder) below(absent, slow []string) string {
	first := l.Rungs[0]
	var b strings.Builder
	add := func(format string, args ...any) { b.WriteString(Wrapped(fmt.Sprintf(format, args...))) }
	add("%s The streams are the same on every rung.", first.played())
	add("lost on: difference of the policy's %s from its own on %s, on the same jobs; behind = it loses. Verdicts need "+
		"%d independent units and hold at 5 %% for all policies of a rung together (Holm).", first.Counts().Title,
		l.Against.Label(), statistic.MinUnits)
	if n := first.Streams.Units; n < statistic.MinUnits {
		add("%s are too few for intervals and verdicts: %s.", first.units(n), first.more())
	}
	if len(absent) > 0 {
		add("–: %s: %s.", ranksByTimes, strings.Join(absent, ", "))
	}
	if s := first.Load.warning(); s != "" {
		add("%s", s)
	}
	if len(slow) > 0 {
		add("%s", noMean(slow))
	}
	if s := first.Streams.Settling; s != nil && !s.Settled {
		add("%s", unsettled(workload.Thousands(s.PilotJobs)))
	}
	return b.String()
}

// longest returns the comparison with the most policies.
func (l *StreamLadder) longest() *StreamReport {
	return slices.MaxFunc(l.Rungs, func(a, b *StreamReport) int { return len(a.Policies) - len(b.Policies) })
}
