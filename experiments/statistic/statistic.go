// Package statistic has the statistics of all reports: means that outliers cannot rule, and percentile intervals of the
// bootstrap whose draws come from named streams, so that tables repeat and comparisons are paired.
//
// It knows numbers and nothing of where they come from.
package statistic

import (
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/internal/rng"
)

// Draws is the number of resamples behind every interval.
const Draws = 10_000

// IQM is the interquartile mean: the mean of what is left when the lowest and highest quarter are cut off
// (Agarwal et al., NeurIPS 2021). Where a quarter is not a whole number of values, the values at its edge count
// in part. It is NaN of nothing.
func IQM(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Clone(values)
	slices.Sort(v)
	return SortedIQM(v)
}

// SortedIQM is IQM of sorted values, at least one.
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

// Mean is the arithmetic mean, NaN of nothing.
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

// GeometricMean is the exponential of the mean logarithm; every value must be above 0. It is NaN of nothing.
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

// Quantile interpolates linearly between the order statistics of sorted values, at least one.
func Quantile(v []float64, q float64) float64 {
	x := q * float64(len(v)-1)
	i := int(x)
	if i+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[i] + (x-float64(i))*(v[i+1]-v[i])
}

// Draw is one unit of a resample, such as a window of the workload, and what chooses among the seeds of a policy
// that has several.
type Draw struct {
	Unit int
	Seed uint64
}

// Bootstrap is the 95 % percentile interval of stat over resamples of the units. For each resample, drawn[i]
// gives the unit in place i and a number for choosing among seeds; numbers come from the stream called name,
// so that two calls with the same seed, name and units resample alike.
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
