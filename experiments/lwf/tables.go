package lwf

import (
	"fmt"
	"slices"

	"clustergym/experiments/study"
)

// formats has a difference in percent as a ratio.
var formats = map[string]func(v float64) string{
	"times": func(v float64) string { return fmt.Sprintf("%.2f×", 1+v/100) },
}

// spans formats numbers of seconds as labels.
func spans(list []int64) (all []string) {
	for _, v := range list {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

// values returns what report.yaml names.
func (s *settings) values(p study.Plan) map[string][]string {
	var machines []string
	for _, m := range beside() {
		machines = append(machines, m.String())
	}
	all := map[string][]string{
		"jobs": {generated, theirs}, "GPUs": {shared, own}, "rule": sharing(), "kappas": kappas(),
		"placement": append(kappas(), firstFit, random), "fluid places": placesOfFluid(), "machine": append(machines, fluid),
		"span": spans(s.Spans), "fluid spans": append(spans(s.FluidSpans), paperSpan), "data": nil, "theirs": nil,
		"first span": spans(s.FluidSpans[:min(1, len(s.FluidSpans))]),
	}
	if p.Data == "" {
		all["left out"] = []string{"the workloads of the authors' generator and the comparison with recorded runs"}
		return all
	}
	all["data"], all["left out"] = []string{p.Data}, nil
	files, err := findRecorded(p.Data)
	if err == nil && slices.ContainsFunc(files, func(o recorded) bool { return o.like160 }) {
		all["theirs"] = []string{theirs}
	}
	return all
}
