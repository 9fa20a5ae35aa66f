package improper

import (
	"fmt"
	"math"
	"slices"

	"clustergym/env/policymix"
	"clustergym/experiments/study"
)

// formats has numbers of packets, of which a network that is not stable has hundreds, and percent without the unit.
var formats = map[string]func(v float64) string{
	"packets": func(v float64) string { return short(v, "%.2f", "%.0f") },
	"signed":  func(v float64) string { return short(v, "%+.1f", "%+.0f") },
	"tenth":   func(v float64) string { return fmt.Sprintf("%.1f", math.Round(10*v)/10+0) }, // + 0 makes −0 a 0
}

// short formats a number in one way below a hundred, and in another from there on.
func short(v float64, below, from string) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf(from, v)
	}
	return fmt.Sprintf(below, v)
}

// values returns what report.yaml names. A network has itself as value if it is played.
func (s *settings) values(study.Plan) map[string][]string {
	order := slices.Concat(learners(), []string{likeliest, exact, ppo, best, uniform, byHand, shares, hindsight, optimum},
		policymix.Policies())
	all := map[string][]string{
		"network": s.Networks, "workload": s.Workloads, "policy": order, "learners": learners(), "agents": players(),
		"scheduler": policymix.Policies(),
	}
	for _, n := range networkNames() {
		all[n] = nil
		if slices.Contains(s.Networks, n) {
			all[n] = []string{n}
		}
	}
	return all
}
