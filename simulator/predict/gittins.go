package predict

import (
	"math"
	"time"
)

// pareto returns the exponent of the tail above the last quantile: that of the Pareto distribution through the last
// two, at most 20. With a greater one, as of equal quantiles, no job would outlive the last quantile, and nothing could
// be said of one that does.
func (f *Forecast) pareto() float64 {
	const last = Quantiles - 1
	x := math.Log((1-Levels[last-1])/(1-Levels[last])) / math.Log(float64(f.Q[last])/float64(f.Q[last-1]))
	return min(x, 20) // equal quantiles give +Inf
}

// Outlive returns the share of such jobs that run for longer than t: the inverse of Quantile, except that the share
// falls slowly above nearly equal last quantiles.
func (f *Forecast) Outlive(t time.Duration) float64 {
	const last = Quantiles - 1
	switch {
	case t < f.Q[0]:
		return 1 - Levels[0]*float64(max(0, t))/float64(f.Q[0])
	case t >= f.Q[last]:
		return (1 - Levels[last]) * math.Pow(float64(f.Q[last])/float64(t), f.pareto())
	}
	i := last
	for f.Q[i] > t {
		i--
	}
	w := math.Log(float64(t)/float64(f.Q[i])) / math.Log(float64(f.Q[i+1])/float64(f.Q[i]))
	return 1 - Levels[i] - w*(Levels[i+1]-Levels[i])
}

// Gittins returns the Gittins index of a job that has run for ran and whose run time S has the forecast's distribution,
//
//	max over d of P(S − ran ≤ d | S > ran) / E[min(S − ran, d) | S > ran],
//
// in 1/ns: the best chance to finish for the time that is spent on it (Gittins, 1979; Scully, Harchol-Balter and
// Scheller-Wolf, POMACS 2018). d goes over the quantiles above ran and one in the tail, between which the distribution
// is taken to be uniform.
func (f *Forecast) Gittins(ran time.Duration) float64 {
	alive := f.Outlive(ran)
	if !(alive > 0) {
		alive = math.SmallestNonzeroFloat64
	}
	best, spent := 0.0, 0.0
	at, left := float64(ran), alive
	step := func(t, outlive float64) {
		spent += (t - at) * (left + outlive) / 2
		at, left = t, outlive
		if spent > 0 {
			best = max(best, (alive-outlive)/spent)
		}
	}
	for i, q := range f.Q {
		if q > ran {
			step(float64(q), 1-Levels[i])
		}
	}
	tail := 2 * at
	if at == 0 {
		tail = 1
	}
	step(tail, left*math.Pow(at/tail, f.pareto()))
	return best
}
