package metascheduler

import (
	"math"

	"clustergym/experiments/study"
)

// mark is one point of a learner's curve.
type mark struct {
	episodes int
	jct      float64
}

// samples returns how many real episodes a learner needed for three goals: 95 % of its final performance, where
// performance is 1 over the completion time and the final completion time is the mean of the last two marks; 95 % of
// its gain from the first mark to the final one; and a completion time 5 % below reference. A learner that did not
// gain, or did not reach the last goal, has no row for it. The metrics gained and hit are 1 for a learner that has the
// row, 0 otherwise.
func samples(table string, labels map[string]string, curve []mark, reference float64) []study.Row {
	n := len(curve)
	end := (curve[n-1].jct + curve[max(n-2, 0)].jct) / 2
	start := curve[0].jct
	row := study.RowOf(table, labels)
	first := func(limit float64) float64 {
		for _, m := range curve {
			if m.jct <= limit {
				return float64(m.episodes)
			}
		}
		return math.NaN()
	}
	rows := []study.Row{row("final95", first(end/0.95))}
	gained, hit := 0.0, 0.0
	if at := first(start - 0.95*(start-end)); end < start && !math.IsNaN(at) {
		gained = 1
		rows = append(rows, row("own95", at))
	}
	if at := first(0.95 * reference); !math.IsNaN(at) {
		hit = 1
		rows = append(rows, row("target", at))
	}
	return append(rows, row("gained", gained), row("hit", hit), row("end_jct_h", end))
}
