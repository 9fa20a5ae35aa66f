package worlrtgs

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"clustergym/env/dag"
	"clustergym/experiments/plan"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
)

// worlTimes measures how long planning takes, and how many plans are evaluated in a second.
func worlTimes(ctx context.Context, b *study.Bench, size [2]int) ([]study.Row, error) {
	q, err := plan.Generate("degree-3", size[0], size[1], 0, true)
	if err != nil {
		return nil, err
	}
	var rows []study.Row
	labels := map[string]string{"tasks": fmt.Sprint(size[0]), "GPUs": fmt.Sprint(size[1])}
	row := func(metric string, v float64) {
		rows = append(rows, study.Row{Table: "times", Labels: labels, Metric: "timing_" + metric, Value: v})
	}
	auto := worlSettings{}
	for _, p := range worlPlanners {
		if p.name != "heft" && p.name != "woa" && p.name != "rtgs" && p.name != "worl-rtgs" {
			continue
		}
		begin := time.Now()
		if _, _, err := p.run(ctx, q, &auto, 1, 1, worlLearnt{generator: plan.GeneratorWeights}, b.Workers); err != nil {
			return nil, err
		}
		row(p.name, time.Since(begin).Seconds())
	}
	src := rng.Stream(1, "worl-rtgs/times")
	proc := make([]int32, q.Tasks())
	for i := range proc {
		proc[i] = int32(src.IntN(q.Procs()))
	}
	e := dag.NewEvaluator(q, nil)
	row("evaluations", perSecond(func() { e.Makespan(proc) }))
	plain := newPlainLoop(q)
	if got, want := plain.makespan(proc), e.Makespan(proc); math.Abs(got-want) > 1e-9*want {
		return nil, fmt.Errorf("the plain loop finds %v, the evaluator %v", got, want)
	}
	row("plain", perSecond(func() { plain.makespan(proc) }))
	e.Makespan(proc)
	row("moves", perSecond(func() { e.Move(int32(src.IntN(q.Tasks())), int32(src.IntN(q.Procs()))) }))
	return rows, nil
}

// perSecond is how often fn is done in a second, over about a fifth of one.
func perSecond(fn func()) float64 {
	for n := 1; ; n *= 2 {
		begin := time.Now()
		for range n {
			fn()
		}
		if d := time.Since(begin); d > 200*time.Millisecond {
			return float64(n) / d.Seconds()
		}
	}
}

// plainLoop evaluates plans as one would write it down first, with maps of tasks: what the evaluator is measured
// against.
type plainLoop struct {
	q       *dag.Problem
	parents map[int][]dag.Link
	order   []int
}

func newPlainLoop(q *dag.Problem) *plainLoop {
	l := &plainLoop{q: q, parents: map[int][]dag.Link{}}
	for _, i := range q.Graph.Order() {
		l.order = append(l.order, int(i))
		l.parents[int(i)] = q.Graph.Preds(i)
	}
	return l
}

func (l *plainLoop) makespan(proc []int32) float64 {
	finish, avail := map[int]float64{}, map[int32]float64{}
	makespan := 0.0
	for _, i := range l.order {
		start := avail[proc[i]]
		for _, p := range l.parents[i] {
			start = max(start, finish[int(p.Task)]+p.Bytes/l.q.Platform.Bandwidth(int(proc[p.Task]), int(proc[i])))
		}
		finish[i] = start + l.q.Exec(int32(i), proc[i])
		avail[proc[i]] = finish[i]
		makespan = max(makespan, finish[i])
	}
	return makespan
}

// worlTables are what the rows come to.
func worlTables(p study.Plan) []study.Table {
	heft, three := map[string]string{"policy": "heft"}, study.Fixed(3)
	order := map[string][]string{
		"policy": worlPlannerNames(), "family": plan.FamilyNames(), "class": {"small", "medium", "large"}, "kind": worlRealKinds,
	}
	versus := func(policy string) study.Column {
		return study.Column{Title: "vs " + policy, Metric: "makespan_s", Stat: study.PercentEach, Versus: map[string]string{"policy": policy}}
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
		return !slices.ContainsFunc(worlPlanners, func(p worlPlanner) bool { return p.part && p.name == l["policy"] })
	}
	tables := []study.Table{
		{
			Name: "all", Title: "Makespan over that of HEFT with insertion, all graphs", From: "plans", By: []string{"policy"}, Order: order, Keep: whole,
			Columns: []study.Column{
				ratio, versus("heft"), versus("woa"), versus("rtgs"), versus("dras-like"),
				{Title: "better than HEFT", Metric: "makespan_s", Stat: study.Wins, Versus: heft, Bare: true},
			},
			Notes: []string{"vs: mean over graphs of the difference in percent, negative = shorter, on the graphs that both planned; +heft = begins with HEFT's plan, at most sizes only."},
		},
		{
			Name: "sizes", Title: "Makespan by size", From: "plans", By: []string{"tasks", "GPUs", "policy"}, Order: order,
			Columns: []study.Column{ratio, versus("heft"), {Title: "makespan s", Metric: "makespan_s"}},
		},
		{
			Name: "families", Title: "Makespan over that of HEFT with insertion, by kind of graph", From: "plans", By: []string{"family", "policy"}, Order: order, Keep: whole,
			Columns: []study.Column{ratio},
		},
		{
			Name: "parts", Title: "What the parts of the search do: where every planner planned", From: "plans-all", By: []string{"policy"}, Order: order,
			Columns: []study.Column{ratio, versus("worl-rtgs"), versus("worl-rtgs+heft")},
			Notes:   []string{"worl-rtgs-hopes places no task at random: its plans differ by their hopes alone; +moves = also moves single tasks of the best plan (not the paper's)."},
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
			Name: "ranks", Title: "Average ranks of all planners, where every planner planned", From: "plans-ranks", By: []string{"policy"}, Order: order,
			Columns: []study.Column{rank},
		},
		{
			Name: "stability", Title: "Stability: longest less shortest makespan over the seeds, in percent of the mean", From: "plans-spread", By: []string{"policy"}, Order: order,
			Columns: []study.Column{{Title: "spread %", Metric: "spread"}, {Title: "worst graph %", Metric: "spread", Stat: study.Maximum, Bare: true}},
		},
		{
			Name: "trainings", Title: "WORL-RTGS-like by its generator's training, one for each seed: makespan over that of HEFT, all graphs", From: "plans",
			Where: map[string]string{"policy": "worl-rtgs"}, By: []string{"seed"}, Runs: "run", Columns: []study.Column{ratio},
		},
		{
			Name: "generator", Title: "The generators' own plans over those of HEFT, on the graphs by which their weights were chosen", By: []string{"seed"}, Runs: "run",
			Columns: []study.Column{{Title: "× HEFT", Metric: "ratio", Format: three}},
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
				switch {
				case l["leader"] != "best of the sample":
					return ""
				case l["family"] == "alibaba" && l["GPUs"] == "50":
					return "0.32–0.53"
				case l["family"] == "alibaba":
					return "0.37–0.52"
				case l["family"] == "degree-1" && l["GPUs"] == "50":
					return "0.39–0.55"
				case l["GPUs"] == "50":
					return "0.39–0.55"
				}
				return "0.36–0.48"
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
		return tables
	}
	return append(tables, study.Table{
		Name: "real", Title: "Recorded jobs of Alibaba's cluster-trace-v2018 on 50 GPUs", From: "real", By: []string{"kind", "policy"}, Order: order,
		Columns: []study.Column{ratio, versus("heft"), versus("woa"), versus("rtgs"), {Title: "makespan s", Metric: "makespan_s", Bare: true}},
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

// studentized are the upper 5 % points of the studentized range over √2, by number of methods from 2 (Demšar, JMLR 7,
// 2006, table 5, and on).
var studentized = []float64{1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164, 3.219, 3.268, 3.313, 3.354, 3.391, 3.426, 3.458, 3.489}

// nemenyi is the critical difference of average ranks of k methods on n graphs at 5 %.
func nemenyi(k, n int) float64 {
	return studentized[k-2] * math.Sqrt(float64(k*(k+1))/float64(6*n))
}

// worlNotes say how to read the tables.
func worlNotes(p study.Plan) []string {
	s, err := worlSettingsOf(p)
	if err != nil {
		return nil
	}
	all, every, classes := 0, 0, map[string]int{}
	for _, z := range s.Sizes {
		n := len(s.Families) * z.Graphs
		all += n
		classes[z.class()] += n
		if len(z.Without) == 0 {
			every += n
		}
	}
	var parts []string
	for _, class := range []string{"small", "medium", "large"} {
		if n := classes[class]; n > 0 {
			parts = append(parts, fmt.Sprintf("%.2f (%s, %d)", nemenyi(len(worlSix), n), class, n))
		}
	}
	return []string{
		fmt.Sprintf("Ranks: by the Nemenyi test at 5 %%, two of the six planners differ if their average ranks are more than %.2f apart on all %d graphs, %s; of all %d planners, %.2f on %d graphs.",
			nemenyi(len(worlSix), all), all, strings.Join(parts, ", "), len(worlPlanners), nemenyi(len(worlPlanners), every), every),
		"The paper's baselines are queue schedulers adapted in ways that are not published, and the data behind its makespans is not public: its figures stand beside ours for their direction only.",
		"eft-index: processors by a rule that knows of no transfers, timed with them.",
	}
}

// worlClaims are the paper's figures.
func worlClaims(study.Plan) []study.Claim {
	line := func(policy string) map[string]string { return map[string]string{"policy": policy} }
	return []study.Claim{
		{What: "WORL-RTGS-like against HEFT with insertion, without HEFT's plan", Paper: "–", Table: "all", Line: line("worl-rtgs"), Column: "vs heft"},
		{What: "… and with it", Paper: "–", Table: "all", Line: line("worl-rtgs+heft"), Column: "vs heft"},
		{What: "against plain whale optimisation", Paper: "better, no figure", Table: "all", Line: line("worl-rtgs"), Column: "vs woa"},
		{What: "against RTGS with the greedy generator", Paper: "better, no figure", Table: "all", Line: line("worl-rtgs"), Column: "vs rtgs"},
		{What: "against DRAS, here DRAS-like", Paper: "−2.2 % to −16.0 % by set", Table: "all", Line: line("worl-rtgs"), Column: "vs dras-like"},
		{What: "distance to the optimum on small graphs, %", Paper: "–", Table: "optimum", Line: line("worl-rtgs"), Column: "above the optimum %"},
		{What: "spread of makespans over seeds, %", Paper: "improved, no figure", Table: "stability", Line: line("worl-rtgs"), Column: "spread %"},
		{What: "the same of plain whale optimisation, %", Paper: "–", Table: "stability", Line: line("woa"), Column: "spread %"},
		{What: "average rank among six", Paper: "1.485 of 6 methods", Table: "six", Line: line("worl-rtgs"), Column: "rank"},
	}
}

// worlFigures are the drawings.
func worlFigures(study.Plan) []study.Figure {
	return []study.Figure{
		{Name: "makespan", Title: "Makespan over that of HEFT", X: "× HEFT", Kind: study.Bars, Series: func(r *study.Results) []study.Series {
			return r.Bars("all", "× HEFT", func(l map[string]string) bool { return l["policy"] != "random" })
		}},
		{Name: "optimum", Title: "Distance to the optimum", X: "%", Kind: study.Bars, Series: func(r *study.Results) []study.Series {
			return r.Bars("optimum", "above the optimum %", func(l map[string]string) bool { return l["policy"] != "random" })
		}},
		{Name: "b", Title: "Sensitivity to b", X: "b", Y: "× HEFT", Series: func(r *study.Results) []study.Series { return r.Curves("b", "× HEFT", "b") }},
	}
}
