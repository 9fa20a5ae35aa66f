package metascheduler

import (
	"fmt"
	"slices"

	"clustergym/env/workerplace"
	"clustergym/experiments/study"
)

// lineOrder returns the order of methods and rules in tables.
func lineOrder() []string {
	order := append(explorers(), "single-model")
	order = append(append(order, ablations()...), "mls-guided", "planner", "harmony-like", "dl2-like", "ppo")
	for _, r := range workerplace.Rules() {
		order = append(order, r.Name)
	}
	return order
}

// Titles of the columns that compare with a method or rule.
const (
	vsFewest  = "vs least-interference, %"
	vsWaits   = "vs " + imitated + ", %"
	vsHarmony = "vs harmony-like, %"
	vsDL2     = "vs dl2-like, %"
	vsPPO     = "vs ppo, %"
	vsWhole   = "vs mls, %"
	vsNoMeta  = "vs no-meta, %"
)

// tables returns the tables of the report.
func tables(study.Plan) []study.Table {
	order := map[string][]string{
		"method": lineOrder(), "stage": {"imitation", "unaware", "0 inner steps", "1 inner steps", "3 inner steps", "final"},
		"world": {thePoor.before, thePoor.after}, "explore": {"targeted", "tailored", "random", "none"}, "meta": {"yes", "no"},
	}
	alone := func(m string) map[string]string { return map[string]string{"method": m} }
	mean := study.Column{Title: "mean JCT h", Metric: "jct_h", Bare: true}
	versus := func(title, method string) study.Column {
		return study.Column{Title: title, Metric: "jct_h", Stat: study.Percent, Format: study.Signed, Versus: alone(method)}
	}
	final := func(world string) map[string]string { return map[string]string{"world": world, "stage": "final"} }
	rules := []study.Column{mean, versus(vsFewest, "least-interference"), versus(vsWaits, imitated), versus(vsWhole, "mls")}
	rivals := []study.Column{versus(vsHarmony, "harmony-like"), versus(vsDL2, "dl2-like"), versus(vsPPO, "ppo")}
	few := []study.Column{mean, versus(vsWaits, imitated), versus(vsNoMeta, "no-meta"), versus(vsWhole, "mls")}
	tails := []study.Column{{Title: "95 % tail h", Metric: "tail_h", Bare: true}, {Title: "makespan h", Metric: "makespan_h", Bare: true}}
	took := []study.Column{
		{Title: "to 95 % of final", Metric: "final95"},
		{Title: "more than mls", Metric: "final95", Stat: study.Difference, Versus: alone("mls")},
		{Title: "to 5 % below", Metric: "target"}, {Title: "got there", Metric: "hit", Bare: true}, {Title: "gained", Metric: "gained", Bare: true},
	}
	curve := []study.Column{{Title: "mean JCT h", Metric: "jct_h"}, {Title: "models' error", Metric: "error", Bare: true}, {Title: "subspaces", Metric: "spaces", Bare: true}}
	at := func(title, method string) study.Column { // after the change, in its end
		return study.Column{Title: title, Metric: "jct_h", Stat: study.Percent, Format: study.Signed, Versus: map[string]string{"method": method, "stage": "final"}}
	}
	by, usual, poor := []string{"method"}, map[string]string{"regime": theUsual.name}, map[string]string{"regime": thePoor.name}
	points := []string{"method", "episodes"}
	return []study.Table{
		{Name: "stationary", Title: "Mean completion time on workloads that nobody learnt from", From: "outcome", Where: final(theUsual.before), By: by, Order: order, Columns: rules},
		{Name: "rivals", Title: "Against the other learners", From: "outcome", Where: final(theUsual.before), By: by, Order: order, Columns: rivals},
		{Name: "changed", Title: "After the workload has changed, and some rounds", From: "outcome", Where: final(theUsual.after), By: by, Order: order, Columns: rules},
		{Name: "changed-rivals", Title: "Against the other learners, after the change", From: "outcome", Where: final(theUsual.after), By: by, Order: order, Columns: rivals},
		{Name: "tails", Title: "Tails", From: "outcome", Where: final(theUsual.before), By: by, Order: order, Columns: tails},
		{
			Name: "adaptation", Title: "Adapting to the change", From: "outcome", Where: map[string]string{"world": theUsual.after}, By: []string{"method", "stage"}, Order: order,
			Columns: []study.Column{mean, at(vsWaits, imitated), {Title: "vs 0 inner steps, %", Metric: "jct_h", Stat: study.Percent, Format: study.Signed, Versus: map[string]string{"stage": "0 inner steps"}}},
			Notes:   []string{"unaware = as it was before; inner steps come after some real episodes in the new workload and another fit of the models; final = after some rounds more."},
		},
		{
			Name: "samples", Title: "Real episodes that learning takes", Where: usual, By: by, Order: order, Columns: took,
			Notes: []string{"Performance is 1 over the mean completion time. The final one is that of the mean of the last two marks. 5 % below: than " + imitated + ". " +
				"The first data count. Means are over the learners that got there. got there, gained: the share that did, and that are better at the end."},
		},
		{
			Name: "again", Title: "Real episodes that adapting to the change takes", Where: usual, By: by, Order: order, Columns: took,
			Notes: []string{"Counted from the change on, and from what the learner of before does in the changed workload."},
		},
		{Name: "curve", Title: "Mean completion time by real episodes", Where: usual, By: points, Order: order, Columns: curve},
		{Name: "after", Title: "The same after the change, by real episodes since", Where: usual, By: points, Order: order, Columns: curve[:2]},
		{Name: "poor", Title: "With poor models: few real episodes, crowded servers", From: "outcome", Where: final(thePoor.before), By: by, Order: order, Columns: few},
		{Name: "poor-changed", Title: "With poor models, after a change that brings two new types", From: "outcome", Where: final(thePoor.after), By: by, Order: order, Columns: few},
		{
			Name: "poor-adaptation", Title: "With poor models: adapting to the change", From: "outcome", Where: map[string]string{"world": thePoor.after}, By: []string{"method", "stage"}, Order: order,
			Columns: []study.Column{mean, at(vsWaits, imitated), {Title: "vs 0 inner steps, %", Metric: "jct_h", Stat: study.Percent, Format: study.Signed, Versus: map[string]string{"stage": "0 inner steps"}}},
		},
		{
			Name: "grid", Title: "With poor models: meta-learning and exploration", By: []string{"world", "explore", "meta"}, Order: order,
			Columns: []study.Column{
				mean,
				{Title: "vs no meta, %", Metric: "jct_h", Stat: study.Percent, Format: study.Signed, Versus: map[string]string{"meta": "no"}},
				{Title: "vs no exploration, %", Metric: "jct_h", Stat: study.Percent, Format: study.Signed, Versus: map[string]string{"explore": "none"}},
			},
			Notes: []string{"Each is compared with its like: the same exploration without meta-learning, and the same learner without exploration. Targeted exploration is that by subspaces alone without meta-learning."},
		},
		{Name: "poor-curve", Title: "With poor models, by real episodes", From: "curve", Where: poor, By: points, Order: order, Columns: curve},
		{Name: "poor-after", Title: "The same after the change, by real episodes since", From: "after", Where: poor, By: points, Order: order, Columns: curve[:2]},
		{
			Name: "family", Title: "Adapting on real episodes to workloads of a family", By: []string{"method", "stage", "inner"}, Order: order,
			Columns: []study.Column{
				mean,
				{Title: "vs 0 inner steps, %", Metric: "jct_h", Stat: study.Percent, Format: study.Signed, Versus: map[string]string{"inner": "0"}},
				{Title: "vs joint, %", Metric: "jct_h", Stat: study.Percent, Format: study.Signed, Versus: alone("joint")},
			},
			Notes: []string{"joint = training on all workloads at once, on as many episodes; it adapts by the same steps, but was not trained to. There are no models here."},
		},
	}
}

// figures returns the drawings of the report.
func figures(study.Plan) []study.Figure {
	lines := func(table string) func(*study.Results) []study.Series {
		return func(r *study.Results) []study.Series {
			return slices.DeleteFunc(r.Curves(table, "mean JCT h", "episodes"), func(s study.Series) bool {
				return s.Name == "ppo" || s.Name == "dl2-like" // they need many more episodes than this axis shows
			})
		}
	}
	ours := []string{"mls", "mls-guided"}
	return []study.Figure{
		{Name: "curve", Title: "Learning with few real episodes", X: "real episodes", Y: "mean JCT, h", Ours: ours, Series: lines("curve")},
		{Name: "stationary", Title: "Mean completion time on held-out workloads", X: "mean JCT, h", Kind: study.Bars, Zero: true, Ours: ours, Sorted: true,
			Series: func(r *study.Results) []study.Series { return r.Bars("stationary", "mean JCT h", nil) }},
		{Name: "changed", Title: "After the change", X: "mean JCT, h", Kind: study.Bars, Zero: true, Ours: ours, Sorted: true,
			Series: func(r *study.Results) []study.Series { return r.Bars("changed", "mean JCT h", nil) }},
		{Name: "poor", Title: "With poor models", X: "real episodes", Y: "mean JCT, h", Ours: ours, Series: lines("poor-curve")},
	}
}

// claims compares our figures with the paper's.
func claims(p study.Plan) []study.Claim {
	var all []study.Claim
	whole := []string{"mls"}
	if !p.Quick {
		whole = append(whole, "mls-guided")
	}
	for _, m := range whole {
		line := map[string]string{"method": m}
		for _, c := range []struct{ before, after, column string }{
			{"stationary", "changed", vsFewest}, {"stationary", "changed", vsWaits}, {"rivals", "changed-rivals", vsHarmony},
			{"rivals", "changed-rivals", vsDL2}, {"rivals", "changed-rivals", vsPPO},
		} {
			all = append(all,
				study.Claim{What: m + ", mean JCT " + c.column, Paper: "−12.29 to −16.24 %", Table: c.before, Line: line, Column: c.column},
				study.Claim{What: m + ", after the change, " + c.column, Paper: "−15.76 to −22.13 %", Table: c.after, Line: line, Column: c.column})
		}
	}
	return all
}

// notes returns sentences on how to read the tables.
func notes(p study.Plan) []string {
	all := []string{
		"mls is a reconstruction from the paper's abstract: closed loop, performance models, meta-learning, exploration where models are wrong.",
		"The paper's figures are against baselines that its abstract does not name, on a cluster and workloads that it does not name either.",
		"mls-guided is ours: before its first meta-steps the policy imitates, in each of the models, the planner by that model.",
		"planner is the models of mls without a policy. oracle-waits does the same with the true speeds, which no scheduler knows.",
		"harmony-like learns in one model; dl2-like and ppo learn from real episodes alone, and from more of them.",
		"All learners begin by imitating " + imitated + " on the same few real episodes, and are judged by their likeliest actions.",
	}
	if s, err := settingsOf(p); err == nil {
		all = append(all, fmt.Sprintf("The workloads of the tables are of trace seed %d, the learners of seeds from %d on; nothing was chosen with them.", s.TraceSeed, s.FirstSeed))
	}
	return all
}
