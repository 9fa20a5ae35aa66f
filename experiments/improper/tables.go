package improper

import (
	"fmt"
	"math"
	"slices"

	"clustergym/env/policymix"
	"clustergym/experiments/study"
)

// order returns the order of the values of labels.
func (s *settings) order() map[string][]string {
	policies := append(append([]string{}, learners()...), likeliest, exact, ppo, best, uniform, byHand, shares, hindsight, optimum)
	return map[string][]string{"network": s.Networks, "workload": s.Workloads, "policy": append(policies, policymix.Policies()...)}
}

// packets formats a number of packets; a network that is not stable has hundreds.
func packets(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// signed and tenth format percent without the unit, which the title has.
func signed(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%+.0f", v)
	}
	return fmt.Sprintf("%+.1f", v)
}

func tenth(v float64) string { return fmt.Sprintf("%.1f", math.Round(10*v)/10+0) } // + 0 makes −0 a 0

// tables returns the tables of the report.
func (s *settings) tables(study.Plan) []study.Table {
	order, two := s.order(), study.Fixed(2)
	versus := func(policy, metric string) study.Column {
		return study.Column{Title: "vs " + policy, Metric: metric, Stat: study.Percent, Versus: map[string]string{"policy": policy}}
	}
	tables := []study.Table{
		{
			Name: "networks", Title: "Packets that wait in queueing networks", By: []string{"network", "policy"}, Order: order,
			Columns: []study.Column{
				{Title: "packets", Metric: "packets", Format: packets},
				{Title: "vs " + optimum + ", %", Metric: "packets", Stat: study.Percent, Versus: map[string]string{"policy": optimum}, Format: signed},
				{Title: "gap left, %", Metric: "packets", Stat: study.Behind, Versus: map[string]string{"policy": optimum}, Start: map[string]string{"policy": uniform}, Format: tenth},
			},
			Notes: []string{
				"gap left: of the way from uniform choices to the optimum. Where a base controller has hundreds of packets, it lets queues grow for ever.",
				"pg, spsa, nac: one weight for each controller. by state: weights that depend on the queues. best base: by these very episodes, in hindsight.",
			},
		},
		{
			Name: "known", Title: "What is known in closed form or by value iteration, over all time", By: []string{"network", "policy"}, Order: order,
			Columns: []study.Column{{Title: "packets", Metric: "packets", Format: study.Fixed(3), Bare: true}},
		},
		{
			Name: "weights", Title: "The weights that were learned, where they are the same in every state", By: []string{"network", "controller", "policy"}, Order: order,
			Columns: []study.Column{{Title: "weight", Metric: "weight", Format: study.Fixed(3)}},
		},
		{
			Name: "workloads", Title: "Mean completion time on test windows of PolicyMix-v1", By: []string{"workload", "policy"}, Order: order,
			Columns: []study.Column{
				{Title: "JCT (h)", Metric: "jct_h", Format: two, Bare: true}, versus(best, "jct_h"), versus(ppo, "jct_h"),
			},
			Notes: []string{"best base: the scheduler with the least mean on validation windows. best of each window: in hindsight, one scheduler for the whole window.", "by hand: smallest while most jobs that wait ask for six hours to a day, else sjf; made for the workload turning."},
		},
	}
	mix := study.Table{
		Name: "choices", From: "workloads", Title: "What was chosen, shares of decisions", By: []string{"workload", "policy"}, Order: order,
		Keep: func(l map[string]string) bool {
			return slices.Contains(append(players(), likeliest, byHand, hindsight), l["policy"])
		},
	}
	for _, name := range policymix.Policies() {
		mix.Columns = append(mix.Columns, study.Column{Title: name, Metric: name, Format: two, Bare: true})
	}
	return append(tables, mix, study.Table{
		Name: "validation", Title: "The schedulers on the validation windows, which choose the best base", By: []string{"workload", "policy"}, Order: order,
		Columns: []study.Column{{Title: "JCT (h)", Metric: "jct_h", Format: two, Bare: true}},
	})
}

// figures returns the drawings of the report, one for each network and workload.
func (s *settings) figures(study.Plan) []study.Figure {
	var all []study.Figure
	for _, n := range s.Networks {
		all = append(all, study.Figure{
			Name: "network-" + n, Title: "Gap to the optimum that is left on the network " + n, X: "percent of the way from uniform choices", Kind: study.Bars, Zero: true,
			Ours: learners(), Sorted: true,
			Series: func(r *study.Results) []study.Series {
				return r.Bars("networks", "gap left, %", func(l map[string]string) bool {
					return l["network"] == n && slices.Contains(append(learners(), shares), l["policy"])
				})
			},
		})
	}
	for _, w := range s.Workloads {
		all = append(all, study.Figure{
			Name: "workload-" + w, Title: "Mean completion time against the best scheduler, workload " + w, X: "change in percent", Kind: study.Bars, Zero: true,
			Ours: []string{pg, nac, byPG, byState}, Sorted: true,
			Series: func(r *study.Results) []study.Series {
				return r.Bars("workloads", "vs "+best, func(l map[string]string) bool {
					return l["workload"] == w && slices.Contains(append(players(), likeliest, uniform, byHand, hindsight), l["policy"])
				})
			},
		})
	}
	return all
}

// claims returns the paper's claims beside ours. Its figures are curves, so they are in words.
func (s *settings) claims(study.Plan) (all []study.Claim) {
	for _, c := range []struct{ network, what, paper string }{
		{"even", "the mixture of two controllers that are not stable is", "stable"},
		{"skewed", "and where uniform choices are not stable either", "stable"},
		{"skewed-longest", "a mixture with the optimal controller finds it", "finds it"},
		{"path-rules", "on a path, where the one with most queues is near the optimum", "finds it"},
		{"turning", "under arrivals that change", "stable"},
	} {
		if slices.Contains(s.Networks, c.network) {
			all = append(all, study.Claim{What: c.network + ": " + c.what, Paper: c.paper, Table: "networks", Line: map[string]string{"network": c.network, "policy": nac}, Column: "vs " + optimum + ", %"})
		}
	}
	for _, w := range s.Workloads {
		for _, p := range []string{nac, byState} {
			all = append(all, study.Claim{What: fmt.Sprintf("%s: JCT of %s against the best scheduler", w, p), Paper: "–", Table: "workloads", Line: map[string]string{"workload": w, "policy": p}, Column: "vs " + best})
		}
	}
	return all
}

// notes returns sentences on how to read the tables.
func (s *settings) notes(study.Plan) []string {
	return []string{
		"The papers' networks are like these; their rates and figures are in curves, and the rates here are ours.",
		"Agents on workloads have equal numbers of decisions; each plays the checkpoint that was best on validation windows.",
		"philly: run times are known. history: they are predicted from jobs that have ended. turning: users say them, and in every other phase of 640 jobs most short jobs say a day.",
	}
}
