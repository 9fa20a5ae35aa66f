package statistic

import (
	"math/rand/v2"
	"slices"

	"clustergym/internal/rng"
)

// Sample holds one metric of one policy as [seed][window].
type Sample [][]float64

// at returns the value that d draws. salt makes two policies choose their seeds independently.
func (s Sample) at(d Draw, salt uint64) float64 {
	if len(s) == 1 {
		return s[0][d.Unit]
	}
	return s[rng.At(d.Seed, salt)%uint64(len(s))][d.Unit]
}

// perWindow returns the mean over seeds for each window.
func (s Sample) perWindow() []float64 {
	out := make([]float64, len(s[0]))
	for _, row := range s {
		for i, v := range row {
			out[i] += v / float64(len(s))
		}
	}
	return out
}

// Statistic describes one metric of one policy over windows.
type Statistic struct {
	IQM       float64    `json:"iqm"`
	Mean      float64    `json:"mean"`
	CI95      [2]float64 `json:"ci95"` // of the IQM
	PerWindow []float64  `json:"per_window"`
}

// Describe returns the statistics of s. seed is the seed of the interval.
func Describe(seed uint64, s Sample) Statistic {
	per := s.perWindow()
	scratch := make([]float64, len(per))
	return Statistic{
		IQM: IQM(per), Mean: Mean(per), PerWindow: per,
		CI95: Bootstrap(seed, "iqm", len(per), func(drawn []Draw) float64 {
			for i, d := range drawn {
				scratch[i] = s.at(d, 0)
			}
			slices.Sort(scratch)
			return SortedIQM(scratch)
		}),
	}
}

// Paired compares policy A with B on the same windows. A negative difference means that A is lower, which is better for
// every metric except utilisations.
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

// Compare returns the comparison of policies a and b, whose samples have the same windows. seed is the seed of the
// interval. Of two values in a window the lower one wins, or the higher one if higherIsBetter is true.
func Compare(seed uint64, nameA, nameB, metric string, a, b Sample, higherIsBetter bool) Paired {
	p := Paired{A: nameA, B: nameB, Metric: metric}
	perA, perB := a.perWindow(), b.perWindow()
	p.Difference = 100 * (Mean(perA) - Mean(perB)) / Mean(perB)
	p.CI95 = Bootstrap(seed, "paired", len(perA), func(drawn []Draw) float64 {
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

// CompareRuns compares several runs a [run][window] of one agent with policy b on the same windows. Difference and wins
// are those of the runs' mean. Each resample of the interval draws runs with replacement and, apart from them, windows,
// which are the same for all drawn runs (the pigeonhole bootstrap of Owen 2007, "The pigeonhole bootstrap", Annals of
// Applied Statistics 1(2)): it covers what other runs and other windows might have given.
func CompareRuns(seed uint64, nameA, nameB, metric string, a Sample, b []float64, higherIsBetter bool) Paired {
	p := Compare(seed, nameA, nameB, metric, Sample{a.perWindow()}, Sample{b}, higherIsBetter)
	r := rand.New(rng.Source(seed, "bootstrap/runs"))
	times, out := make([]int, len(a)), make([]float64, Draws)
	for d := range out {
		clear(times)
		for range a {
			times[r.IntN(len(a))]++
		}
		sa, sb := 0.0, 0.0
		for range b {
			w := r.IntN(len(b))
			sb += b[w]
			for k, n := range times {
				sa += float64(n) * a[k][w] / float64(len(a))
			}
		}
		out[d] = 100 * (sa - sb) / sb
	}
	slices.Sort(out)
	p.CI95 = [2]float64{Quantile(out, .025), Quantile(out, .975)}
	return p
}
