package statistic

// AutocorrelationTime returns the integrated autocorrelation time of an evenly sampled series in samples: n samples
// determine the mean as well as n/τ independent ones. It is τ = 1 + 2·Σρ(k) over lags k = 1, …, M, where ρ is the
// autocorrelation and M the smallest number that is at least five times the τ so far (Sokal 1997, "Monte Carlo methods
// in statistical mechanics: foundations and new algorithms", section 3). It is at least 1, and 1 for a constant series.
//
// The estimate needs a series of some fifty τ: a shorter one makes it too low. If no M up to half the series is large
// enough, as in a series with a trend, it is the greatest sum of any such M.
func AutocorrelationTime(x []float64) float64 {
	const window = 5
	n := len(x)
	mean := Mean(x)
	off := make([]float64, n)
	variance := 0.0
	for i, v := range x {
		off[i] = v - mean
		variance += off[i] * off[i]
	}
	if n < 2 || variance <= rounding*rounding*mean*mean*float64(n) {
		return 1
	}
	time, greatest := 1.0, 1.0
	for lag := 1; lag <= n/2; lag++ {
		product := 0.0
		for i, v := range off[lag:] {
			product += v * off[i]
		}
		time += 2 * product / variance
		greatest = max(greatest, time)
		if float64(lag) >= window*time {
			return max(1, time)
		}
	}
	return greatest
}
