package worlrtgs

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"clustergym/experiments/study"
	"clustergym/lab/plan"
	"clustergym/simulator/dag/synth"
)

// tables returns the tables of the report. Those of recorded jobs appear only with --data.
func (s *settings) tables(p study.Plan) []study.Table {
	three := study.Fixed(3)
	order := map[string][]string{
		"policy": plannerNames(), "family": synth.Families(), "class": {"small", "medium", "large"}, "kind": recordedKinds,
	}
	of := func(policy string) map[string]string { return map[string]string{"policy": policy} }
	versus := func(policy string) study.Column {
		return study.Column{Title: "vs " + policy, Metric: "makespan_s", Stat: study.PercentEach, Versus: of(policy)}
	}
	wins := func(policy string) study.Column {
		return study.Column{Title: "shorter", Metric: "makespan_s", Stat: study.Wins, Versus: of(policy), Bare: true}
	}
	second := func(title, metric string) study.Column {
		return study.Column{Title: title, Metric: "timing_" + metric, Bare: true}
	}
	ratio := study.Column{Title: "× HEFT", Metric: "ratio", Stat: study.GeometricMean, Format: three}
	rank := study.Column{Title: "rank", Metric: "rank", Format: study.Fixed(2)}
	published := rank
	published.Paper = func(l map[string]string) string {
		return map[string]string{"worl-rtgs": "1.485", "dras-like": "1.98"}[l["policy"]]
	}
	whole := func(l map[string]string) bool {
		return !slices.ContainsFunc(allPlanners, func(p planner) bool { return p.part && p.name == l["policy"] })
	}
	among := func(names []string) func(map[string]string) bool {
		return func(l map[string]string) bool { return slices.Contains(names, l["policy"]) }
	}
	search := []string{plan.NoisyPolicy, "worl-rtgs", "worl-rtgs+heft", "worl-ranks", "worl-ranks+heft", stillRanks}
	all := []study.Table{
		{
			Name: "all", Title: "Makespan over that of HEFT with insertion, all graphs", From: "plans", By: []string{"policy"}, Order: order, Keep: whole,
			Columns: []study.Column{ratio, versus("heft"), versus(plan.NoisyPolicy), wins(plan.NoisyPolicy)},
			Notes: []string{
				"vs: mean over graphs of the difference in percent, negative = shorter, on the graphs that both planned; +heft = begins with HEFT's plan.",
				"heft-noise: the best of as many plans of HEFT with noise in its ranks as a search makes; shorter: share of graphs on which a plan is shorter than that one, ties half.",
			},
		},
		{
			Name: "rivals", Title: "Against the rivals that the paper names, all graphs", From: "plans", By: []string{"policy"}, Order: order,
			Keep:    among(search[1:5]),
			Columns: []study.Column{versus("woa"), versus("rtgs"), versus(drasPolicy)},
		},
		{
			Name: "whales", Title: "Whales in rank space against as many plans drawn anew around HEFT's ranks in the same ways", From: "plans", By: []string{"policy"}, Order: order,
			Keep: among(search[3:5]), Columns: []study.Column{versus(stillRanks), wins(stillRanks)},
			Notes: []string{"shorter: share of graphs on which whales find a shorter plan, ties half."},
		},
		{
			Name: "whales-sizes", Title: "The same by size", From: "plans", By: []string{"tasks", "GPUs", "policy"}, Order: order,
			Keep: among(search[3:5]), Columns: []study.Column{versus(stillRanks)},
		},
		{
			Name: "sizes", Title: "Makespan by size", From: "plans", By: []string{"tasks", "GPUs", "policy"}, Order: order, Keep: among(mainPlanners),
			Columns: []study.Column{ratio, versus(plan.NoisyPolicy)},
		},
		{
			Name: "families", Title: "Makespan by kind of graph", From: "plans", By: []string{"family", "policy"}, Order: order, Keep: among(mainPlanners),
			Columns: []study.Column{ratio, versus(plan.NoisyPolicy)},
		},
		{
			Name: "parts", Title: "What the parts of a search do: graphs that every planner planned", From: "plans-all", By: []string{"policy"}, Order: order,
			Keep:    func(l map[string]string) bool { return among(search)(l) || !whole(l) },
			Columns: []study.Column{ratio, versus(plan.NoisyPolicy), versus("worl-rtgs+heft"), versus("worl-ranks+heft")},
			Notes: []string{
				"Of worl-rtgs+heft: random = hopes are drawn uniformly, leader = hopes are the leader's own positions (no whales), still = no task is placed at random.",
				"hopeful = worl-rtgs+heft with a generator that learned to follow hopes.",
				"Of worl-ranks+heft: random = every plan is drawn anew around HEFT's ranks (no whales), leader = none is, whale-ranks+heft = no network.",
			},
		},
		{
			Name: "queue", Title: "DRAS-like against picks at random in the same machine, all graphs", From: "plans", By: []string{"policy"}, Order: order,
			Keep: among([]string{drasPolicy}), Columns: []study.Column{ratio, versus(pickPolicy)},
		},
		{
			Name: "six", Title: "Average ranks of six planners, all graphs", From: "plans-six", By: []string{"policy"}, Order: order,
			Columns: []study.Column{published},
			Notes:   []string{"The paper's ranks are among WORL-RTGS, DRAS, mDRL, MAGRL, MIG-MPS and RL-Hybrid."},
		},
		{
			Name: "classes", Title: "Average ranks of the six by size: small up to 1000 tasks, medium up to 3000, large above", From: "plans-six", By: []string{"class", "policy"}, Order: order,
			Columns: []study.Column{rank},
		},
		{
			Name: "stability", Title: "Stability: longest less shortest makespan over the seeds, in percent of the mean", From: "plans-spread", By: []string{"policy"}, Order: order, Keep: whole,
			Columns: []study.Column{{Title: "spread %", Metric: "spread"}, {Title: "worst graph %", Metric: "spread", Stat: study.Maximum, Bare: true}},
		},
		{
			Name: "trainings", Title: "WORL-RTGS-like by its generator's training, one for each seed: all graphs", From: "plans",
			Where: map[string]string{"policy": "worl-rtgs"}, By: []string{"seed"}, Runs: "run", Columns: []study.Column{ratio},
		},
		{
			Name: "generator", Title: "The generators' own plans over those of HEFT, on the graphs by which their weights were chosen", By: []string{"generator"}, Runs: "run",
			Columns: []study.Column{{Title: "× HEFT", Metric: "ratio", Format: three}},
			Notes:   []string{"hopeful: on larger and denser graphs than the others."},
		},
		{
			Name: "optimum", Title: "Distance to the optimum, graphs of 6 to 12 tasks", By: []string{"policy"}, Order: order,
			Columns: []study.Column{
				{Title: "above the optimum %", Metric: "gap"}, {Title: "optimal", Metric: "optimal", Format: study.Share, Bare: true},
				{Title: "worst %", Metric: "gap", Stat: study.Maximum, Bare: true},
			},
		},
		{
			Name: "pcc", Title: "Correlation of the distance of random plans to a leader (SPD) with their finish time gap (FTG)", By: []string{"leader", "family", "tasks", "GPUs"}, Order: order,
			Columns: []study.Column{{Title: "PCC", Metric: "pcc", Format: study.Fixed(2), Paper: func(l map[string]string) string {
				if l["leader"] != "best of the sample" {
					return ""
				}
				// Over the published sizes, on busy machines or, degree-1, on idle ones, as the families here have.
				return map[string]string{
					"alibaba 50": "0.32–0.53", "degree-1 50": "0.24–0.53", "degree-3 50": "0.39–0.55",
					"alibaba 500": "0.37–0.52", "degree-1 500": "0.38–0.46", "degree-3 500": "0.36–0.48",
				}[l["family"]+" "+l["GPUs"]]
			}}},
		},
		{
			Name: "b", Title: "Sensitivity to the spiral's shape b: makespan over that of HEFT, 200 tasks, 50 GPUs", By: []string{"policy", "b"}, Order: order,
			Columns: []study.Column{{Title: "× HEFT", Metric: "ratio", Stat: study.GeometricMean, Format: three}},
		},
		{
			Name: "times", Title: "Time of planning with the budget by size, and plans evaluated in a second (machine)", By: []string{"tasks", "GPUs"},
			Columns: []study.Column{
				second("heft s", "heft"), second("woa s", "woa"), second("rtgs s", "rtgs"), second("worl-rtgs s", "worl-rtgs"),
				second("evaluations/s", "evaluations"), second("plain loop/s", "plain"), second("moves/s", "moves"),
			},
		},
	}
	if p.Data == "" {
		return all
	}
	return append(all, study.Table{
		Name: "real", Title: "Recorded jobs of Alibaba's cluster-trace-v2018 on 50 GPUs", From: "real", By: []string{"kind", "policy"}, Order: order,
		Columns: []study.Column{ratio, versus(plan.NoisyPolicy), versus("woa")},
		Notes:   []string{"job = a job of the most tasks as it is; instances = the same with up to 8 instances of a task as tasks; merged = jobs submitted one after the other, 300 tasks or more as one graph. What tasks send is drawn: the trace does not say."},
	}, study.Table{
		Name: "real-graphs", Title: "The recorded graphs", By: []string{"kind"}, Order: order,
		Columns: []study.Column{
			{Title: "tasks, least", Metric: "tasks", Stat: study.Minimum, Bare: true}, {Title: "mean", Metric: "tasks", Bare: true},
			{Title: "most", Metric: "tasks", Stat: study.Maximum, Bare: true}, {Title: "edges, mean", Metric: "edges", Bare: true},
		},
	}, study.Table{
		Name: "real-six", Title: "Average ranks of the six on recorded jobs", By: []string{"policy"}, Order: order,
		Columns: []study.Column{rank},
	})
}

// studentized holds the upper 5 % points of the studentized range divided by √2 for 2, 3, … methods: Demšar, JMLR 7, 2006,
// table 5, continued.
var studentized = []float64{1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164, 3.219, 3.268, 3.313, 3.354, 3.391, 3.426, 3.458, 3.489}

// nemenyi returns the critical difference between average ranks of k methods on n graphs, at 5 %.
func nemenyi(k, n int) float64 {
	return studentized[k-2] * math.Sqrt(float64(k*(k+1))/float64(6*n))
}

// notes returns sentences on how to read the tables.
func (s *settings) notes(study.Plan) []string {
	all, classes := 0, map[string]int{}
	for _, z := range s.Sizes {
		n := len(s.Families) * z.Graphs
		all += n
		classes[z.class()] += n
	}
	var parts []string
	for _, class := range []string{"small", "medium", "large"} {
		if n := classes[class]; n > 0 {
			parts = append(parts, fmt.Sprintf("%.2f (%s, %d)", nemenyi(len(sixPlanners), n), class, n))
		}
	}
	return []string{
		fmt.Sprintf("Ranks: by the Nemenyi test at 5 %%, two of the six planners differ if their average ranks are more than %.2f apart on all %d graphs, %s.",
			nemenyi(len(sixPlanners), all), all, strings.Join(parts, ", ")),
		"All searches of a graph, and heft-noise, make as many plans.",
		"The paper's baselines are queue schedulers adapted in ways that are not published, and the data behind its makespans is not public: its figures stand beside ours for their direction only.",
		"eft-index: processors by a rule that knows of no transfers, timed with them.",
	}
}

// claims returns the paper's figures, each with the place of ours.
func (s *settings) claims(study.Plan) []study.Claim {
	line := func(policy string) map[string]string { return map[string]string{"policy": policy} }
	return []study.Claim{
		{What: "WORL-RTGS-like vs as many noisy plans of HEFT, from random", Paper: "–", Table: "all", Line: line("worl-rtgs"), Column: "vs heft-noise"},
		{What: "… from HEFT's plan", Paper: "–", Table: "all", Line: line("worl-rtgs+heft"), Column: "vs heft-noise"},
		{What: "whales in rank space (ours) vs the same, from random orders", Paper: "–", Table: "all", Line: line("worl-ranks"), Column: "vs heft-noise"},
		{What: "… from HEFT's plan", Paper: "–", Table: "all", Line: line("worl-ranks+heft"), Column: "vs heft-noise"},
		{What: "… vs as many plans drawn anew in the same ways", Paper: "–", Table: "whales", Line: line("worl-ranks+heft"), Column: "vs " + stillRanks},
		{What: "WORL-RTGS-like vs HEFT with insertion, from random plans", Paper: "–", Table: "all", Line: line("worl-rtgs"), Column: "vs heft"},
		{What: "against plain whale optimisation", Paper: "better, no figure", Table: "rivals", Line: line("worl-rtgs"), Column: "vs woa"},
		{What: "against RTGS with the greedy generator", Paper: "better, no figure", Table: "rivals", Line: line("worl-rtgs"), Column: "vs rtgs"},
		{What: "against DRAS, here DRAS-like", Paper: "−2.2 % to −16.0 % by set", Table: "rivals", Line: line("worl-rtgs"), Column: "vs dras-like"},
		{What: "distance to the optimum on small graphs, %", Paper: "–", Table: "optimum", Line: line("worl-rtgs"), Column: "above the optimum %"},
		{What: "spread of makespans over seeds, %", Paper: "improved, no figure", Table: "stability", Line: line("worl-rtgs"), Column: "spread %"},
		{What: "the same of plain whale optimisation, %", Paper: "–", Table: "stability", Line: line("woa"), Column: "spread %"},
		{What: "average rank among six", Paper: "1.485 of 6 methods", Table: "six", Line: line("worl-rtgs"), Column: "rank"},
	}
}

// figures returns the drawings of the report.
func (s *settings) figures(study.Plan) []study.Figure {
	ours := []string{"worl-ranks", "worl-ranks+heft", "worl-rtgs", "worl-rtgs+heft"}
	return []study.Figure{
		{Name: "makespan", Title: "Makespan over that of HEFT", X: "× HEFT", Kind: study.Bars, Ours: ours, Sorted: true, Series: func(r *study.Results) []study.Series {
			return r.Bars("all", "× HEFT", func(l map[string]string) bool { return l["policy"] != "random" })
		}},
		{Name: "optimum", Title: "Distance to the optimum", X: "%", Kind: study.Bars, Ours: ours, Sorted: true, Series: func(r *study.Results) []study.Series {
			return r.Bars("optimum", "above the optimum %", func(l map[string]string) bool { return l["policy"] != "random" })
		}},
		{Name: "b", Title: "Sensitivity to b", X: "b", Y: "× HEFT", Ours: ours, Series: func(r *study.Results) []study.Series { return r.Curves("b", "× HEFT", "b") }},
	}
}
