package workerplace

import (
	"math"
	"math/rand/v2"

	"clustergym/traces/profile"
)

// maxArrivals is the most jobs that come in one interval.
const maxArrivals = 10

// job is one of an episode's.
type job struct {
	kind    int
	workers int
	gpus    int     // of each worker
	work    float64 // intervals alone
	arrives int     // interval at whose beginning it comes

	done   float64 // of work
	start  int     // interval in which it was placed, -1 = not yet
	finish float64 // time, in intervals; NaN = not yet
	seen   float64 // speed measured last, as a part of that alone
	on     []int32 // workers on each server
	placed int     // workers
}

// sizes of jobs in workers, with their probabilities.
var (
	sizes      = [...]int{1, 2, 4, largest}
	sizeShares = [...]float64{0.4, 0.3, 0.2, 0.1}
)

// lengths are the types' lengths by their mean.
var lengths = func() (l [Types]float64) {
	sum := 0.0
	for i, m := range profile.DL2Models() {
		l[i] = m.Epochs
		sum += m.Epochs / Types
	}
	for i := range l {
		l[i] /= sum
	}
	return l
}()

// gpu says whether workers of a type take a GPU.
var gpu = func() (g [Types]int) {
	for i, m := range profile.DL2Models() {
		g[i] = m.WorkerGPUs
	}
	return g
}()

// draw fills jobs with an episode's. Every job takes the same number of draws, whatever the task, so that tasks differ
// in what they say alone.
func draw(jobs []job, c *Config, t *task, src, times *rand.Rand) {
	interval, left := 0, 0
	total := 0.0
	for _, w := range t.mix {
		total += w
	}
	for i := range jobs {
		for left == 0 {
			left = min(poisson(c.Arrivals*t.arrivals, times), maxArrivals)
			if left == 0 || i > 0 {
				interval++
			}
		}
		left--
		j := &jobs[i]
		j.arrives = interval
		u, sum := src.Float64()*total, 0.0
		j.kind = Types - 1
		for k, w := range t.mix {
			if sum += w; u < sum {
				j.kind = k
				break
			}
		}
		u, sum = src.Float64(), 0
		j.workers = sizes[len(sizes)-1]
		for k, p := range sizeShares {
			if sum += p; u < sum {
				j.workers = sizes[k]
				break
			}
		}
		j.work = max(0.1, c.Length*t.length*lengths[j.kind]*(0.5+src.Float64()))
		j.gpus = gpu[j.kind]
		j.reset()
	}
}

// reset makes a job one that has not been placed.
func (j *job) reset() {
	j.done, j.start, j.finish, j.seen, j.placed = 0, -1, math.NaN(), 0, 0
	clear(j.on)
}

// poisson draws a Poisson number of a small mean (Knuth).
func poisson(mean float64, src *rand.Rand) int {
	limit, p := math.Exp(-mean), 1.0
	for k := 0; ; k++ {
		if p *= src.Float64(); p <= limit {
			return k
		}
	}
}
