package predictors

import (
	"math"
	"slices"
	"sort"

	"clustergym/internal/statistic"
	"clustergym/simulator/predict"
)

// Blocks is the number of consecutive blocks of jobs that are drawn for an interval. Jobs of one time resemble each
// other, so single jobs are no independent observations.
const Blocks = 20

// Intervals adds the intervals to q, the quality of all, which are in order of submit; there are none for less than
// 2·Blocks jobs. Each resample of blocks has ranks and pairs of its own. They are sums over two or three blocks, so
// that a resample costs the same for any number of jobs.
func (q *Quality) Intervals(all []Forecast) {
	n := len(all)
	if n < 2*Blocks {
		return
	}
	x, y, block := make([]float64, n), make([]float64, n), make([]int, n)
	var jobs, errors [Blocks]float64
	for i := range all {
		f, b := &all[i], i*Blocks/n
		x[i], y[i], block[i] = float64(f.Q[predict.Quantiles/2]), float64(f.Work), b
		jobs[b]++
		errors[b] += f.logError()
	}
	xx, yy, xy := products(below(x, block), below(y, block), block)
	right, pairs := concordances(x, y, block)
	resample := func(stat func(w *[Blocks]float64) float64) *[2]float64 {
		ci := statistic.Bootstrap(1, "predict", Blocks, func(drawn []statistic.Draw) float64 {
			var w [Blocks]float64
			for _, d := range drawn {
				w[d.Unit]++
			}
			return stat(&w)
		})
		return &ci
	}
	q.LogErrorCI = resample(func(w *[Blocks]float64) float64 { return dot(w, &errors) / dot(w, &jobs) })
	q.PairsCI = resample(func(w *[Blocks]float64) float64 {
		if of := double(w, pairs); of > 0 {
			return double(w, right) / of
		}
		return 0.5
	})
	q.SpearmanCI = resample(func(w *[Blocks]float64) float64 {
		all := dot(w, &jobs)
		mean := all * all * all / 4 // n times the square of the mean rank, n/2
		a, b := triple(w, xx)-mean, triple(w, yy)-mean
		if a <= 0 || b <= 0 {
			return 0
		}
		return (triple(w, xy) - mean) / math.Sqrt(a*b)
	})
}

type (
	matrix [Blocks][Blocks]float64
	tensor [Blocks]matrix
)

func dot(w, v *[Blocks]float64) (sum float64) {
	for i, x := range w {
		sum += x * v[i]
	}
	return sum
}

func double(w *[Blocks]float64, m *matrix) (sum float64) {
	for i, x := range w {
		if x > 0 {
			sum += x * dot(w, &m[i])
		}
	}
	return sum
}

func triple(w *[Blocks]float64, t *tensor) (sum float64) {
	for i, x := range w {
		if x > 0 {
			sum += x * double(w, &t[i])
		}
	}
	return sum
}

// below returns for each value how many values of each block are less; equal ones count half. A value's rank is their
// sum.
func below(x []float64, block []int) [][Blocks]float32 {
	out := make([][Blocks]float32, len(x))
	var seen [Blocks]float32
	ties(x, func(_ int, places []int) {
		var equal [Blocks]float32
		for _, j := range places {
			equal[block[j]]++
		}
		for _, j := range places {
			for b := range seen {
				out[j][b] = seen[b] + equal[b]/2
			}
		}
		for b := range seen {
			seen[b] += equal[b]
		}
	})
	return out
}

// products returns the sums over the jobs of each block of the products of ranks, each counted in two blocks.
func products(x, y [][Blocks]float32, block []int) (xx, yy, xy *tensor) {
	xx, yy, xy = new(tensor), new(tensor), new(tensor)
	for i, a := range block {
		for b := range Blocks {
			u, v := float64(x[i][b]), float64(y[i][b])
			mx, my, mc := &xx[a][b], &yy[a][b], &xy[a][b]
			for c := range Blocks {
				mx[c] += u * float64(x[i][c])
				my[c] += v * float64(y[i][c])
				mc[c] += u * float64(y[i][c])
			}
		}
	}
	return xx, yy, xy
}

// concordances returns for each two blocks the pairs in the right order and all pairs with different y, as concordance
// counts them, each pair twice.
func concordances(x, y []float64, block []int) (right, pairs *matrix) {
	right, pairs = new(matrix), new(matrix)
	var own [Blocks][2]float64
	first := func(b int) int { return sort.SearchInts(block, b) }
	for a := range Blocks {
		for b := a; b < Blocks; b++ {
			u, v := slices.Clone(x[first(a):first(a+1)]), slices.Clone(y[first(a):first(a+1)])
			if a != b {
				u, v = append(u, x[first(b):first(b+1)]...), append(v, y[first(b):first(b+1)]...)
			}
			r, p := concordant(u, v)
			right[a][b], pairs[a][b] = r, p // for two blocks less those within them, once all are known
			if a == b {
				own[a] = [2]float64{r, p}
				right[a][a], pairs[a][a] = 2*r, 2*p
			}
		}
	}
	for a := range Blocks {
		for b := a + 1; b < Blocks; b++ {
			right[a][b] -= own[a][0] + own[b][0]
			pairs[a][b] -= own[a][1] + own[b][1]
			right[b][a], pairs[b][a] = right[a][b], pairs[a][b]
		}
	}
	return right, pairs
}
