// Package statistic computes the statistics of all reports: means that are robust to outliers, intervals, and verdicts
// over independent units. Draws come from named streams, so that tables repeat and comparisons are paired.
//
// It works on plain numbers, whatever they measure. There are two kinds of comparison. Windows (Describe, Compare,
// CompareRuns) have bootstrap percentile intervals over windows. Independent units have verdicts (Verdict), which need
// MinUnits units and are corrected for the number of rivals (JudgeAll): CompareReplications compares replications of a
// simulation, CompareBlocks one long log by blocks of time. MSER finds the end of a warm-up, AutocorrelationTime how
// long blocks must be, and Trend whether a backlog grows.
package statistic

import (
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/internal/rng"
)

// Draws is the number of resamples of every interval.
const Draws = 10_000

// IQM returns the interquartile mean: the mean without the lowest and the highest quarter of values (Agarwal et al.,
// NeurIPS 2021). If a quarter is not a whole number of values, the values at its edge count in part. It returns NaN
// without values.
func IQM(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Clone(values)
	slices.Sort(v)
	return SortedIQM(v)
}

// SortedIQM is IQM for sorted values, of which there must be at least one.
func SortedIQM(v []float64) float64 {
	n := float64(len(v))
	cut := n / 4
	sum := 0.0
	for i, x := range v {
		// The share of [i, i+1) inside [cut, n−cut).
		if w := math.Min(float64(i+1), n-cut) - math.Max(float64(i), cut); w > 0 {
			sum += w * x
		}
	}
	return sum / (n - 2*cut)
}

// Mean returns the arithmetic mean, NaN without values.
func Mean(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// GeometricMean returns the exponential of the mean logarithm. Every value must be above 0. It returns NaN without
// values.
func GeometricMean(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, x := range v {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(v)))
}

// Quantile returns the quantile q of sorted values, of which there must be at least one. It interpolates linearly
// between order statistics.
func Quantile(v []float64, q float64) float64 {
	x := q * float64(len(v)-1)
	i := int(x)
	if i+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[i] + (x-float64(i))*(v[i+1]-v[i])
}

// Draw is one unit of a resample, such as a window of the workload. Seed chooses among the seeds of a policy with
// several.
type Draw struct {
	Unit int
	Seed uint64
}

// Bootstrap returns the 95 % percentile interval of stat over resamples of the units. In each resample, drawn[i] holds
// the unit at place i and a number for choosing among seeds. The numbers come from the stream called name, so that two
// calls with equal seed, name and units resample alike.
func Bootstrap(seed uint64, name string, units int, stat func(drawn []Draw) float64) [2]float64 {
	r := rand.New(rng.Source(seed, "bootstrap/"+name))
	drawn := make([]Draw, units)
	out := make([]float64, Draws)
	for d := range out {
		for i := range drawn {
			drawn[i] = Draw{r.IntN(units), r.Uint64()}
		}
		out[d] = stat(drawn)
	}
	slices.Sort(out)
	return [2]float64{Quantile(out, .025), Quantile(out, .975)}
}

// Difference returns the mean difference of a and b, which have a value for each of the same units, with its 95 %
// bootstrap interval. seed and name are those of Bootstrap.
func Difference(seed uint64, name string, a, b []float64) (mean float64, ci [2]float64) {
	d := make([]float64, len(a))
	for i := range d {
		d[i] = a[i] - b[i]
	}
	return Mean(d), Bootstrap(seed, name, len(d), func(drawn []Draw) float64 {
		sum := 0.0
		for _, x := range drawn {
			sum += d[x.Unit]
		}
		return sum / float64(len(drawn))
	})
}
