package perfmodel

import (
	"math"

	"clustergym/env/workerplace"
)

// Features is the number of features of a job in its placement: its type; its workers, the number of servers that
// they are on, and the largest part on one of them; and, type by type, how much of other jobs is on its servers, on
// the worst of them and in the mean over its workers. Neither the order of jobs nor that of servers matters.
const Features = workerplace.Types + 3 + 2*workerplace.Types

// describe writes the features of job j.
func describe(dst []float32, p *workerplace.Placement, j int) {
	const types = workerplace.Types
	clear(dst)
	a := &p.Jobs[j]
	dst[a.Type] = 1
	worst, mean := dst[types+3:2*types+3], dst[2*types+3:]
	servers, most := 0, int32(0)
	for m, w := range a.On {
		if w == 0 {
			continue
		}
		servers++
		most = max(most, w)
		var here [types]float32
		for i := range p.Jobs {
			if b := &p.Jobs[i]; i != j && b.On[m] > 0 {
				here[b.Type] += float32(b.On[m]) / float32(b.Workers)
			}
		}
		for t, x := range here {
			worst[t] = max(worst[t], x)
			mean[t] += x * float32(w) / float32(a.Workers)
		}
	}
	dst[types], dst[types+1], dst[types+2] = float32(a.Workers)/8, float32(servers)/8, float32(most)/float32(max(a.Workers,
		1))
}

// Data are measured speeds with the features of the jobs. Not safe for concurrent use.
type Data struct {
	X []float32 // [N, Features]
	Y []float32 // [N], logarithm of the speed divided by that of the job alone
}

// Len returns the number of measurements.
func (d *Data) Len() int { return len(d.Y) }

// Add adds the measurements of one interval. A speed of 0 comes from a failure and is ignored.
func (d *Data) Add(p *workerplace.Placement, measured []float64) {
	for j, v := range measured {
		if !(v > 0) {
			continue
		}
		at := len(d.X)
		d.X = append(d.X, make([]float32, Features)...)
		describe(d.X[at:], p, j)
		d.Y = append(d.Y, float32(math.Log(v)))
	}
}

// Last returns the newest n measurements, or all if there are fewer. It shares their memory.
func (d *Data) Last(n int) *Data {
	from := max(0, d.Len()-n)
	return &Data{X: d.X[from*Features:], Y: d.Y[from:]}
}
