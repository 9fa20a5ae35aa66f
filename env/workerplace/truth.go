package workerplace

import (
	"fmt"
	"math"

	"clustergym/internal/rng"
	"clustergym/traces/profile"
)

// Types is the number of job types.
const Types = 8

// What a worker takes beside its GPU.
const (
	workerCPUs   = 2
	workerMemory = 8
	largest      = 8 // workers of a job
)

// Placed is a job that runs.
type Placed struct {
	Job     int // of the episode
	Type    int
	Workers int
	On      []int32 // workers on each server
}

// Placement is all that runs in one interval. Its slices belong to whoever made it.
type Placement struct {
	Servers int
	Jobs    []Placed
}

// Speeds says how fast jobs run: the truth, or a learned model. dst [len(p.Jobs)] becomes each job's speed as a part of
// what it would have alone in its best placement. Positive and finite numbers; it allocates nothing in steady state,
// and a job's number depends on p alone.
type Speeds interface {
	Speeds(dst []float64, p *Placement) error
}

// Truth is how fast jobs really run: the speed of the placement's shape by the figures of DL2's job types, times what
// the job keeps beside every other job on a server, κ to the power of the share of its workers that the other has
// there, on the server where that is least: workers wait for the slowest of them. With crowding it loses more beside
// every two others on a server than beside each of them alone.
type Truth struct {
	comm  string
	gpus  int
	table [Types][Types]float64 // as drawn
	logs  [Types][Types]float64 // logarithm of what the first keeps beside the second: table's, times the exponent
	power float64               // exponent of what jobs keep, Config.Interference with the task's factor
	crowd float64               // Config.Crowding, a factor of power for triples
	// logarithm of what the first keeps, beyond the pairs, beside the two others together; all 0 without crowd
	triple [Types][Types][Types]float64
	known  *[Types][Types]bool // pairs of table that were measured; nil = none
	models []profile.DL2Model
	work   *Workload // whose measured speeds count; nil = those of models
	on, ps []int
}

var _ Speeds = (*Truth)(nil)

// Figures of DeepShare's table of 36 × 36 co-locations.
const (
	keptLeast = 0.123
	keptMean  = 0.789
	keptBelow = 0.65 // share of pairs that keep less than 0.9
)

// NewTruth is the truth of a configuration.
func NewTruth(c Config) *Truth {
	t := &Truth{comm: c.Comm, gpus: c.GPUs, models: profile.DL2Models(), on: make([]int, c.Servers),
		ps: make([]int, c.Servers)}
	t.table = Table(c.Table)
	if t.crowd = c.Crowding; t.crowd > 0 {
		t.triple = triples(c.Table)
	}
	t.raise(c.Interference)
	return t
}

// record has the types be those of a workload.
func (t *Truth) record(w *Workload) {
	t.table, t.known = w.kept, &w.known
	if !w.dl2 {
		t.work = w
	}
}

var tableKey = rng.Hash("workerplace/episode table")

// redraw draws what was not measured for the episode of a seed.
func (t *Truth) redraw(seed uint64) {
	seed = rng.At(seed, tableKey)
	drawn := Table(seed)
	for a := range drawn {
		for b, kept := range drawn[a] {
			if t.known == nil || !t.known[a][b] {
				t.table[a][b] = kept
			}
		}
	}
	if t.crowd > 0 {
		t.triple = triples(seed)
	}
}

// raise sets the exponent of what jobs keep beside each other.
func (t *Truth) raise(power float64) {
	t.power = power
	for a := range t.logs {
		for b, k := range t.table[a] {
			t.logs[a][b] = power * math.Log(k)
		}
	}
}

// Table draws what each type keeps beside each other: 64 numbers of one distribution, one from each of as many parts of
// equal probability, given to the pairs at random. The distribution is uniform above 0.9, with the published share, and
// a power of a uniform number below, from the published least value and with the exponent that gives the published
// mean.
func Table(seed uint64) (kept [Types][Types]float64) {
	const n = Types * Types
	src := rng.Stream(seed, "workerplace/interference")
	for i, k := range src.Perm(n) {
		kept[i/Types][i%Types] = keptAt(float64(k) / (n - 1))
	}
	return kept
}

// keptAt is the u-quantile of the distribution of what a job keeps.
func keptAt(u float64) float64 {
	if u >= keptBelow {
		return 0.9 + 0.1*(u-keptBelow)/(1-keptBelow)
	}
	// E[least + (0.9-least)·u^a] = (mean − (1−below)·0.95)/below
	a := (0.9-keptLeast)/((keptMean-(1-keptBelow)*0.95)/keptBelow-keptLeast) - 1
	return keptLeast + (0.9-keptLeast)*math.Pow(u/keptBelow, a)
}

// triples draws what each type keeps, beyond the pairs, beside every two types together. It has the distribution of the
// pairs; logs are its logarithms.
func triples(seed uint64) (logs [Types][Types][Types]float64) {
	src := rng.Stream(seed, "workerplace/crowding")
	for a := range logs {
		for b := range logs[a] {
			for c := range b + 1 {
				logs[a][b][c] = math.Log(keptAt(src.Float64()))
				logs[a][c][b] = logs[a][b][c]
			}
		}
	}
	return logs
}

// Kept is what a job of type a keeps beside one of type b that has all of its workers on the same server.
func (t *Truth) Kept(a, b int) float64 { return math.Exp(t.logs[a][b]) }

// rate is the steps a second of all workers of a job in a shape.
func (t *Truth) rate(kind int, on []int) float64 {
	m := &t.models[kind]
	if t.comm == "ps" {
		copy(t.ps, on) // a parameter server beside every worker
		return profile.PSSpeed(*m, on, t.ps[:len(on)])
	}
	workers, servers := 0, 0
	for _, w := range on {
		workers += w
		if w > 0 {
			servers++
		}
	}
	if workers == 0 {
		return 0
	}
	bandwidth := m.IntraMBps
	if servers > 1 {
		bandwidth = min(m.IntraMBps, m.InterMBps)
	}
	// A ring sends every part of the gradient twice past each other worker.
	step := m.Step + 2*float64(workers-1)/float64(workers)*m.MB/bandwidth
	return float64(workers) / step
}

// alone is the rate in the best placement: on as few servers as hold the job.
func (t *Truth) alone(kind, workers int) float64 {
	clear(t.on)
	left := workers
	for m := range t.on {
		t.on[m] = min(left, t.gpus)
		left -= t.on[m]
	}
	return t.rate(kind, t.on)
}

// shape returns the speed of a job in the shape of its placement, without other jobs, as a part of that in the best
// one.
func (t *Truth) shape(a *Placed) float64 {
	if t.work != nil {
		servers := 0
		for _, w := range a.On {
			if w > 0 {
				servers++
			}
		}
		return t.work.relative(a.Type, a.Workers, servers, (a.Workers+t.gpus-1)/t.gpus)
	}
	best := t.alone(a.Type, a.Workers)
	clear(t.on)
	for m, w := range a.On {
		t.on[m] = int(w)
	}
	return t.rate(a.Type, t.on) / best
}

// beside is the logarithm of what job j keeps on server m, beyond the pairs, beside job i together with each of the
// jobs before it. Added up over i it counts every two others once. Shares of workers count as in the pairs, multiplied.
func (t *Truth) beside(p *Placement, j, i, m int) float64 {
	lost, b := 0.0, &p.Jobs[i]
	for k := range i {
		if c := &p.Jobs[k]; k != j && c.On[m] > 0 {
			lost += t.triple[p.Jobs[j].Type][b.Type][c.Type] * float64(c.On[m]) / float64(c.Workers)
		}
	}
	return t.power * t.crowd * lost * float64(b.On[m]) / float64(b.Workers)
}

// Speeds implements the interface of that name.
func (t *Truth) Speeds(dst []float64, p *Placement) error {
	if p.Servers > len(t.on) || len(dst) != len(p.Jobs) {
		return fmt.Errorf("workerplace: %d servers and room for %d of %d jobs", p.Servers, len(dst), len(p.Jobs))
	}
	for j := range p.Jobs {
		a := &p.Jobs[j]
		slowest := 0.0
		for m, w := range a.On {
			if w == 0 {
				continue
			}
			lost := 0.0 // logarithm of what is kept
			for i := range p.Jobs {
				if b := &p.Jobs[i]; i != j && b.On[m] > 0 {
					lost += t.logs[a.Type][b.Type] * float64(b.On[m]) / float64(b.Workers)
					if t.crowd > 0 {
						lost += t.beside(p, j, i, m)
					}
				}
			}
			slowest = min(slowest, lost)
		}
		dst[j] = t.shape(a) * math.Exp(slowest)
	}
	return nil
}
