package topdrl

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/experiments/study"
	"clustergym/simulator/policyname"
)

// headline is the only figure that the paper publishes.
const headline = "up to +47 %"

// The titles of columns that claims name.
const (
	againstIt = "%s vs it (%%)"
	ofBest    = "of headroom (%)"
)

func one(v float64) string { return fmt.Sprintf("%.1f", v) }

// reference returns the policy that the others of a stage are compared with.
func (st *stage) reference() string {
	if st.Preempt {
		return stops
	}
	return stronger
}

// against returns a column with the difference of each policy to the reference.
func (st *stage) against(metric string) study.Column {
	return study.Column{
		Title: "vs " + strings.TrimSuffix(st.reference(), " + closest-b") + " (%)", Metric: metric, Stat: study.Percent,
		Versus: map[string]string{"policy": st.reference()}, Format: study.Signed,
	}
}

// first returns a column with the difference of the stage's first agent to each policy.
func (st *stage) first(metric string) study.Column {
	a := st.Agents[0]
	return study.Column{Title: fmt.Sprintf(againstIt, a), Metric: metric, Stat: study.Percent, Versus: map[string]string{"policy": a}, Turned: true, Format: study.Signed}
}

// headroom returns a column with the share of the way from the reference to the best schedule in hindsight. metric is higher where
// it is better.
func (st *stage) headroom(metric string) study.Column {
	return study.Column{
		Title: ofBest, Metric: metric, Stat: study.Behind, Format: one, Bare: true,
		Versus: map[string]string{"policy": st.reference()}, Start: map[string]string{"policy": best},
	}
}

// order returns the order of policies in the tables of a stage.
func (st *stage) order() map[string][]string {
	all := slices.Clone(st.Agents)
	for _, t := range st.searches() {
		all = append(all, t.name, policyname.Slots(t.name))
	}
	for _, r := range sixBaselines() {
		all = append(all, r.name)
	}
	all = append(all, "fifo"+learned)
	for _, r := range skipping() {
		all = append(all, r.name)
	}
	all = append(all, "sjf+skip"+learned)
	all = append(all, others...)
	all = append(all, stoppers...)
	all = append(all, stoppersInSlots...)
	for _, name := range foreseen {
		all = append(all, name+forecasting)
	}
	return map[string][]string{"policy": append(all, best, bestOrder)}
}

// tables returns the tables of the report.
func (s *settings) tables(study.Plan) []study.Table {
	three := study.Fixed(3)
	var all []study.Table
	for i := range s.Stages {
		st := &s.Stages[i]
		variant := func(l map[string]string) bool {
			return slices.ContainsFunc(st.Agents, func(a string) bool { return strings.HasPrefix(l["policy"], a+" + ") })
		}
		of := func(name, title string, columns []study.Column, notes ...string) study.Table {
			return study.Table{
				Name: name + "-" + st.Name, Title: st.Name + ": " + title, From: "play", Where: map[string]string{"stage": st.Name}, By: []string{"policy"}, Order: st.order(),
				Keep: func(l map[string]string) bool { return !variant(l) }, Columns: columns, Notes: notes,
			}
		}
		all = append(all,
			of("throughput", "jobs finished per hour while jobs arrive, on held-out windows", []study.Column{
				{Title: "jobs/h", Metric: "throughput_jobs_per_h"}, st.against("throughput_jobs_per_h"), st.headroom("throughput_jobs_per_h"), st.first("throughput_jobs_per_h"),
			}),
			of("jct", "completion time (JCT) on the same windows", []study.Column{
				{Title: "JCT (h)", Metric: "jct_h"}, st.against("jct_h"), st.headroom("minus_jct_h"), st.first("jct_h"),
			}),
			of("rest", "the tail, makespan, communication cost and work on the same windows", []study.Column{
				{Title: "p99 JCT (h)", Metric: "jct_p99_h", Bare: true}, {Title: "makespan (h)", Metric: "makespan_h", Bare: true}, {Title: "comm. cost", Metric: "comm_cost", Format: three, Bare: true},
				st.first("comm_cost"), {Title: "running jobs", Metric: "running_jobs", Bare: true}, {Title: "work finished", Metric: "finished_work_share", Format: study.Share, Bare: true},
			}))
		if st.Placed {
			all = append(all, study.Table{
				Name: "variants-" + st.Name, From: "play", Where: map[string]string{"stage": st.Name}, By: []string{"policy"}, Keep: variant,
				Title: st.Name + ": the first agent with another placement than closest-b, with which it was trained",
				Columns: []study.Column{
					{Title: "jobs/h", Metric: "throughput_jobs_per_h", Bare: true}, {Title: "JCT (h)", Metric: "jct_h", Bare: true},
					{Title: "comm. cost", Metric: "comm_cost", Format: three, Bare: true}, {Title: "closeness", Metric: "closeness", Format: three, Bare: true}, st.first("jct_h"),
				},
			})
		}
	}
	vs := func(agent, metric, what string) study.Column {
		return study.Column{Title: what, Metric: metric, Stat: study.Percent, Versus: map[string]string{"policy": agent}, Turned: true, Format: study.Signed}
	}
	six := sixBaselines()
	beaten := study.Table{
		Name: "paper", From: "play", By: []string{"stage", "policy"},
		Title: "Throughput of agents against six baselines of the precursor, which stand for the six that the paper does not name",
		Keep: func(l map[string]string) bool {
			if slices.ContainsFunc(s.Stages, func(st stage) bool { return st.Preempt && st.Name == l["stage"] }) {
				return false
			}
			return l["policy"] == stronger || slices.ContainsFunc(six, func(r rule) bool { return r.name == l["policy"] })
		},
		Columns: []study.Column{vs("ppo", "throughput_jobs_per_h", "ppo vs it (%)"), vs("clone", "throughput_jobs_per_h", "clone vs it (%)"), {Title: "jobs/h", Metric: "throughput_jobs_per_h", Bare: true}},
	}
	return append([]study.Table{beaten}, append(all,
		study.Table{
			Name: "gap", By: []string{"cluster", "placement"},
			Title: "Communication cost above that of the best placement, in random states, gangs of 2 to 8 GPUs",
			Columns: []study.Column{
				{Title: "excess (%)", Metric: "excess_percent"}, {Title: "optimal", Metric: "optimal_share", Format: study.Share, Bare: true},
				{Title: "worst (%)", Metric: "excess_percent", Stat: study.Maximum, Bare: true},
			},
		},
		study.Table{
			Name: "pick", By: []string{"policy"}, Order: map[string][]string{"policy": slices.Concat(pickers, []string{"optimal", "rack"}, gapPlacements)},
			Title: "GPUPick-v1: an agent picks the GPUs one by one, jobs start in order of submit",
			Columns: []study.Column{
				{Title: "closeness", Metric: "closeness", Format: three}, {Title: "comm. cost", Metric: "comm_cost", Format: three},
				vs(sharing, "comm_cost", "shared vs it, cost (%)"), vs(sharing, "jct_h", "shared vs it, JCT (%)"),
			},
			Notes: []string{
				"closeness: per job, 0 for jobs of one GPU, where there is nothing to win. optimal and rack place a whole gang at once; optimal is the",
				"cheapest place of each gang, which does not see what it leaves to later ones.",
			},
		},
	)...)
}

// claims compares the agent with the paper's reward with the six baselines, it and the one that imitates with the stronger one, and the
// learned picks with closest-b.
func (s *settings) claims(study.Plan) []study.Claim {
	var all []study.Claim
	for i := range s.Stages {
		st := &s.Stages[i]
		if st.Preempt {
			all = append(all, study.Claim{
				What: "JCT, " + st.Agents[0] + " against " + stops + " (" + st.Name + ")", Paper: "–", Table: "jct-" + st.Name, Line: map[string]string{"policy": st.Agents[0]},
				Column: st.against("jct_h").Title,
			})
			continue
		}
		for _, a := range []string{"ppo", "clone"} {
			if !slices.Contains(st.Agents, a) {
				continue
			}
			add := func(policy, paper string) {
				all = append(all, study.Claim{
					What: "throughput, " + a + " against " + policy + " (" + st.Name + ")", Paper: paper, Table: "paper", Line: map[string]string{"stage": st.Name, "policy": policy},
					Column: fmt.Sprintf(againstIt, a),
				})
			}
			if a == "ppo" {
				for _, r := range sixBaselines() {
					add(r.name, headline)
				}
			}
			add(stronger, "–")
		}
	}
	return append(all, study.Claim{
		What: "communication cost, learned picks against closest-b", Paper: "–", Table: "pick", Line: map[string]string{"policy": "closest-b"}, Column: "shared vs it, cost (%)",
	})
}

// notes returns sentences on how to read the tables.
func (s *settings) notes(study.Plan) []string {
	return []string{
		"SELECTOR + PLACEMENT takes the job of its choice and lets all wait for it if it does not fit, as the precursor's do;",
		"SELECTOR+skip passes over what does not fit. Policies without + PLACEMENT place with closest-b. All know run times,",
		"except those called forecast, which have the shipped predictor's (history). The paper names none of its six baselines",
		"and prints no table in public: the six here are the precursor's, fifo and sjf with its three placements.",
		fmt.Sprintf("hindsight: the best of %d noisy schedules of each window, by throughput and by JCT, with all jobs known: SJF, smallest area", s.Hindsight.Noisy),
		"and the tuned rule; orders: those of SJF and area alone. of headroom: the share of the way from the reference to hindsight.",
		"srtf and srsf stop running jobs, free of cost except in stages with stops, so that they can be better than hindsight.",
		"hold, order-alone, index and index-width are tuned on the training part.",
		"Checkpoints are chosen on validation windows, for tables of throughput by throughput and for the others by JCT.",
		"Intervals are 95 % ones over windows and, crossed, trainings.",
	}
}

// figures returns the drawings of the report.
func (s *settings) figures(study.Plan) []study.Figure {
	var all []study.Figure
	for i := range s.Stages {
		st := &s.Stages[i]
		for _, x := range []struct {
			table, title, metric string
			higher               bool
		}{{"throughput", "Throughput", "throughput_jobs_per_h", true}, {"jct", "JCT", "jct_h", false}} {
			column := st.against(x.metric)
			all = append(all, study.Figure{
				Name: x.table + "-" + st.Name, Title: x.title + " " + column.Title + ": " + st.Name, X: "difference in %, 95 % interval", Kind: study.Bars, Zero: true,
				Ours: st.Agents, Sorted: true, Higher: x.higher,
				Series: func(r *study.Results) []study.Series { return r.Bars(x.table+"-"+st.Name, column.Title, nil) },
			})
		}
	}
	return append(all, study.Figure{
		Name: "gap", Title: "Placements against the best one", X: "excess communication cost in %", Kind: study.Bars, Zero: true, Ours: []string{"closest-b"}, Sorted: true,
		Series: func(r *study.Results) []study.Series { return r.Bars("gap", "excess (%)", nil) },
	}, study.Figure{
		Name: "pick", Title: "GPUPick-v1: communication cost of the GPUs picked", X: "mean communication cost", Kind: study.Bars, Ours: pickers, Sorted: true,
		Series: func(r *study.Results) []study.Series { return r.Bars("pick", "comm. cost", nil) },
	})
}
