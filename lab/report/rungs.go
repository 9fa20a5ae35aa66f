package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"clustergym/env/sched"
	"clustergym/internal/plain"
	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
	"clustergym/simulator/sim"
)

// Ladder is a comparison of policies on the same windows, repeated with several estimates of run times: how much each
// policy loses by not knowing. It is the document of gymctl eval --rungs --json.
type Ladder struct {
	Metric   string         `json:"metric"`
	Against  sim.Estimates  `json:"against"` // the estimates that losses refer to
	Policies []LadderPolicy `json:"policies"`
	Rungs    []*Report      `json:"rungs"` // the whole comparison with each of the estimates
	// LeftOut counts the jobs of the workload that are in no window because the environment does not take them; nil =
	// none.
	LeftOut *sched.LeftOut `json:"left_out,omitempty"`
}

// LadderPolicy is one policy with each of the estimates.
type LadderPolicy struct {
	Name    string        `json:"name"`
	Kind    string        `json:"kind"`
	Trained sim.Estimates `json:"trained_on,omitzero"`
	Nothing bool          `json:"asks_nothing,omitempty"`
	Rungs   []LadderCell  `json:"rungs"`
}

// LadderCell is the result of a policy with some estimates.
type LadderCell struct {
	Estimates sim.Estimates `json:"estimates"`
	Rung      string        `json:"rung"`
	Mean      *float64      `json:"mean"` // of the metric over windows, null where the policy does not play
	CI95      *[2]float64   `json:"ci95"` // of the mean
	// Loss is by how many percent the policy is worse than itself with Ladder.Against, on the same windows; negative =
	// better.
	Loss     *float64    `json:"loss_percent"`
	LossCI95 *[2]float64 `json:"loss_ci95"`
	Absent   string      `json:"absent,omitempty"` // why it does not play
}

// The reasons for a dash in the table.
const (
	ranksByTimes = "ranks by run times, and there are none"
	noMetric     = "does not act in the environment, so that its metric does not apply"
)

// Fill sets the policies, in the order of names, from r.Rungs. seed is that of the bootstrap draws.
func (l *Ladder) Fill(seed uint64, names []string) {
	first := l.Rungs[0]
	m := first.Counts()
	l.Metric = m.Key
	find := func(r *Report, name string) *PolicyReport {
		if i := slices.IndexFunc(r.Policies, func(p PolicyReport) bool { return p.Name == name }); i >= 0 {
			return &r.Policies[i]
		}
		return nil
	}
	values := func(r *Report, name string) []float64 {
		p := find(r, name)
		if p == nil || p.Metrics == nil || r.HasScores() && p.Metrics.Score == nil {
			return nil
		}
		return r.Statistic(p).PerWindow
	}
	against := l.Rungs[slices.IndexFunc(l.Rungs, func(r *Report) bool { return r.Estimates == l.Against })]
	for _, name := range names {
		row := LadderPolicy{Name: name}
		own := values(against, name)
		for _, r := range l.Rungs {
			c := LadderCell{Estimates: r.Estimates, Rung: r.Rung}
			p, v := find(r, name), values(r, name)
			switch {
			case p == nil:
				c.Absent = ranksByTimes
			case v == nil:
				c.Absent = noMetric
			default:
				mean := statistic.Mean(v)
				ci := statistic.Bootstrap(seed, "mean", len(v), func(drawn []statistic.Draw) float64 {
					sum := 0.0
					for _, d := range drawn {
						sum += v[d.Unit]
					}
					return sum / float64(len(drawn))
				})
				c.Mean, c.CI95 = &mean, &ci
			}
			if p != nil {
				row.Kind, row.Trained, row.Nothing = p.Kind, p.Trained, p.Nothing
			}
			if v != nil && own != nil && r != against {
				d := statistic.Compare(seed, name, name, m.Key, statistic.Sample{v}, statistic.Sample{own}, m.Higher)
				loss, ci := d.Difference, d.CI95
				if m.Higher {
					loss, ci = 0-loss, [2]float64{0 - ci[1], 0 - ci[0]}
				}
				c.Loss, c.LossCI95 = &loss, &ci
			}
			row.Rungs = append(row.Rungs, c)
		}
		l.Policies = append(l.Policies, row)
	}
}

// WriteTable prints a row for each policy.
func (l *Ladder) WriteTable(w io.Writer) error { return texttable.WriteSheets(w, l.Sheets()) }

// Sheets returns what WriteTable prints.
func (l *Ladder) Sheets() []texttable.Sheet {
	first := l.Rungs[0]
	m := first.Counts()
	header, labels := []string{"policy"}, make([]string, len(l.Rungs))
	for i, r := range l.Rungs {
		labels[i] = r.Estimates.Label()
		header = append(header, labels[i])
	}
	for _, r := range l.Rungs {
		if r.Estimates != l.Against {
			header = append(header, "lost on "+r.Estimates.String())
		}
	}
	shown := l.longest()
	var rows [][]string
	var known []Knowledge
	dashes := map[string][]string{}
	for i := range l.Policies {
		p := &l.Policies[i]
		k := Knowledge{Name: shown.Shown(p.Name), Nothing: p.Nothing, Trained: p.Trained}
		known = append(known, k)
		row := []string{Marked(shown.ID(), p.Kind, p.Name, k.Shown(sim.Estimates{}))}
		for _, c := range p.Rungs {
			if c.Mean == nil {
				row = append(row, "–")
				if !slices.Contains(dashes[c.Absent], k.Name) {
					dashes[c.Absent] = append(dashes[c.Absent], k.Name)
				}
				continue
			}
			row = append(row, m.SpanCell(*c.Mean, *c.CI95))
		}
		for _, c := range p.Rungs {
			switch {
			case c.Estimates == l.Against:
			case c.Loss == nil:
				row = append(row, "–")
			default:
				row = append(row, fmt.Sprintf("%+.1f %% [%+.1f, %+.1f]", *c.Loss, c.LossCI95[0], c.LossCI95[1]))
			}
		}
		rows = append(rows, row)
	}
	texttable.OneUnit(rows)
	var b strings.Builder
	fmt.Fprintf(&b,
		"%s of %d jobs each, the same on every rung: mean over windows of %s with its 95 %% bootstrap interval.\n",
		plain.Count(len(first.Windows), "window", "windows"), first.Windows[0].Jobs, m.Title)
	b.WriteString(Wrapped(fmt.Sprintf("lost on: by how much the policy is worse than itself on %s, on the same windows, "+
		"with the 95 %% interval of the difference; negative = better.", l.Against.Label())))
	for _, why := range []string{ranksByTimes, noMetric} {
		if names := dashes[why]; names != nil {
			b.WriteString(Wrapped("–: " + why + ": " + strings.Join(names, ", ") + "."))
		}
	}
	b.WriteString(Below(sim.Estimates{}, known))
	return []texttable.Sheet{{
		Title: "What policies lose by not knowing run times", Header: header, Rows: rows, Left: 1,
		Above: EstimatesKey + ": " + strings.Join(labels, ", ") + "\n" + shown.stopsLine(),
		Below: b.String(),
	}}
}

// longest returns the comparison with the most policies.
func (l *Ladder) longest() *Report {
	return slices.MaxFunc(l.Rungs, func(a, b *Report) int { return len(a.Policies) - len(b.Policies) })
}
