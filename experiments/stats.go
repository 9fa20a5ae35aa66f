package experiments

import (
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/internal/rng"
)

// bootstrapDraws is the number of resamples behind every interval.
const bootstrapDraws = 10_000

// IQM is the interquartile mean: the mean of what is left when the lowest and highest quarter are cut off
// (Agarwal et al., NeurIPS 2021). Where a quarter is not a whole number of values, the values at its edge count
// in part.
func IQM(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	v := slices.Clone(values)
	slices.Sort(v)
	return trimmedMean(v)
}

// trimmedMean is IQM of sorted values.
func trimmedMean(v []float64) float64 {
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

// Mean is the arithmetic mean.
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

// GeometricMean is the exponential of the mean logarithm; every value must be above 0.
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

// bootstrap is the 95 % percentile interval of stat over resamples of the windows. For each resample, draw(i)
// gives the window in place i and a number for choosing among seeds; numbers come from the stream called name,
// so tables repeat and comparisons are paired.
func bootstrap(seed uint64, name string, windows int, stat func(drawn []draw) float64) [2]float64 {
	r := rand.New(rng.Source(seed, "bootstrap/"+name))
	drawn := make([]draw, windows)
	out := make([]float64, bootstrapDraws)
	for d := range out {
		for i := range drawn {
			drawn[i] = draw{r.IntN(windows), r.Uint64()}
		}
		out[d] = stat(drawn)
	}
	slices.Sort(out)
	return [2]float64{quantile(out, .025), quantile(out, .975)}
}

// draw is one window of a resample, and what chooses among the seeds of a policy that has several.
type draw struct {
	window int
	seed   uint64
}

// sample is one metric of one policy: [seed][window].
type sample [][]float64

// at is the value that d stands for. salt keeps two policies' choices of seed apart.
func (s sample) at(d draw, salt uint64) float64 {
	if len(s) == 1 {
		return s[0][d.window]
	}
	return s[rng.At(d.seed, salt)%uint64(len(s))][d.window]
}

// perWindow is the mean over seeds.
func (s sample) perWindow() []float64 {
	out := make([]float64, len(s[0]))
	for _, row := range s {
		for i, v := range row {
			out[i] += v / float64(len(s))
		}
	}
	return out
}

// quantile interpolates linearly between the order statistics of sorted values.
func quantile(v []float64, q float64) float64 {
	x := q * float64(len(v)-1)
	i := int(x)
	if i+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[i] + (x-float64(i))*(v[i+1]-v[i])
}

// Statistic describes one metric of one policy over the windows.
type Statistic struct {
	IQM       float64    `json:"iqm"`
	Mean      float64    `json:"mean"`
	CI95      [2]float64 `json:"ci95"` // of the IQM
	PerWindow []float64  `json:"per_window"`
}

func describe(seed uint64, s sample) Statistic {
	per := s.perWindow()
	scratch := make([]float64, len(per))
	return Statistic{
		IQM: IQM(per), Mean: Mean(per), PerWindow: per,
		CI95: bootstrap(seed, "iqm", len(per), func(drawn []draw) float64 {
			for i, d := range drawn {
				scratch[i] = s.at(d, 0)
			}
			slices.Sort(scratch)
			return trimmedMean(scratch)
		}),
	}
}

// Paired compares policy A with B on the same windows; negative differences mean that A is lower. Lower is
// better for every metric but utilisations.
type Paired struct {
	A          string     `json:"a"`
	B          string     `json:"b"`
	Metric     string     `json:"metric"`
	Difference float64    `json:"difference_percent"` // 100·(ΣA − ΣB)/ΣB over windows
	CI95       [2]float64 `json:"ci95"`
	WinRate    float64    `json:"win_rate"` // share of windows in which A is better, ties half
	Wins       int        `json:"wins"`
	Ties       int        `json:"ties"`
}

func compare(seed uint64, nameA, nameB, metric string, a, b sample, higherIsBetter bool) Paired {
	p := Paired{A: nameA, B: nameB, Metric: metric}
	perA, perB := a.perWindow(), b.perWindow()
	p.Difference = 100 * (Mean(perA) - Mean(perB)) / Mean(perB)
	p.CI95 = bootstrap(seed, "paired", len(perA), func(drawn []draw) float64 {
		sa, sb := 0.0, 0.0
		for _, d := range drawn {
			sa += a.at(d, 1)
			sb += b.at(d, 2)
		}
		return 100 * (sa - sb) / sb
	})
	for i := range perA {
		switch {
		case perA[i] == perB[i]:
			p.Ties++
		case (perA[i] < perB[i]) != higherIsBetter:
			p.Wins++
		}
	}
	p.WinRate = (float64(p.Wins) + float64(p.Ties)/2) / float64(len(perA))
	return p
}
