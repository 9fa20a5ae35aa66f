package estimates

import (
	"fmt"

	"clustergym/experiments/study"
)

// values returns what report.yaml names.
func (s *settings) values(p study.Plan) map[string][]string {
	var logs, policies, asking []string
	for i := range s.Logs {
		logs = append(logs, s.Logs[i].Name)
	}
	for i := range scheduled {
		policies = append(policies, scheduled[i].name)
		if scheduled[i].asks {
			asking = append(asking, scheduled[i].name)
		}
	}
	_, absent, _ := s.given(p) // Cells reports the fault
	return map[string][]string{
		"log": logs, "scheduler": policies, "rung": rungs(), "estimates": ladder, "asking": asking, "absent": absent,
		"blocks": {fmt.Sprint(s.Blocks)}, "windows": {fmt.Sprint(s.Windows)},
	}
}

// figures returns the drawings of the report: what learned estimates lose in each log, and in one log with each
// scheduler.
func (s *settings) figures(study.Plan) []study.Figure {
	var all []study.Figure
	bars := func(name, title string, sorted bool, keep func(l map[string]string) bool,
		label func(l map[string]string) string) {
		all = append(all, study.Figure{
			Name: name, Title: title, X: "% of the way from fifo+skip to exact run times that is lost", Kind: study.Bars,
			Zero: true, Ours: []string{withRung(knowGBDT)}, Sorted: sorted,
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
