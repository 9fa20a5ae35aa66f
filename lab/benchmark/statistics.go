package benchmark

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/internal/rng"
	"clustergym/internal/statistic"
)

// Scores are the scores of one policy: [task][run]. Tasks may have different numbers of runs, at least one each.
//
// Aggregates follow Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice", NeurIPS
// 2021, and the program rliable that belongs to it, where every task has as many runs as the others.
type Scores [][]float64

// weighted is the score of a run and how much it counts. A task's runs together count as much as another task's.
type weighted struct{ score, weight float64 }

// sorted returns the scores of all runs of all tasks in ascending order, and the sum of their weights, which is the
// number of runs if every task has as many.
func (s Scores) sorted() (all []weighted, total float64) {
	most := 0
	for _, runs := range s {
		most = max(most, len(runs))
	}
	for _, runs := range s {
		w := 1.0
		if len(runs) < most {
			w = float64(most) / float64(len(runs))
		}
		for _, v := range runs {
			all = append(all, weighted{v, w})
		}
	}
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.score, b.score) })
	return all, float64(most * len(s))
}

// means returns the mean of each task's runs.
func (s Scores) means() []float64 {
	m := make([]float64, len(s))
	for t, runs := range s {
		m[t] = statistic.Mean(runs)
	}
	return m
}

// moved returns s with the scores of task t moved by a distance.
func (s Scores) moved(t int, by float64) Scores {
	out := slices.Clone(s)
	out[t] = slices.Clone(s[t])
	for i := range out[t] {
		out[t][i] += by
	}
	return out
}

// IQM is the interquartile mean over all runs of all tasks, their eq. for 25 % trimming. Where a quarter of the scores
// is no whole number, those at its edges count in part; rliable cuts whole scores, which is the same wherever a quarter
// is one.
func (s Scores) IQM() float64 {
	all, total := s.sorted()
	low, high := total/4, total-total/4 // what lies between is the middle half
	sum, at := 0.0, 0.0
	for _, v := range all {
		if part := min(at+v.weight, high) - max(at, low); part > 0 {
			sum += part * v.score
		}
		at += v.weight
	}
	return sum / (high - low)
}

// Mean is the mean of the tasks' means.
func (s Scores) Mean() float64 { return statistic.Mean(s.means()) }

// Median is the median of the tasks' means.
func (s Scores) Median() float64 {
	m := s.means()
	slices.Sort(m)
	if len(m) == 0 {
		return math.NaN()
	}
	return (m[(len(m)-1)/2] + m[len(m)/2]) / 2
}

// Gap is the optimality gap at a score of 1: by how much runs fall short of it in the mean, where a score above 1
// counts as 1.
func (s Scores) Gap() float64 {
	sum := 0.0
	for _, runs := range s {
		task := 0.0
		for _, v := range runs {
			task += min(v, 1)
		}
		sum += task / float64(len(runs))
	}
	return 1 - sum/float64(len(s))
}

// Profile is the score distribution: for each tau, the share of runs whose score is above it.
func (s Scores) Profile(taus []float64) []float64 {
	out := make([]float64, len(taus))
	for i, tau := range taus {
		for _, runs := range s {
			above := 0
			for _, v := range runs {
				if v > tau {
					above++
				}
			}
			out[i] += float64(above) / float64(len(runs))
		}
		out[i] /= float64(len(s))
	}
	return out
}

// Improvement is the probability that a run of s scores higher than a run of other on the same task, averaged over
// tasks: Mann and Whitney's U over the number of pairs, ties half. Both have the same tasks.
func (s Scores) Improvement(other Scores) float64 {
	sum := 0.0
	for t := range s {
		u := 0.0
		for _, x := range s[t] {
			for _, y := range other[t] {
				switch {
				case x > y:
					u++
				case x == y:
					u += .5
				}
			}
		}
		sum += u / float64(len(s[t])*len(other[t]))
	}
	return sum / float64(len(s))
}

// draws is the number of resamples of every interval.
const draws = 2000

// resampler draws scores like those of s into its own memory.
type resampler struct {
	from  Scores
	out   Scores
	rng   *rand.Rand
	tasks bool
}

func newResampler(s Scores, seed uint64, name string, tasks bool) *resampler {
	r := &resampler{from: s, rng: rng.Stream(seed, "benchmark/"+name), tasks: tasks, out: make(Scores, len(s))}
	most := 0
	for _, runs := range s {
		most = max(most, len(runs))
	}
	for t := range r.out {
		r.out[t] = make([]float64, 0, most)
	}
	return r
}

// next draws every task's runs with replacement, and with tasks set the tasks before: the stratified bootstrap.
func (r *resampler) next() Scores {
	for t := range r.from {
		from := r.from[t]
		if r.tasks {
			from = r.from[r.rng.IntN(len(r.from))]
		}
		r.out[t] = r.out[t][:0]
		for range from {
			r.out[t] = append(r.out[t], from[r.rng.IntN(len(from))])
		}
	}
	return r.out
}

// Interval returns the 95 % percentile interval of an aggregate by the stratified bootstrap. Runs are drawn within each
// task: what other runs on these tasks might have given. With tasks set, tasks are drawn too: what other tasks of their
// kind might have.
func (s Scores) Interval(seed uint64, tasks bool, aggregate func(Scores) float64) [2]float64 {
	name := "runs"
	if tasks {
		name = "tasks"
	}
	r := newResampler(s, seed, name, tasks)
	out := make([]float64, draws)
	for d := range out {
		out[d] = aggregate(r.next())
	}
	return percentiles(out)
}

// ImprovementInterval is the 95 % interval of Improvement, with the runs of both drawn independently.
func (s Scores) ImprovementInterval(seed uint64, other Scores) [2]float64 {
	a, b := newResampler(s, seed, "improvement/a", false), newResampler(other, seed, "improvement/b", false)
	out := make([]float64, draws)
	for d := range out {
		out[d] = a.next().Improvement(b.next())
	}
	return percentiles(out)
}

// percentiles returns the 2.5 % and 97.5 % quantiles. It sorts v.
func percentiles(v []float64) [2]float64 {
	slices.Sort(v)
	return [2]float64{statistic.Quantile(v, .025), statistic.Quantile(v, .975)}
}
