package asrpt

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/experiments/study"
)

// percent formats a share of one in percent without the unit.
func percent(v float64) string { return fmt.Sprintf("%.0f", 100*v) }

// versus returns the title of a difference in percent.
func versus(what string) string { return "vs " + what + ", %" }

// numbers formats settings as labels.
func numbers(list []float64) (all []string) {
	for _, v := range list {
		all = append(all, number(v))
	}
	return all
}

// tables returns the tables of the report.
func (s *settings) tables(study.Plan) []study.Table {
	var variants, rules, names []string
	for _, v := range s.parts() {
		variants = append(variants, v.name)
	}
	for _, w := range append([]waiting{{}}, s.Waits...) {
		rules = append(rules, w.String())
	}
	for _, l := range s.Logs {
		names = append(names, l.Name)
	}
	order := map[string][]string{
		"workload": append([]string{generated}, names...), "load": numbers(s.Loads), "scheduler": orderings(), "variant": variants,
		"predictor": named(), "error": numbers(s.Errors), "NIC": numbers(s.NICs), "placement": placements(), "waits": rules,
		"speed": numbers(s.Speeds), "stages": {"one", "several"},
	}
	two := study.Fixed(2)
	jct := study.Column{Title: "JCT (h)", Metric: "jct_h", Format: two}
	slow := study.Column{Title: "iteration / best", Metric: "slower", Format: two, Bare: true}
	against := func(label, value string) study.Column {
		return study.Column{Title: versus(value), Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{label: value}, Format: study.Signed}
	}
	ours := against("scheduler", aSRPT)
	bound := study.Column{Title: "× lower bound", Metric: "flow_bound", Format: two, Bare: true}
	recorded := func(l map[string]string) bool { return l["workload"] != generated }
	main := map[string]string{"workload": generated}
	bare := func(c study.Column) study.Column { // a long line has room for the interval of the difference only
		c.Bare = true
		return c
	}
	guided := func(l map[string]string) bool {
		return slices.Contains([]string{aSRPT, passing, byArea}, l["scheduler"])
	}
	// pair returns a table of the generated workloads, and one of the recorded if there are any.
	pair := func(name, title, from string, by []string, columns []study.Column, notes ...string) []study.Table {
		all := []study.Table{{Name: name, Title: title + " (generated jobs)", From: from, Where: main, By: by, Order: order, Columns: columns, Notes: notes}}
		if len(s.Logs) > 0 {
			own := slices.Clone(columns)
			if own[0].Title == jct.Title {
				own[0] = bare(own[0])
			}
			all = append(all, study.Table{
				Name: name + "-recorded", Title: title + " (recorded jobs)", From: from, By: append([]string{"workload"}, by...), Order: order, Columns: own, Keep: recorded,
			})
		}
		return all
	}
	guides := func(all []study.Table) []study.Table { // without the lines of schedulers that no virtual machine guides
		for i := range all {
			keep := all[i].Keep
			all[i].Keep = func(l map[string]string) bool { return guided(l) && (keep == nil || keep(l)) }
		}
		return all
	}
	all := slices.Concat(
		pair("loads", "Mean completion time, all placed by heaviest edge", "loads", []string{"load", "scheduler"}, []study.Column{jct, ours, {Title: "p99 (h)", Metric: "late_h", Format: study.Fixed(1), Bare: true}, bound, slow},
			"p99: what one job in a hundred exceeds. iteration / best: of a job, over that on an empty cluster.",
			"waits: with A-SRPT's rule of waiting for servers. later pass: jobs behind one that does not fit may start.",
			"by workload: of the jobs that the virtual machine has finished, the least workload first.",
			"SRTF, SRSF: they know all iterations, stop and move jobs for nothing, and have a less tight bound of their own."),
		guides(pair("guided", "What the virtual machine is worth: A-SRPT against rivals that wait for servers as it does", "loads", []string{"load", "scheduler"},
			[]study.Column{against("scheduler", spwfWait), against("scheduler", workWait), against("scheduler", fifoWait)})),
		pair("parts", "A-SRPT with one part taken away or exchanged, and rivals with its parts", "parts", []string{"variant"}, []study.Column{jct, against("variant", whole), slow}),
		pair("predictors", "Predicted iterations", "predictors", []string{"predictor"}, []study.Column{
			{Title: "median error, %", Metric: "ape", Format: percent}, {Title: "pairs in order, %", Metric: "pairs", Format: percent}, {Title: "mean |ln|", Metric: "log_error", Format: two},
		}, "pairs in order: of the jobs of different run times; half if nothing is known."),
		pair("predicted", "Mean completion time with these predictions", "predicted", []string{"scheduler", "predictor"}, []study.Column{jct, against("predictor", byExact), against("scheduler", spwfWait)}),
		[]study.Table{
			{
				Name: "errors", Title: "Predictions that are wrong by a known amount: standard deviation of their logarithm", By: []string{"scheduler", "error"}, Order: order,
				Columns: []study.Column{jct, {Title: versus("no error"), Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"error": "0"}, Format: study.Signed}},
			},
			{
				Name: "cuts", Title: "A graph on four servers, none of which has room for all of it: iteration over the best of all placements", By: []string{"GPUs", "stages", "placement"}, Order: order,
				Columns: []study.Column{{Title: "iteration / optimum", Metric: "slower", Format: two}, {Title: "optimal, %", Metric: "best", Format: percent}},
			},
			{
				Name: "networks", Title: "Placements on networks of so many GB/s for a server", By: []string{"NIC", "scheduler", "placement"}, Order: order,
				Columns: []study.Column{bare(jct), against("placement", heaviest), slow},
				Notes:   []string{"Jobs keep their submits and iterations, so that a slow network is also fuller."},
			},
			{
				Name: "waits", Title: "Who waits for few servers: from which ratio of the worst iteration to the best, and for how many predicted run times", By: []string{"scheduler", "waits"}, Order: order,
				Columns: []study.Column{jct, against("waits", waiting{}.String()), slow},
			},
			{
				Name: "speeds", Title: "A virtual machine that is slower or faster than the cluster", By: []string{"scheduler", "speed"}, Order: order,
				Columns: []study.Column{jct, against("speed", "1")},
			},
			{
				Name: "theory", Title: "Exact predictions, nobody waits for servers: times the lower bound", Where: main, By: []string{"load", "scheduler"}, Order: order,
				Columns: []study.Column{{Title: "times from 0", Metric: "complete", Format: study.Fixed(3)}, {Title: "times from submit", Metric: "flow", Format: two}},
				Notes:   []string{"times from 0: the sum that the paper's ratio is about. times from submit: completion times as elsewhere in this report."},
			},
			{
				Name: "proved", Title: "What is proved of A-SRPT's times from 0, and what came out", From: "theory", Where: main, By: []string{"load", "scheduler"}, Order: order,
				Keep:    func(l map[string]string) bool { return l["scheduler"] == aSRPT },
				Columns: []study.Column{{Title: "came out", Metric: "complete", Format: study.Fixed(3)}, {Title: "proved", Metric: "proved", Format: two}},
				Notes:   []string{"Times the same lower bound. The proof is ours; every schedule of the table was held against it."},
			},
		},
	)
	return all
}

// figures returns the drawings of the report.
func (s *settings) figures(study.Plan) []study.Figure {
	without := func(all []study.Series, names ...string) []study.Series {
		return slices.DeleteFunc(all, func(s study.Series) bool {
			return slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(s.Name, n) })
		})
	}
	return []study.Figure{
		{
			Name: "loads", Title: "Mean completion time as the load grows", X: "load", Y: "times the lower bound", Zero: true, Ours: []string{whole},
			Series: func(r *study.Results) []study.Series {
				return without(r.Curves("loads", "× lower bound", "load"), srtf, passing, workWait, fifoWait)
			},
		},
		{
			Name: "parts", Title: "A-SRPT with one part taken away or exchanged", X: "mean JCT vs A-SRPT, %", Kind: study.Bars, Zero: true,
			Series: func(r *study.Results) []study.Series {
				return r.Bars("parts", versus(whole), func(l map[string]string) bool { return l["variant"] != whole })
			},
		},
		{
			Name: "errors", Title: "Mean completion time as predictions get worse", X: "standard deviation of ln(prediction)", Y: "vs no error, %", Zero: true, Ours: []string{whole},
			Series: func(r *study.Results) []study.Series { return r.Curves("errors", versus("no error"), "error") },
		},
	}
}

// claims returns the figures that say most. Those of the paper are not known to us.
func (s *settings) claims(study.Plan) []study.Claim {
	var all []study.Claim
	for _, load := range s.Loads {
		if load != .7 && load != 1 { // where only the rule of waiting tells A-SRPT apart, and where the cluster is full
			continue
		}
		for _, name := range append(published()[1:], spwfWait) {
			all = append(all, study.Claim{
				What: fmt.Sprintf("mean JCT of %s vs A-SRPT, %%, load %s", name, number(load)), Paper: "–", Table: "loads",
				Line: map[string]string{"load": number(load), "scheduler": name}, Column: versus(aSRPT),
			})
		}
	}
	for _, name := range []string{noMachine, noWait, noPlacement, noPredictor} {
		all = append(all, study.Claim{What: "mean JCT of A-SRPT, " + name + ", vs A-SRPT, %", Paper: "–", Table: "parts", Line: map[string]string{"variant": name}, Column: versus(whole)})
	}
	return all
}

// notes returns sentences on how to read the tables.
func (s *settings) notes(p study.Plan) []string {
	all := []string{
		"Of the paper only its abstract was at hand: its equations, cluster, traces and figures are not known here. README.md says what was put in their place.",
		"SPJF, SPWF: the least predicted run time or workload (GPUs × run time) first; the first job that does not fit blocks the others. WCS: whatever fits starts, in order of that, or of submit.",
		fmt.Sprintf("A draw is %d jobs on %d servers of %d GPUs; load is what the jobs ask for until the last submit over what the GPUs can do. Tables without a load have %s.", s.Jobs, s.Servers, s.GPUs, number(s.Load)),
		"Predictors learn from the jobs before a workload, and from those of it that have ended. Run times are predicted by the random forest where nothing else is said.",
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
