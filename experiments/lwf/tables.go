package lwf

import (
	"fmt"
	"maps"
	"slices"

	"clustergym/experiments/study"
)

// times formats a difference in percent as a ratio.
func times(v float64) string { return fmt.Sprintf("%.2f×", 1+v/100) }

// percent formats a share as percent, likewise.
func percent(v float64) string { return fmt.Sprintf("%.0f", 100*v) }

// versus returns the title of a difference in percent.
func versus(what string) string { return "vs " + what + ", %" }

// spans formats numbers of seconds as labels.
func spans(list []int64) (all []string) {
	for _, v := range list {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

// tables returns the tables of the report.
func (s *settings) tables(p study.Plan) []study.Table {
	order := map[string][]string{
		"jobs": {generated, theirs}, "GPUs": {shared, own}, "rule": sharing(),
		"placement": append(kappas(), firstFit, random), "span": spans(s.Spans),
	}
	against := func(rule string) study.Column {
		return study.Column{Title: versus(rule), Metric: "jct_s", Stat: study.Percent, Versus: map[string]string{"rule": rule}, Format: study.Signed}
	}
	jct := study.Column{Title: "mean JCT (s)", Metric: "jct_s"}
	againstLWF1 := study.Column{Title: "/ LWF-1", Metric: "jct_s", Stat: study.Percent, Versus: map[string]string{"placement": lwf1}, Format: times}
	against1, against2 := against(srsf1), against(srsf2)
	against1.Paper = func(l map[string]string) string {
		if l["GPUs"] == shared && l["rule"] == srsf2 {
			return "+26.2"
		}
		return paperOf("−20.1")(l)
	}
	against2.Paper = paperOf("−36.7")
	placement := againstLWF1
	placement.Paper = func(l map[string]string) string {
		if l["placement"] == firstFit && (l["rule"] == ada || l["rule"] == adaOrig) {
			return "1.59×"
		}
		return ""
	}
	inPaper1, inPaper2 := against(srsf1), against(srsf2)
	inPaper1.Paper, inPaper2.Paper = byLWF1(against1.Paper), byLWF1(against2.Paper)
	few := func(rules ...string) func(map[string]string) bool {
		return func(l map[string]string) bool { return slices.Contains(rules, l["rule"]) }
	}
	all := []study.Table{
		{
			Name: "rules", Title: "When a ready transfer may begin beside others (placed by LWF-1)", From: "plays", Where: map[string]string{"placement": lwf1},
			By: []string{"jobs", "GPUs", "rule"}, Order: order, Columns: []study.Column{jct, against1, against2},
			Notes: []string{"GPUs: shared by jobs that take turns, as in the authors' program, or each of one job at a time."},
		},
		{
			Name: "paper", Title: "The same at the paper's scale: a hundred times as many iterations, arrivals within 1,200 s (shared GPUs)",
			By: []string{"placement", "rule"}, Order: order, Columns: []study.Column{jct, inPaper1, inPaper2},
		},
		{
			Name: "paper-placements", Title: "Where jobs go, at the paper's scale", From: "paper", By: []string{"rule", "placement"}, Order: order,
			Columns: []study.Column{jct, placement},
		},
		{
			Name: "questions", Title: "What the published question does (placed by LWF-1)", From: "plays", Where: map[string]string{"placement": lwf1, "GPUs": shared},
			By: []string{"jobs", "rule"}, Order: order, Keep: few(ada, adaOrig),
			Columns: []study.Column{
				{Title: "sent by questions, %", Metric: "moved", Format: percent}, {Title: "GPUs busy, %", Metric: "busy", Format: percent},
				{Title: "makespan (s)", Metric: "makespan_s"},
			},
			Notes: []string{"sent by questions: of all MB that jobs send, the share that no time was spent on."},
		},
		{
			Name: "placements", Title: "Where jobs go", From: "plays", By: []string{"jobs", "GPUs", "rule", "placement"}, Order: order,
			Keep: func(l map[string]string) bool {
				return slices.Contains(others(), l["placement"]) && few(srsf1, ada, adaOrig)(l)
			},
			Columns: []study.Column{jct, placement},
		},
		{
			Name: "kappa", Title: "Up to how many GPUs a job takes the least loaded ones (κ), wherever they are", From: "plays", Where: map[string]string{"GPUs": shared},
			By: []string{"jobs", "rule", "placement"}, Order: order,
			Keep: func(l map[string]string) bool {
				return slices.Contains(kappas(), l["placement"]) && few(srsf1, ada, adaOrig)(l)
			},
			Columns: []study.Column{jct, againstLWF1}, Notes: []string{"list scheduling is LWF-32: 32 is the largest job."},
		},
		{
			Name: "spans", Title: "The same jobs arriving within so many seconds (generated, LWF-1, shared GPUs)", By: []string{"span", "rule"}, Order: order,
			Columns: []study.Column{jct, against(srsf1), against(srsf2)},
		},
		{
			Name: "speed", Title: "Speed of the rebuilt machine (160 jobs, LWF-1)", By: []string{"rule"}, Order: order,
			Columns: []study.Column{
				{Title: "jobs/s", Metric: "timing_jobs", Bare: true, Paper: func(map[string]string) string { return "0.5 to 1.7" }},
				{Title: "iterations/s", Metric: "timing_iterations", Bare: true, Paper: func(map[string]string) string { return "16 to 57" }},
				{Title: "steps/s", Metric: "timing_steps", Bare: true, Paper: func(map[string]string) string { return "290 to 370" }},
			},
			Notes: []string{"paper: the authors' program as measured, from the least of wall time to the most of processor time."},
		},
	}
	// The table of speed stays behind them.
	all = slices.Insert(all, len(all)-1, s.fluidTables(jct, againstLWF1)...)
	if p.Data != "" {
		all = append(all, study.Table{
			Name: "equal", Title: "Recorded jobs of the authors' program: equal in placement, first task, finish and GPUs", By: []string{"set"},
			Columns: []study.Column{
				{Title: "runs", Metric: "runs", Bare: true}, {Title: "jobs", Metric: "jobs", Bare: true},
				{Title: "equal", Metric: "equal", Bare: true}, {Title: "differ", Metric: "differ", Bare: true},
			},
		})
	}
	return all
}

// fluidTables returns the tables of the authors' machine beside simulator/sim.
func (s *settings) fluidTables(jct, againstLWF1 study.Column) []study.Table {
	var machines []string
	for _, m := range beside() {
		machines = append(machines, m.String())
	}
	order := map[string][]string{"span": append(spans(s.FluidSpans), paperSpan), "placement": placesOfFluid(), "machine": append(machines, fluid)}
	return []study.Table{
		{
			Name: "fluid", Title: "The authors' machine, which follows transfers, beside env/sim, where jobs on several nodes share links all the time",
			By: []string{"span", "placement", "machine"}, Order: order,
			Columns: []study.Column{
				jct,
				{Title: "env/sim vs it, %", Metric: "jct_s", Stat: study.Percent, Versus: map[string]string{"machine": fluid}, Turned: true, Format: study.Signed},
				{Title: "each job, %", Metric: "apart", Format: percent}, {Title: "control, %", Metric: "from_first", Format: percent},
			},
			Notes: []string{
				"each job: the mean over jobs of the difference between the completion times in env/sim and on the line's machine, without its sign. " +
					"control: the same between the line and \"no limit, own\": how far apart rules of one machine are.",
				"own: each GPU has one job at a time. shared: jobs take turns. no limit: every ready transfer begins.",
			},
		},
		{
			Name: "fluid-placements", Title: "Placements on both machines", From: "fluid", By: []string{"span", "machine", "placement"}, Order: order,
			Keep:    func(l map[string]string) bool { return l["placement"] != lwf1 && l["machine"] != beside()[1].String() },
			Columns: []study.Column{againstLWF1},
		},
	}
}

// byLWF1 returns the paper's figure of the table of rules for lines of LWF-1.
func byLWF1(figure func(map[string]string) string) func(map[string]string) string {
	return func(l map[string]string) string {
		if l["placement"] != lwf1 {
			return ""
		}
		return figure(map[string]string{"GPUs": shared, "rule": l["rule"]})
	}
}

// paperOf returns the paper's figure for the lines of Ada-SRSF on shared GPUs.
func paperOf(figure string) func(map[string]string) string {
	return func(l map[string]string) string {
		if l["GPUs"] == shared && (l["rule"] == ada || l["rule"] == adaOrig) {
			return figure
		}
		return ""
	}
}

// claims returns the paper's figures, and where ours are.
func (s *settings) claims(p study.Plan) []study.Claim {
	kinds := []string{generated}
	if files, err := findRecorded(p.Data); err == nil && slices.ContainsFunc(files, func(o recorded) bool { return o.like160 }) {
		kinds = append(kinds, theirs)
	}
	var all []study.Claim
	add := func(what, paper, table string, line map[string]string, column string) {
		all = append(all, study.Claim{What: what, Paper: paper, Table: table, Line: line, Column: column})
	}
	for _, rule := range []string{ada, adaOrig} {
		line := map[string]string{"placement": lwf1, "rule": rule}
		add("mean JCT of "+rule+" vs SRSF(1), %, the paper's scale", "−20.1", "paper", line, versus(srsf1))
		add("mean JCT of "+rule+" vs SRSF(2), %, the paper's scale", "−36.7", "paper", line, versus(srsf2))
		add("mean JCT of first fit / LWF-1, both "+rule+", the paper's scale", "1.59×", "paper-placements", map[string]string{"placement": firstFit, "rule": rule}, "/ LWF-1")
	}
	for _, kind := range kinds {
		of := ""
		if kind == theirs {
			of = " (authors' jobs)"
		}
		on := func(more map[string]string) map[string]string {
			line := map[string]string{"jobs": kind, "GPUs": shared}
			maps.Copy(line, more)
			return line
		}
		add("mean JCT of SRSF(2) vs SRSF(1), %"+of, "+26.2", "rules", on(map[string]string{"rule": srsf2}), versus(srsf1))
		for _, rule := range []string{ada, adaOrig} {
			line := on(map[string]string{"rule": rule})
			add("mean JCT of "+rule+" vs SRSF(1), %"+of, "−20.1", "rules", line, versus(srsf1))
			add("mean JCT of "+rule+" vs SRSF(2), %"+of, "−36.7", "rules", line, versus(srsf2))
			add("mean JCT of first fit / LWF-1, both "+rule+of, "1.59×", "placements", on(map[string]string{"rule": rule, "placement": firstFit}), "/ LWF-1")
		}
	}
	return all
}

// notes returns sentences on how to read the tables.
func (s *settings) notes(p study.Plan) []string {
	all := []string{
		"Ada-SRSF: the question how much of a transfer is left only reads. published: it also moves the transfer, as in the authors' program. " +
			"asks all: the question goes to the transfers on all nodes of the job, not to that on one node.",
		"jobs: of our generator, or of the authors'. The paper's +26.2 % of SRSF(2) follows from its other two.",
		"SRSF(n): at most n transfers on a link. A draw is a workload of 160 jobs, twice Philly's sizes as the authors condensed them.",
		"Arrivals and iterations are a hundredth of the paper's, as in its authors' program, except in the tables of the paper's scale and in lines of 1200 s: " +
			"ratios can be compared, and seconds cannot.",
	}
	if p.Data == "" {
		all = append(all, "Left out: the workloads of the authors' generator and the comparison with recorded runs, as there is no --data.")
	}
	return all
}

// figures returns the drawings of the report.
func (s *settings) figures(study.Plan) []study.Figure {
	return []study.Figure{
		{
			Name: "rules", Title: "Ada-SRSF against never sending beside another: as published, and with a question that only reads",
			X: "mean JCT vs SRSF(1), % (LWF-1)", Kind: study.Bars, Zero: true, Ours: []string{ada}, Sorted: true,
			Series: func(r *study.Results) []study.Series {
				return r.Bars("rules", versus(srsf1), func(l map[string]string) bool { return l["rule"] != srsf1 })
			},
		},
		{
			Name: "placements", Title: "Placement matters more than when to send", X: "mean JCT vs LWF-1, %", Kind: study.Bars, Zero: true, Sorted: true,
			Series: func(r *study.Results) []study.Series {
				return r.Bars("placements", "/ LWF-1", func(l map[string]string) bool { return l["placement"] != lwf1 && l["GPUs"] == shared })
			},
		},
		{
			Name: "spans", Title: "Mean JCT as the same jobs arrive more slowly", X: "seconds in which 160 jobs arrive", Y: "mean JCT vs SRSF(1), %",
			LogX: true, Ours: []string{ada},
			Series: func(r *study.Results) []study.Series {
				return slices.DeleteFunc(r.Curves("spans", versus(srsf1), "span"), func(s study.Series) bool { return s.Name == srsf1 })
			},
		},
		{
			Name: "fluid", Title: "env/sim beside the authors' machine", X: "mean JCT of env/sim vs the authors' machine, %", Kind: study.Bars, Zero: true,
			Series: func(r *study.Results) []study.Series {
				return r.Bars("fluid", "env/sim vs it, %", func(l map[string]string) bool {
					return l["machine"] != fluid && l["placement"] == lwf1 && (slices.Index(spans(s.FluidSpans), l["span"]) == 0 || l["span"] == paperSpan)
				})
			},
		},
	}
}
