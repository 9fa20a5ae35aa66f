package dally

import (
	"fmt"
	"slices"

	"clustergym/experiments/study"
	"clustergym/simulator/schedulers/delay"
)

// shareText formats a share of congestion for labels.
func shareText(c float64) string { return fmt.Sprintf("%g %%", 100*c) }

// values returns what report.yaml names.
func (s *settings) values(study.Plan) map[string][]string {
	var shares []string
	for _, c := range s.Congestion {
		shares = append(shares, shareText(c))
	}
	all := everyPolicy()
	return map[string][]string{
		"workload": workloads(), "net": nets(), "congestion": shares, "worst": shares[max(0, len(shares)-1):],
		"overhead": s.Overheads, "cluster": s.Clusters, "lease": s.Leases, "order": delay.Asks(),
		// The authors' machine has a Tiresias of its own.
		"policy": slices.Concat(all[:len(all)-1], []string{"Tiresias", gandiva, gandivaHours}),
	}
}

// figures returns the drawings of the report: figures over the scarcity of bandwidth.
func (s *settings) figures(study.Plan) []study.Figure {
	over := func(name, title, column string) study.Figure {
		return study.Figure{
			Name: name, Title: title + " as bandwidth between machines becomes scarce", Y: column,
			X: "times less bandwidth (dally-multi, network slow)", LogX: true, LogY: true, Ours: []string{delayLAS},
			Series: func(r *study.Results) []study.Series { return s.scarce(r, column) },
		}
	}
	return []study.Figure{
		over("jct", "Mean JCT", "mean JCT (h)"), over("communication", "Communication", "communication (h)"),
	}
}

// scarce returns a column of the table congestion over how many times less bandwidth there is.
func (s *settings) scarce(r *study.Results, column string) (all []study.Series) {
	for _, policy := range []string{delayLAS, tunedTimers, tiresiasLease, tiresiasTogether, lasSkewed, gandiva} {
		one := study.Series{Name: policy}
		for _, c := range s.Congestion {
			line := map[string]string{"workload": "dally-multi", "net": "slow", "congestion": shareText(c), "policy": policy}
			if v, _, ok := r.Find("congestion", line, column); ok {
				one.Points = append(one.Points, study.Point{X: 1 / (1 - c), Y: v.Value, Low: v.Low, High: v.High})
			}
		}
		all = append(all, one)
	}
	return all
}
