package statistic

// MSER returns how many observations to discard from the start of series as its warm-up, by the marginal standard error
// rule: of all numbers of batches to discard, that for which the squared standard error of the remaining batch means,
// Σ(x − mean)²/k² over k of them, is lowest (White 1997, "An effective truncation heuristic for bias reduction in
// simulation output", Simulation 69(6); with batches of 5, MSER-5: White, Cobb and Spratt 2000, "A comparison of five
// steady-state truncation heuristics for simulation", Winter Simulation Conference). batch is the number of
// observations in a batch, at least 1, and the usual one is 5; an incomplete last batch is left out.
//
// Only the first half of the series is a candidate, because few remaining values have a low error by chance. ok is
// false if the minimum lies at the border of that half, or the series has fewer than two batches: the series does not
// settle, or is too short to show it. Of equal minima the first counts.
func MSER(series []float64, batch int) (discard int, ok bool) {
	if batch < 1 {
		panic("statistic: MSER with batches of less than one observation")
	}
	means := make([]float64, len(series)/batch)
	for i := range means {
		means[i] = Mean(series[i*batch : (i+1)*batch])
	}
	if len(means) < 2 {
		return 0, false
	}
	// From the end to the start, with Welford's (1962) updates of the mean and the sum of squares.
	mean, squares, best, at := 0.0, 0.0, 0.0, -1
	for d := len(means) - 1; d >= 0; d-- {
		k := float64(len(means) - d)
		off := means[d] - mean
		mean += off / k
		squares += off * (means[d] - mean)
		if z := squares / (k * k); d <= len(means)/2 && (at < 0 || z <= best) {
			best, at = z, d
		}
	}
	return at * batch, at < len(means)/2
}
