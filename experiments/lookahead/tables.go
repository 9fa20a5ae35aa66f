package lookahead

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/env/heuristic"
	"clustergym/experiments/ladder"
	"clustergym/experiments/study"
)

// tables returns a table for each scenario.
func (s *settings) tables() (all []study.Table) {
	for i := range s.Scenarios {
		c := &s.Scenarios[i]
		t := study.Table{
			Name: c.Name, From: "windows", Where: map[string]string{"scenario": c.Name}, By: []string{"policy"},
			Order:   map[string][]string{"policy": c.players()},
			Columns: []study.Column{{Title: "mean JCT (h)", Metric: "jct_h"}},
		}
		known := ""
		if cfg, err := c.config(&agent{}, 0, ""); err == nil {
			known = ladder.Label(cfg.Estimates())
		}
		t.Title = fmt.Sprintf("%s; %s: %s", strings.ReplaceAll(c.Name, "-", " "), ladder.Key, known)
		for _, v := range c.Versus {
			t.Columns = append(t.Columns, study.Column{Title: versus(v), Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"policy": v}})
		}
		t.Columns = append(t.Columns, study.Column{Title: "bounded slowdown", Metric: "slowdown"})
		all = append(all, t)
	}
	if slices.ContainsFunc(s.Scenarios, func(c scenario) bool { return len(c.Tuned) > 0 }) {
		var names []string
		for i := range s.Scenarios {
			names = append(names, s.Scenarios[i].Name)
		}
		all = append(all, study.Table{
			Name: "weights", Title: "Tuned weights of hold and index, means over workloads", By: []string{"scenario", "policy", "weight"},
			Order:   map[string][]string{"scenario": names, "weight": weightNames()},
			Columns: []study.Column{{Title: "weight", Metric: "weight"}},
		})
	}
	return all
}

// weightNames returns the names of the weights of hold, then those that index has beside them.
func weightNames() []string {
	names := heuristic.HoldNames()
	for _, n := range heuristic.IndexNames() {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func versus(policy string) string { return "JCT vs " + policy }

// figures returns a drawing of the differences to the first policy that others are compared with.
func (s *settings) figures() []study.Figure {
	return []study.Figure{{
		Name: "gain", Title: "Mean JCT against the best rules", X: "difference in %, negative = shorter", Kind: study.Bars, Zero: true,
		Series: func(r *study.Results) (series []study.Series) {
			for i := range s.Scenarios {
				c := &s.Scenarios[i]
				if len(c.Versus) == 0 {
					continue
				}
				one := study.Series{Name: c.Name}
				for _, l := range r.Lines(c.Name) {
					v := l.Cells[1]
					if slices.Contains(c.Versus, l.Labels["policy"]) || v.Value != v.Value {
						continue
					}
					one.Points = append(one.Points, study.Point{X: v.Value, Low: v.Low, High: v.High, Label: l.Labels["policy"] + " vs " + c.Versus[0]})
				}
				series = append(series, one)
			}
			return series
		},
	}}
}

// notes returns sentences on how to read the tables.
func (s *settings) notes(p study.Plan) []string {
	all := []string{
		fmt.Sprintf("Windows are test windows of %d workloads of each generator; each agent was trained on the earlier jobs of the workload that it is tested on. Intervals are 95 %% bootstrap intervals over windows.", s.Seeds),
		"hindsight:BASE knows all jobs of a window beforehand. It is no rival: it says how much there is to gain.",
	}
	if _, absent, err := s.given(p); err == nil && len(absent) > 0 {
		why := "there is no --data"
		if p.Data != "" {
			why = p.Data + " does not have their files"
		}
		all = append(all, fmt.Sprintf("Left out: %s, as %s.", strings.Join(absent, ", "), why))
	}
	return all
}
