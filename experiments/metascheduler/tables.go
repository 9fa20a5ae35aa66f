package metascheduler

import (
	"math"
	"slices"
	"strconv"

	"clustergym/env/workerplace"
	"clustergym/experiments/study"
)

// lineOrder returns the order of methods and rules in tables.
func lineOrder() []string {
	order := []string{"mls", "random-exploration", "no-meta", "single-model", "mls-guided", "planner", "harmony-like", "ppo"}
	for _, r := range workerplace.Rules() {
		order = append(order, r.Name)
	}
	return order
}

// Titles of the columns that compare with a method or rule.
const (
	vsFewest  = "vs least-interference"
	vsWaits   = "vs " + imitated
	vsHarmony = "vs harmony-like"
	vsPPO     = "vs ppo"
	vsWhole   = "vs mls"
)

// tables returns the tables of the report.
func tables(study.Plan) []study.Table {
	order := map[string][]string{
		"method": lineOrder(), "stage": {"unaware", "0 inner steps", "1 inner steps", "3 inner steps", "final"},
	}
	columns := func(line func(method string) map[string]string) []study.Column {
		return []study.Column{
			{Title: "mean JCT h", Metric: "jct_h"},
			{Title: vsFewest, Metric: "jct_h", Stat: study.Percent, Versus: line("least-interference")},
			{Title: vsWaits, Metric: "jct_h", Stat: study.Percent, Versus: line(imitated)},
			{Title: vsHarmony, Metric: "jct_h", Stat: study.Percent, Versus: line("harmony-like")},
			{Title: vsPPO, Metric: "jct_h", Stat: study.Percent, Versus: line("ppo"), Hidden: true},
			{Title: vsWhole, Metric: "jct_h", Stat: study.Percent, Versus: line("mls"), Hidden: true},
			{Title: "95 % tail h", Metric: "tail_h", Bare: true, Hidden: true},
			{Title: "makespan h", Metric: "makespan_h", Bare: true, Hidden: true},
		}
	}
	alone := func(m string) map[string]string { return map[string]string{"method": m} }
	took := []study.Column{
		{Title: "to 95 % of its final performance", Metric: "final95"},
		{Title: vsWhole, Metric: "final95", Stat: study.Difference, Versus: alone("mls")},
		{Title: "to 95 % of its gain", Metric: "own95"}, {Title: "share that gained", Metric: "gained", Bare: true},
		{Title: "to 5 % below", Metric: "target"}, {Title: "share that got there", Metric: "hit", Bare: true},
	}
	return []study.Table{
		{
			Name: "stationary", Title: "Mean completion time on held-out workloads", From: "outcome", Where: map[string]string{"world": "stationary", "stage": "final"},
			By: []string{"method"}, Order: order, Columns: columns(alone),
		},
		{
			Name: "changed", Title: "After the workload has changed, and some rounds", From: "outcome", Where: map[string]string{"world": "changed", "stage": "final"},
			By: []string{"method"}, Order: order, Columns: columns(alone),
		},
		{
			Name: "adaptation", Title: "Adapting to the change", From: "outcome", Where: map[string]string{"world": "changed"},
			By: []string{"method", "stage"}, Order: order,
			Columns: []study.Column{
				{Title: "mean JCT h", Metric: "jct_h"},
				{Title: vsFewest, Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"method": "least-interference", "stage": "final"}},
				{Title: vsWaits, Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"method": imitated, "stage": "final"}},
			},
			Notes: []string{"unaware = as it was before; inner steps come after some real episodes in the new workload and another fit of the models; final = after some rounds more."},
		},
		{
			Name: "samples", Title: "Real episodes that learning takes", By: []string{"method"}, Order: order, Columns: took,
			Notes: []string{"Performance is one by the mean completion time; final is the mean of the last two marks, below is than " + imitated +
				". The episodes that the first data come from count. Means are over the learners that got there, of which the shares tell."},
		},
		{
			Name: "again", Title: "Real episodes that adapting to the change takes", By: []string{"method"}, Order: order, Columns: took,
			Notes: []string{"Counted from the change on, and from what the learner of before does in the changed workload."},
		},
		{
			Name: "curve", Title: "Mean completion time by real episodes", By: []string{"method", "episodes"}, Order: order,
			Columns: []study.Column{{Title: "mean JCT h", Metric: "jct_h"}, {Title: "models' relative error", Metric: "error", Bare: true}, {Title: "subspaces seen", Metric: "spaces", Bare: true}},
		},
		{
			Name: "after", Title: "The same after the change, by real episodes since", By: []string{"method", "episodes"}, Order: order,
			Columns: []study.Column{{Title: "mean JCT h", Metric: "jct_h"}, {Title: "models' relative error", Metric: "error", Bare: true}},
		},
	}
}

// figures returns the drawings of the report.
func figures(study.Plan) []study.Figure {
	lines := func(table string) func(*study.Results) []study.Series {
		return func(r *study.Results) []study.Series {
			var all []study.Series
			for _, m := range methods() {
				if m == "ppo" && table == "curve" {
					continue // ppo needs many more episodes than this axis shows
				}
				s := study.Series{Name: m}
				for _, l := range r.Lines(table) {
					if l.Labels["method"] != m {
						continue
					}
					x, err := strconv.ParseFloat(l.Labels["episodes"], 64)
					if v, _, ok := r.Find(table, l.Labels, "mean JCT h"); ok && err == nil {
						s.Points = append(s.Points, study.Point{X: x, Y: v.Value, Low: v.Low, High: v.High})
					}
				}
				if len(s.Points) > 0 {
					slices.SortFunc(s.Points, func(a, b study.Point) int { return int(math.Copysign(1, a.X-b.X)) })
					all = append(all, s)
				}
			}
			return all
		}
	}
	ours := []string{"mls"}
	return []study.Figure{
		{Name: "curve", Title: "Learning with few real episodes", X: "real episodes", Y: "mean JCT, h", Ours: ours, Series: lines("curve")},
		{Name: "stationary", Title: "Mean completion time on held-out workloads", X: "mean JCT, h", Kind: study.Bars, Zero: true, Ours: ours, Sorted: true,
			Series: func(r *study.Results) []study.Series { return r.Bars("stationary", "mean JCT h", nil) }},
		{Name: "changed", Title: "After the change", X: "mean JCT, h", Kind: study.Bars, Zero: true, Ours: ours, Sorted: true,
			Series: func(r *study.Results) []study.Series { return r.Bars("changed", "mean JCT h", nil) }},
	}
}

// claims compares our figures with the paper's.
func claims(study.Plan) []study.Claim {
	var all []study.Claim
	for _, m := range []string{"mls", "mls-guided", "planner"} {
		line := map[string]string{"method": m}
		for _, c := range []string{vsFewest, vsWaits, vsHarmony, vsPPO} {
			all = append(all,
				study.Claim{What: m + ", mean JCT " + c, Paper: "−12.29 to −16.24 %", Table: "stationary", Line: line, Column: c},
				study.Claim{What: m + ", mean JCT after the change, " + c, Paper: "−15.76 to −22.13 %", Table: "changed", Line: line, Column: c})
		}
	}
	return all
}

// notes returns sentences on how to read the tables.
func notes(study.Plan) []string {
	return []string{
		"mls is a reconstruction from the paper's abstract: closed loop, performance models, meta-learning, exploration where models are wrong. The paper's figures are against baselines that its abstract does not name, on a cluster and workloads that it does not name either.",
		"mls-guided is ours: before its first meta-steps the policy imitates, in each of the models, the planner by that model.",
		"planner places the shortest job that adds four tenths of its own speed to that of all, each worker where the models of mls believe that all jobs together are fastest, and waits where none does; it has no policy. oracle-waits does the same with the true speeds, which no scheduler knows, oracle so without waiting.",
		"harmony-like learns in one model without meta-learning or exploration; ppo learns from real episodes alone, with more of them.",
		"All learners begin by imitating " + imitated + " on the same few real episodes, and are judged by their likeliest actions on workloads that nobody learnt from.",
	}
}
