package statistic

import (
	"math"
	"slices"
)

// Holm returns the probabilities p adjusted for their number, in the order of p: the largest (m−k)·p of the k+1
// smallest, at most 1, where m is the number of probabilities and k counts from 0 (Holm 1979, "A simple sequentially
// rejective multiple test procedure", Scandinavian Journal of Statistics 6(2)). If all differences below a level are
// taken for real, at least one of them is not with at most this probability, however the tests depend on each other.
// NaN stays NaN and counts for nothing. Equal probabilities stay equal.
func Holm(p []float64) []float64 {
	out := slices.Clone(p)
	order := make([]int, 0, len(p))
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case p[i] < p[j]:
			return -1
		case p[i] > p[j]:
			return 1
		}
		return 0
	})
	least := 0.0
	for k, i := range order {
		least = max(least, min(1, float64(len(order)-k)*p[i]))
		out[i] = least
	}
	return out
}

// JudgeAll corrects the comparisons of one policy with its rivals for their number: it sets PHolm and Verdict of each
// row. The rows of a call are the family: all rivals in one metric, in which a lower value is better unless
// higherIsBetter is true.
func JudgeAll(rows []Replicated, higherIsBetter bool) {
	p := make([]float64, len(rows))
	for i, r := range rows {
		p[i] = float64(r.P)
	}
	for i, v := range Holm(p) {
		r := &rows[i]
		r.PHolm = Number(v)
		r.Verdict = Judge(r.Units, float64(r.Difference), r.CI95, v, higherIsBetter)
	}
}
