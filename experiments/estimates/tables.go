package estimates

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"clustergym/experiments/study"
)

// order returns the order of the values of labels.
func (s *settings) order() map[string][]string {
	var logs, policies []string
	for i := range s.Logs {
		logs = append(logs, s.Logs[i].Name)
	}
	for i := range scheduled {
		policies = append(policies, scheduled[i].name)
	}
	return map[string][]string{"log": logs, "scheduler": policies, "rung": rungs(), "estimates": ladder}
}

// tables returns the tables of the report.
func (s *settings) tables(study.Plan) []study.Table {
	order := s.order()
	two, three := study.Fixed(2), study.Fixed(3)
	all := []study.Table{
		{
			Name: "predictors", Title: "Predictors: blocks of the second half of each log", By: []string{"log", "rung", "estimates"}, Order: order,
			Columns: append([]study.Column{
				{Title: "rank correlation", Metric: "spearman", Format: three}, {Title: "pairs in order", Metric: "pairs", Format: study.Share},
				{Title: "mean |log error|", Metric: "log_error", Format: two},
			}, study.Hide(coverage(), "below .1", "below .25", "below .75", "log width")...),
			Notes: []string{"below p: share of run times that did not exceed the forecast's quantile at p, which is p for a calibrated predictor."},
		},
		{
			Name: "splits", Title: "Predictors: all jobs after a split of the log, before which gbdt once was fitted", By: []string{"log", "split", "rung", "estimates"}, Order: order,
			Columns: []study.Column{
				{Title: "rank correlation", Metric: "spearman", Format: three, Bare: true}, {Title: "pairs in order", Metric: "pairs", Format: study.Share, Bare: true},
				{Title: "mean |log error|", Metric: "log_error", Format: two, Bare: true},
			},
		},
	}
	for _, from := range []struct{ name, title, what string }{
		{"whole", "whole logs", "of the log's blocks"}, {"windows", "windows of the second half of each log", "of windows"},
	} {
		all = append(all,
			study.Table{
				Name: from.name, Title: "Schedules: " + from.title, By: []string{"log", "scheduler", "rung", "estimates"}, Order: order,
				Columns: []study.Column{
					{Title: "mean wait (h)", Metric: "wait_h"}, {Title: "mean JCT (h)", Metric: "jct_h", Hidden: true}, {Title: "bounded slowdown", Metric: "slowdown"},
					{Title: "wait vs exact", Metric: "wait_h", Stat: study.Percent, Versus: exact},
					{Title: "wait vs exact sjf", Metric: "wait_h", Stat: study.Percent, Versus: withScheduler(exact, sjfSkip), Hidden: true},
				},
				Notes: []string{"Intervals are " + from.what + ". gittins with estimates that are one number is srsf, so it has no other lines than these."},
			},
			lost(from.name, "lost-"+from.name, "What is lost by not knowing: "+from.title, fifoSkip, order, func(scheduler string) bool { return scheduler != easy }),
			compared(from.name, "compared-"+from.name, "Schedulers that guess, beside others: "+from.title, order),
			lost(from.name, "lost-backfilling-"+from.name, "What back-filling loses by not knowing: "+from.title, fifo, order, func(scheduler string) bool { return scheduler == easy }),
		)
	}
	return all
}

// coverage returns the columns of the quantiles' coverage.
func coverage() (columns []study.Column) {
	for _, p := range []string{"10", "25", "50", "75", "90"} {
		columns = append(columns, study.Column{Title: "below ." + strings.TrimSuffix(p, "0"), Metric: "below_" + p, Format: study.Fixed(2), Bare: true})
	}
	return append(columns, study.Column{Title: "log width", Metric: "log_width", Format: study.Fixed(1), Bare: true})
}

// withScheduler returns labels with that of a scheduler.
func withScheduler(labels map[string]string, scheduler string) map[string]string {
	own := maps.Clone(labels)
	own["scheduler"] = scheduler
	return own
}

// lost returns the table of what schedulers lose of the way from start, which knows nothing, to their exact form.
func lost(from, name, title, start string, order map[string][]string, keep func(scheduler string) bool) study.Table {
	return study.Table{
		Name: name, Title: title, From: from, By: []string{"log", "scheduler", "rung", "estimates"}, Order: order,
		Keep: func(l map[string]string) bool { return guesses(l) && keep(l["scheduler"]) },
		Columns: []study.Column{
			{Title: lostColumn, Metric: "wait_h", Stat: study.Behind, Versus: exact, Start: withScheduler(blind, start), Format: func(v float64) string { return fmt.Sprintf("%.0f %%", v) }},
			{Title: "hours lost", Metric: "wait_h", Stat: study.Difference, Versus: exact},
		},
		Notes: []string{"lost: of the way from " + start + " to the same scheduler with exact run times. 0 % = nothing, 100 % = no better than " + start + "; – where exact run times are no better."},
	}
}

const lostColumn = "lost"

// guesses reports whether a line is of a scheduler that asks for run times and is not told the exact ones.
func guesses(l map[string]string) bool {
	asks := slices.ContainsFunc(scheduled, func(c scheduler) bool { return c.name == l["scheduler"] && c.asks })
	return asks && l["estimates"] != knowExact
}

// compared returns the table of schedulers that guess beside others that are not told run times either: the same scheduler
// with history, srsf with the same estimates, and las.
func compared(from, name, title string, order map[string][]string) study.Table {
	return study.Table{
		Name: name, Title: title, From: from, By: []string{"log", "scheduler", "rung", "estimates"}, Order: order, Keep: guesses,
		Columns: []study.Column{
			{Title: "wait vs history", Metric: "wait_h", Stat: study.Percent, Versus: labelsOf(knowHistory), Hidden: true},
			{Title: "wait vs srsf", Metric: "wait_h", Stat: study.Percent, Versus: map[string]string{"scheduler": srsf}},
			{Title: "wait vs las", Metric: "wait_h", Stat: study.Percent, Versus: withScheduler(blind, las)},
		},
		Notes: []string{"wait vs history: of the same scheduler. wait vs srsf: with the same estimates. las asks for none."},
	}
}

// figures returns the drawings of the report: what learned estimates lose in each log, and in one log with each scheduler.
func (s *settings) figures(study.Plan) []study.Figure {
	var all []study.Figure
	bars := func(name, title string, sorted bool, keep func(l map[string]string) bool, label func(l map[string]string) string) {
		all = append(all, study.Figure{
			Name: name, Title: title, X: "% of the way from fifo+skip to exact run times that is lost", Kind: study.Bars, Zero: true, Ours: []string{withRung(knowGBDT)}, Sorted: sorted,
			Series: func(r *study.Results) []study.Series {
				var one study.Series
				for _, l := range r.Lines("lost-whole") {
					if v := l.Cells[0]; keep(l.Labels) && v.Value == v.Value {
						one.Points = append(one.Points, study.Point{X: v.Value, Low: v.Low, High: v.High, Label: label(l.Labels)})
					}
				}
				return []study.Series{one}
			},
		})
	}
	bars("lost", "What is lost by not knowing: "+sjfSkip, false, func(l map[string]string) bool {
		return l["scheduler"] == sjfSkip && (l["estimates"] == knowHistory || l["estimates"] == knowGBDT)
	}, func(l map[string]string) string { return l["log"] + " / " + withRung(l["estimates"]) })
	for i := range s.Logs {
		name := s.Logs[i].Name
		bars("lost-"+name, "What is lost by not knowing: "+name, true, func(l map[string]string) bool {
			return l["log"] == name && l["estimates"] != knowNoisy1 && l["estimates"] != knowNoisy2 // these are no predictors
		}, func(l map[string]string) string { return l["scheduler"] + " / " + withRung(l["estimates"]) })
	}
	return all
}

// notes returns sentences on how to read the tables.
func (s *settings) notes(p study.Plan) []string {
	all := []string{
		"Rungs: none = nothing is known; submit-time = requested times; causal = learned from jobs that have ended; noisy = the run time with an error that no predictor has; exact = the run time.",
		fmt.Sprintf("Blocks: %d consecutive parts of a log with equally many jobs. Those of a whole log are not independent where the queue lasts: windows, %d of the second half, begin with a cluster that the jobs before them have filled.", s.Blocks, s.Windows),
		"gbdt once: trees fitted before the second half (before the split) and never again. It is played in windows only.",
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
