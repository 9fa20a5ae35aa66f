package rltune

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/experiments/study"
)

// order returns the order of the values of labels.
func (s *settings) order() map[string][]string {
	var worlds []string
	for i := range s.Workloads {
		worlds = append(worlds, s.Workloads[i].Name)
	}
	policies := append([]string{learned, unplaced, filled}, handmade...)
	policies = append(append(policies, best), baseNames()...)
	return map[string][]string{"workload": worlds, "run times": rungs, "base": s.Agents, "policy": policies}
}

// versus returns a column that compares the line with another policy.
func versus(policy, metric string) study.Column {
	return study.Column{Title: "vs " + policy, Metric: metric, Stat: study.Percent, Versus: map[string]string{"policy": policy}}
}

// tables returns the tables of the report.
func (s *settings) tables(study.Plan) []study.Table {
	order, share, two := s.order(), study.Share, study.Fixed(2)
	bare := func(title, metric string, format func(float64) string) study.Column {
		return study.Column{Title: title, Metric: metric, Format: format, Bare: true}
	}
	others := versus(elsewhere, "wait_h")
	others.Bare = true
	by := []string{"workload", "base", "policy"}
	var all []study.Table
	for _, rung := range rungs {
		where := map[string]string{"run times": rung}
		known := "; run times " + rung
		all = append(all,
			study.Table{
				Name: "delay-" + rung, From: "play", Where: where, By: by, Order: order, Title: "Queueing delay on the test windows" + known,
				Columns: []study.Column{bare("wait (h)", "wait_h", two), versus(itself, "wait_h"), versus(best, "wait_h")},
				Notes:   []string{"base: the base policy itself, as RLTune compares. best base: the one of eleven with the least mean wait on the validation windows."},
			},
			study.Table{
				Name: "rivals-" + rung, From: "play", Where: where, By: by, Order: order, Title: "Queueing delay of the agent against rules by hand" + known,
				Keep:    func(l map[string]string) bool { return l["policy"] == learned || l["policy"] == filled },
				Columns: []study.Column{versus(easy, "wait_h"), versus(smallest, "wait_h"), others},
			},
			study.Table{
				Name: "jct-" + rung, From: "play", Where: where, By: by, Order: order, Title: "Job completion time on the test windows" + known,
				Columns: []study.Column{bare("JCT (h)", "jct_h", two), versus(itself, "jct_h"), versus(best, "jct_h")},
			},
			study.Table{
				Name: "used-" + rung, From: "play", Where: where, By: by, Order: order,
				Title:   "Utilisation on the test windows: GPU time over all GPUs until the last end" + known,
				Columns: []study.Column{bare("used", "used", share), versus(itself, "used"), versus(best, "used")},
				Notes:   []string{"Higher is better. In a window that ends with one long job, that job decides."},
			},
			study.Table{
				Name: "bases-" + rung, From: "bases", Where: where, By: []string{"workload", "policy"}, Order: order, Title: "The base policies on the test windows" + known,
				Columns: []study.Column{
					bare("wait (h)", "wait_h", two), versus(best, "wait_h"), bare("JCT (h)", "jct_h", two), bare("bounded slowdown", "bsld", two),
					bare("used", "used", share),
				},
				Notes: []string{"wfp3-coded: what RLTune's program calls wfp3. unicep, smallest and saf raise an error there."},
			},
			study.Table{
				Name: "validation-" + rung, From: "validation", Where: where, By: []string{"workload", "policy"}, Order: order,
				Title:   "The base policies on the validation windows, which choose the best base" + known,
				Columns: []study.Column{bare("wait (h)", "wait_h", two)},
			},
		)
	}
	return append(all, study.Table{
		Name: "jobs", By: []string{"workload"}, Order: order, Title: "The workloads",
		Columns: []study.Column{
			bare("jobs", "jobs", study.Fixed(0)), bare("GPUs of a job", "gpus", two), bare("mean run time (h)", "run_h", two), bare("median (h)", "median_h", two),
		},
	})
}

// figures returns the drawings of the report.
func (s *settings) figures(study.Plan) []study.Figure {
	var all []study.Figure
	for _, rung := range rungs {
		for i := range s.Workloads {
			w := s.Workloads[i].Name
			all = append(all, study.Figure{
				Name: "delay-" + rung + "-" + w, Title: "Queueing delay against the base: " + w + ", run times " + rung, X: "change in percent",
				Kind: study.Bars, Zero: true, Ours: []string{learned, filled}, Sorted: true,
				Series: func(r *study.Results) []study.Series {
					return r.Bars("delay-"+rung, "vs "+itself, func(l map[string]string) bool {
						return l["workload"] == w && slices.Contains([]string{learned, filled, easy, best}, l["policy"])
					})
				},
			})
		}
	}
	return all
}

// published are the figures of the paper, each the best of its experiments, and the tables that ours are in.
var published = []struct{ table, what, paper string }{
	{"delay", "queueing delay", "up to −81 %"}, {"jct", "JCT", "up to −70 %"}, {"used", "utilisation", "up to +20 %"},
}

// claims returns the paper's figures beside ours: the agent against its base, and against the best, on the first two bases that have agents.
func (s *settings) claims(p study.Plan) []study.Claim {
	worlds, _, err := s.given(p)
	if err != nil {
		return nil
	}
	var all []study.Claim
	for _, p := range published {
		for _, w := range worlds {
			for _, name := range s.Agents[:min(2, len(s.Agents))] {
				of := study.Claim{Table: p.table + "-" + rungs[0], Line: map[string]string{"workload": w.Name, "base": name, "policy": learned}}
				base, others := of, of
				base.What, base.Paper, base.Column = fmt.Sprintf("%s, %s: the agent against %s", p.what, w.Name, name), p.paper, "vs "+itself
				others.What, others.Paper, others.Column = fmt.Sprintf("%s, %s: the agent on %s against the best base", p.what, w.Name, name), "–", "vs "+best
				all = append(all, base, others)
			}
		}
	}
	return all
}

// notes returns sentences on how to read the tables.
func (s *settings) notes(p study.Plan) []string {
	all := []string{
		"The paper's figures are the best of all its traces, bases and metrics, each against the base whose queue the agent ranks; its tables by trace are not at hand.",
		"The machine is held to the authors' program job by job, row by row and programme by programme where its results are at hand; the published traces and trained agents are not.",
		"Everybody commits to a job: while it does not fit, nobody else starts, in any pool, but for EASY. skip, any nodes does not commit, spreads gangs at will, and is none of RLTune's rivals.",
		"run times exact: base policies know them, as in the authors' program. history: they are predicted from jobs that have ended. The agent's seven numbers hold no run time on either.",
		"agent: the integer programme places its jobs. agent, first way: the same network, jobs placed as the base policies are.",
	}
	if _, absent, err := s.given(p); err == nil && len(absent) > 0 {
		why := "there is no --data"
		if p.Data != "" {
			why = p.Data + " does not have them"
		}
		all = append(all, fmt.Sprintf("Left out: %s, as %s.", strings.Join(absent, ", "), why))
	}
	return all
}
