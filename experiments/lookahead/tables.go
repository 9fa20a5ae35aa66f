package lookahead

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/experiments/study"
	"clustergym/lab/report"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
)

// tables returns a table for each scenario.
func (s *settings) tables(study.Plan) (all []study.Table) {
	for i := range s.Scenarios {
		c := &s.Scenarios[i]
		t := study.Table{
			Name: c.Name, From: "windows", Where: map[string]string{"scenario": c.Name}, By: []string{"policy"},
			Order:   map[string][]string{"policy": c.players()},
			Columns: []study.Column{{Title: "mean JCT (h)", Metric: "jct_h"}},
		}
		known := ""
		if cfg, err := c.config(&agent{}, 0, ""); err == nil {
			known = cfg.Estimates().Label()
		}
		t.Title = fmt.Sprintf("%s; %s: %s", strings.ReplaceAll(c.Name, "-", " "), report.EstimatesKey, known)
		// Of many rivals a line has room for the first and the last two.
		for k, v := range c.Versus {
			t.Columns = append(t.Columns, study.Column{
				Title: versus(v), Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"policy": v}, Hidden: k > 0 && k < len(c.Versus)-2,
			})
		}
		t.Columns = append(t.Columns, study.Column{Title: "bounded slowdown", Metric: "slowdown", Hidden: len(c.Versus) > 2})
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
	names := schedulers.HoldNames()
	for _, n := range schedulers.IndexNames() {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func versus(policy string) string { return "JCT vs " + policy }

// figures returns a drawing for each scenario of the differences to the first policy that others are compared with.
func (s *settings) figures(study.Plan) (all []study.Figure) {
	for i := range s.Scenarios {
		c := &s.Scenarios[i]
		if len(c.Versus) == 0 {
			continue
		}
		var ours []string
		for _, a := range c.Agents {
			ours = append(ours, a.Name)
		}
		for _, t := range c.Tuned {
			if len(t.Set) == 0 { // others are controls
				ours = append(ours, t.Name, searching+t.Name, policyname.Slots(t.Name))
			}
		}
		all = append(all, study.Figure{
			Name: "gain-" + c.Name, Title: "Mean JCT against " + c.Versus[0] + ": " + strings.ReplaceAll(c.Name, "-", " "), X: "difference in %, negative = shorter",
			Kind: study.Bars, Zero: true, Ours: ours, Sorted: true,
			Series: func(r *study.Results) []study.Series { return r.Bars(c.Name, versus(c.Versus[0]), nil) },
		})
	}
	return all
}

// notes returns sentences on how to read the tables.
func (s *settings) notes(p study.Plan) []string {
	all := []string{
		fmt.Sprintf("Windows are test windows of %d workloads of each generator; each agent was trained on the earlier jobs of the workload that it is tested on. Intervals are 95 %% bootstrap intervals over windows.", s.Seeds),
		policyname.Hindsight.String() + "BASE knows all jobs of a window beforehand. It is no rival: it says how much there is to gain.",
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
