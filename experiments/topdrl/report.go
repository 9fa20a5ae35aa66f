package topdrl

import (
	"slices"
	"strings"

	"clustergym/experiments/study"
)

// headline is the only figure that the paper publishes.
const headline = "up to +47 %"

// versus returns a column that compares an agent with the line's policy.
func versus(agent, metric, what string, higher bool) study.Column {
	return study.Column{Title: agent + " vs it, " + what, Metric: metric, Stat: study.Percent, Versus: map[string]string{"policy": "topdrl-" + agent}, Turned: true, Higher: higher}
}

// lineOrder returns the order of stages and policies in tables.
func lineOrder(s *settings) map[string][]string {
	var stages, policies []string
	for _, st := range s.Stages {
		stages = append(stages, st.Name)
	}
	policies = append(policies, "topdrl-ppo", "topdrl-ddqn")
	for _, admission := range []string{"strict", "skip"} {
		for _, sel := range selectors {
			for _, pl := range placements {
				policies = append(policies, newRule(sel.name, sel.order, admission, pl).name)
			}
		}
	}
	return map[string][]string{"stage": stages, "policy": policies}
}

// tables returns the tables of the report.
func (s *settings) tables() []study.Table {
	order := lineOrder(s)
	main := func(l map[string]string) bool {
		return !strings.HasPrefix(l["policy"], "topdrl-") || !strings.Contains(l["policy"], " + ")
	}
	three := study.Fixed(3)
	return []study.Table{
		{
			Name: "throughput", From: "play", By: []string{"stage", "policy"}, Order: order, Keep: main,
			Title: "Throughput: jobs finished per hour while jobs arrive, on held-out windows",
			Columns: []study.Column{
				{Title: "jobs/h", Metric: "throughput_jobs_per_h"},
				versus("ppo", "throughput_jobs_per_h", "throughput", true),
				versus("ddqn", "throughput_jobs_per_h", "throughput", true),
				{Title: "ppo vs it, by window", Metric: "throughput_jobs_per_h", Stat: study.PercentEach, Versus: map[string]string{"policy": "topdrl-ppo"}, Turned: true, Higher: true, Hidden: true},
				{Title: "work finished", Metric: "finished_work_share", Format: study.Share, Hidden: true},
				{Title: "running jobs", Metric: "running_jobs", Hidden: true},
			},
			Notes: []string{
				"vs it: difference of the sums over windows; by window: mean of the windows' own differences, which matters where windows differ by a",
				"factor of a hundred, as with philly's jobs.",
				"work finished: GPU-hours of the jobs finished by the last submit, as a share of all GPU-hours until then.",
				"running jobs: mean until the last finish, the precursor's measure of throughput; slower jobs raise it, too.",
			},
		},
		{
			Name: "finish", From: "play", By: []string{"stage", "policy"}, Order: order, Keep: main,
			Title: "Finish time (JCT), makespan and communication cost on the same windows",
			Columns: study.Hide([]study.Column{
				{Title: "JCT (h)", Metric: "jct_h"}, versus("ppo", "jct_h", "JCT", false), versus("ddqn", "jct_h", "JCT", false),
				{Title: "makespan (h)", Metric: "makespan_h"}, versus("ppo", "makespan_h", "makespan", false),
				{Title: "comm. cost", Metric: "comm_cost", Format: three}, versus("ppo", "comm_cost", "comm. cost", false),
			}, "makespan (h)", "ppo vs it, makespan", "comm. cost", "ppo vs it, comm. cost"),
		},
		{
			Name: "variants", From: "play", By: []string{"stage", "policy"}, Order: order,
			Keep:  func(l map[string]string) bool { return strings.HasPrefix(l["policy"], "topdrl-") && !main(l) },
			Title: "The trained agents with another placement than closest-b, with which they were trained",
			Columns: []study.Column{
				{Title: "jobs/h", Metric: "throughput_jobs_per_h"}, {Title: "JCT (h)", Metric: "jct_h"},
				{Title: "comm. cost", Metric: "comm_cost", Format: three}, {Title: "closeness", Metric: "closeness", Format: three, Hidden: true},
				versus("ppo", "jct_h", "JCT", false),
			},
			Notes: []string{"closeness: mean of 1 − (cost − best)/(worst − best) over gangs of two GPUs and more. topdrl-ppo vs it: with closest-b."},
		},
		{
			Name: "gap", By: []string{"cluster", "placement"},
			Title: "Communication cost above that of the best placement, in random states, gangs of 2 to 8 GPUs",
			Columns: []study.Column{
				{Title: "excess (%)", Metric: "excess_percent"}, {Title: "optimal", Metric: "optimal_share", Format: study.Share, Bare: true},
				{Title: "worst (%)", Metric: "excess_percent", Stat: study.Maximum, Bare: true},
			},
		},
		{
			Name: "pick", By: []string{"policy"}, Order: map[string][]string{"policy": slices.Concat([]string{"gpupick-ppo", "optimal"}, gapPlacements)},
			Title: "GPUPick-v1: PPO picks the GPUs one by one, jobs start in order of submit",
			Columns: []study.Column{
				{Title: "closeness", Metric: "closeness", Format: three}, {Title: "comm. cost", Metric: "comm_cost", Format: three},
				{Title: "ppo vs it, cost", Metric: "comm_cost", Stat: study.Percent, Versus: map[string]string{"policy": "gpupick-ppo"}, Turned: true},
				{Title: "JCT (h)", Metric: "jct_h"},
				{Title: "ppo vs it, JCT", Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"policy": "gpupick-ppo"}, Turned: true, Hidden: true},
				{Title: "makespan (h)", Metric: "makespan_h", Hidden: true},
			},
			Notes: []string{"closeness: per job, 0 for jobs of one GPU, where there is nothing to win."},
		},
	}
}

// claims compares each agent with the six baselines, and with the best of the rules that skip.
func (s *settings) claims() []study.Claim {
	var all []study.Claim
	for i, st := range s.Stages {
		for _, r := range sixBaselines("strict") {
			if i > 0 && r.placement != "first-available" {
				continue
			}
			for _, agent := range st.agents() {
				all = append(all, study.Claim{
					What: "throughput, topdrl-" + agent + " against " + r.name + " (" + st.Name + ")", Paper: headline,
					Table: "throughput", Line: map[string]string{"stage": st.Name, "policy": r.name}, Column: agent + " vs it, throughput",
				})
			}
		}
		hard := newRule("sjf", "sjf", "skip", "closest-b")
		for _, agent := range st.agents() {
			all = append(all, study.Claim{
				What: "throughput, topdrl-" + agent + " against " + hard.name + " (" + st.Name + ")", Paper: "–",
				Table: "throughput", Line: map[string]string{"stage": st.Name, "policy": hard.name}, Column: agent + " vs it, throughput",
			})
		}
	}
	return all
}

// notes returns sentences on how to read the tables.
func notes(study.Plan) []string {
	return []string{
		"SELECTOR + PLACEMENT takes the job of its choice and lets all wait for it if it does not fit, as the precursor's do;",
		"SELECTOR+skip passes over what does not fit. topdrl-ppo and topdrl-ddqn place with closest-b. A difference is that of",
		"sums over the windows, with a 95 % interval over windows and, crossed, trainings. The paper names none of its six",
		"baselines and prints no table in public: the six here are the precursor's, fifo and sjf with its three placements.",
	}
}

// figures returns the drawings of the report.
func (s *settings) figures() []study.Figure {
	var all []study.Figure
	for _, st := range s.Stages {
		here := func(l map[string]string) bool { return l["stage"] == st.Name }
		all = append(all, study.Figure{
			Name: "throughput-" + st.Name, Title: "Throughput: " + st.Name, X: "jobs finished per hour", Kind: study.Bars, Zero: true,
			Ours: []string{"topdrl-ppo", "topdrl-ddqn"}, Sorted: true, Higher: true,
			Series: func(r *study.Results) []study.Series { return r.Bars("throughput", "jobs/h", here) },
		}, study.Figure{
			Name: "cost-" + st.Name, Ours: []string{"topdrl"}, Title: "Communication cost and JCT: " + st.Name, X: "mean communication cost", Y: "mean JCT (h)", Kind: study.Dots,
			Series: func(r *study.Results) []study.Series {
				groups := []study.Series{{Name: "topdrl"}, {Name: "strict"}, {Name: "skip"}}
				for _, l := range r.Lines("finish") {
					if !here(l.Labels) {
						continue
					}
					jct, _, _ := r.Find("finish", l.Labels, "JCT (h)")
					cost, _, _ := r.Find("finish", l.Labels, "comm. cost")
					k := 1
					switch {
					case strings.HasPrefix(l.Labels["policy"], "topdrl"):
						k = 0
					case strings.Contains(l.Labels["policy"], "+skip"):
						k = 2
					}
					groups[k].Points = append(groups[k].Points, study.Point{X: cost.Value, Y: jct.Value, Low: jct.Low, High: jct.High})
				}
				return groups
			},
		})
	}
	return append(all, study.Figure{
		Name: "gap", Title: "Placements against the best one", X: "excess communication cost in %", Kind: study.Bars, Zero: true, Ours: []string{"closest-b"}, Sorted: true,
		Series: func(r *study.Results) []study.Series { return r.Bars("gap", "excess (%)", nil) },
	}, study.Figure{
		Name: "pick", Title: "GPUPick-v1: closeness of the GPUs picked", X: "closeness", Kind: study.Bars, Zero: true, Ours: []string{"gpupick-ppo"}, Sorted: true, Higher: true,
		Series: func(r *study.Results) []study.Series { return r.Bars("pick", "closeness", nil) },
	})
}
