package rounds

import (
	"math"

	"clustergym/simulator/sim"
)

// gavelFTF is finish-time fairness (OSDI 2020, section 4.2; the measure is that of Themis, NSDI 2020). It minimises
// the greatest ρ over all jobs, with
//
//	ρ = (elapsed + left / T(x)) / (isolated + left / T(isolated)),
//
// elapsed is the time since the job was submitted and left its remaining time at rate 1. T(isolated) is its
// throughput with 1/n of the GPUs of every type, where n is the number of jobs. isolated is the time that the job
// would have needed in isolation to get as far as it is, summed from one solution to the next with the throughput in
// isolation of each.
type gavelFTF struct {
	f                   *fair
	elapsed, left, time []float64
}

func (g *gavel) finishTimes(v *sim.View) *gavelFTF {
	f := &g.fair
	n := len(f.size)
	d := &gavelFTF{f, make([]float64, n), make([]float64, n), make([]float64, n)}
	for k, e := range g.list {
		i, m := g.row[k], &g.mark[e.Job]
		if i < 0 {
			continue
		}
		left := max(1, g.remaining(v, e.Job))
		if m.rate > 0 {
			m.isolated += max(0, m.left-left) / m.rate
		}
		m.left, m.rate = left, f.isolated(i)
		d.elapsed[i], d.left[i], d.time[i] = float64(v.Now()-v.Trace(e.Job).Submit), left, m.isolated+left/m.rate
	}
	return d
}

// need implements demands. The level is 1/ρ.

func (d *gavelFTF) need(i int, z float64) float64 {
	if z == 0 {
		return 0
	}
	t := d.time[i]/z - d.elapsed[i]
	if t <= 0 {
		return math.Inf(1)
	}
	return d.left[i] / t
}

func (d *gavelFTF) most(i int) float64 {
	return d.time[i] / (d.elapsed[i] + d.left[i]/d.f.fastest(i))
}

// low returns the level that equal parts of the cluster give.
func (d *gavelFTF) low() float64 {
	z := math.Inf(1)
	for i := range d.time {
		z = min(z, d.time[i]/(d.elapsed[i]+d.left[i]/d.f.isolated(i)))
	}
	return z
}
