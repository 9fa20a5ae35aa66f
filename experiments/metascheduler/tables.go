package metascheduler

import (
	"fmt"
	"slices"

	"clustergym/env/workerplace"
	"clustergym/experiments/study"
)

// values returns what report.yaml names.
func (s *settings) values(p study.Plan) map[string][]string {
	order := slices.Concat(explorers(), []string{"single-model"}, ablations(),
		[]string{"mls-guided", "planner", "harmony-like", "dl2-like", "ppo"})
	for _, r := range workerplace.Rules() {
		order = append(order, r.Name)
	}
	whole := []string{"mls", "mls-guided"}
	if p.Quick {
		whole = whole[:1]
	}
	return map[string][]string{
		"method": order, "whole": whole, "trace seed": {fmt.Sprint(s.TraceSeed)}, "first seed": {fmt.Sprint(s.FirstSeed)},
	}
}
