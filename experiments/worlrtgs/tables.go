package worlrtgs

import (
	"fmt"
	"math"

	"clustergym/experiments/study"
	"clustergym/simulator/dag/synth"
)

// values returns what report.yaml names. The tables of recorded jobs appear only with --data.
func (s *settings) values(p study.Plan) map[string][]string {
	var parts, data, apart []string
	for _, p := range allPlanners {
		if p.part {
			parts = append(parts, p.name)
		}
	}
	if p.Data != "" {
		data = []string{p.Data}
	}
	all, classes := 0, map[string]int{}
	for _, z := range s.Sizes {
		n := len(s.Families) * z.Graphs
		all += n
		classes[z.class()] += n
	}
	for _, class := range []string{"small", "medium", "large"} {
		if n := classes[class]; n > 0 {
			apart = append(apart, fmt.Sprintf("%.2f (%s, %d)", nemenyi(len(sixPlanners), n), class, n))
		}
	}
	return map[string][]string{
		"policy": plannerNames(), "parts": parts, "family": synth.Families(), "kind": recordedKinds, "data": data,
		"apart": {fmt.Sprintf("%.2f", nemenyi(len(sixPlanners), all))}, "graphs": {fmt.Sprint(all)}, "apart by size": apart,
	}
}

// studentized holds the upper 5 % points of the studentized range divided by √2 for 2, 3, … methods: Demšar, JMLR 7,
// 2006, table 5, continued.
var studentized = []float64{
	1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164, 3.219, 3.268, 3.313, 3.354, 3.391, 3.426, 3.458, 3.489,
}

// nemenyi returns the critical difference between average ranks of k methods on n graphs, at 5 %.
func nemenyi(k, n int) float64 {
	return studentized[k-2] * math.Sqrt(float64(k*(k+1))/float64(6*n))
}
