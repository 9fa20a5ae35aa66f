package rltune

import (
	"slices"

	"clustergym/experiments/study"
)

// values returns what report.yaml names.
func (s *settings) values(p study.Plan) map[string][]string {
	given, absent, _ := s.given(p) // Cells reports the fault
	return map[string][]string{
		"workload": workloadNames(s.Workloads), "run times": rungs, "base": s.Agents,
		"policy": slices.Concat([]string{learned, unplaced, filled}, handmade, []string{best}, baseNames()),
		"played": workloadNames(given), "two bases": s.Agents[:min(2, len(s.Agents))], "absent": absent,
	}
}

func workloadNames(all []workloadSpec) (names []string) {
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}
