package rounds

import (
	"math"

	"clustergym/simulator/sim"
)

// gavelLAS is least attained service as max-min fairness (OSDI 2020, section 4.1). With T(x) = Σ_t T_t·x_t the
// throughput of a job that has shares x, it maximises the least of
//
//	T(x) / (w·T(equal)) × size
//
// over all jobs. w is the job's weight; equal are shares in proportion to the number of GPUs of each type, with sum
// 1. If there is one type, or all are equally fast, every job of the same weight gets the same GPU-time.
type gavelLAS struct {
	f     *fair
	scale []float64 // throughput at level 1
}

func (g *gavel) attained(v *sim.View) *gavelLAS {
	f := &g.fair
	d := &gavelLAS{f, make([]float64, len(f.size))}
	room := sum(f.room)
	for k, e := range g.list {
		i := g.row[k]
		if i < 0 || d.scale[i] > 0 {
			continue
		}
		equal := 0.0
		for t, s := range f.speed[i*f.types : (i+1)*f.types] {
			equal += s * f.room[t] / room
		}
		d.scale[i] = equal * weight(v.Trace(e.Job)) / f.size[i]
	}
	return d
}

func (d *gavelLAS) need(i int, z float64) float64 { return z * d.scale[i] }

func (d *gavelLAS) most(i int) float64 { return d.f.fastest(i) / d.scale[i] }

// low returns the level that equal parts of the cluster give.
func (d *gavelLAS) low() float64 {
	z := math.Inf(1)
	for i := range d.scale {
		z = min(z, d.f.isolated(i)/d.scale[i])
	}
	return z
}

// isolated returns the throughput of i with an equal part of every type: room/jobs GPUs of each, for at most all the
// time.
func (f *fair) isolated(i int) float64 {
	n, time, rate := sum(f.copies), 0.0, 0.0
	for t, s := range f.speed[i*f.types : (i+1)*f.types] {
		x := f.room[t] / n / f.size[i]
		time += x
		rate += s * x
	}
	return rate / max(1, time)
}
