package asrpt

import (
	"strconv"

	"clustergym/experiments/study"
)

// numbers formats settings as labels.
func numbers(list []float64) (all []string) {
	for _, v := range list {
		all = append(all, number(v))
	}
	return all
}

// values returns what report.yaml names.
func (s *settings) values(p study.Plan) map[string][]string {
	var variants, rules, telling, recorded []string
	for _, v := range s.parts() {
		variants = append(variants, v.name)
	}
	for _, w := range append([]waiting{{}}, s.Waits...) {
		rules = append(rules, w.String())
	}
	for _, load := range s.Loads {
		if load == .7 || load == 1 { // where only the rule of waiting tells A-SRPT apart, and where the cluster is full
			telling = append(telling, number(load))
		}
	}
	workloads := []string{generated}
	for _, l := range s.Logs {
		workloads, recorded = append(workloads, l.Name), []string{"yes"}
	}
	_, absent, _ := s.given(p) // Cells reports the fault
	return map[string][]string{
		"workload": workloads, "load": numbers(s.Loads), "scheduler": orderings(), "variant": variants, "predictor": named(),
		"error": numbers(s.Errors), "NIC": numbers(s.NICs), "placement": placements(), "waits": rules,
		"speed": numbers(s.Speeds), "telling": telling, "recorded": recorded, "absent": absent,
		"jobs":    {strconv.Itoa(s.Jobs)},
		"servers": {strconv.Itoa(s.Servers)}, "gpus": {strconv.Itoa(s.GPUs)}, "usual load": {number(s.Load)},
	}
}
