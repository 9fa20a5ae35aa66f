package rlscheduler

import (
	"slices"
)

// Slots and Features are the shape of an observation.
const (
	Slots    = 128
	Features = 8
)

// cut is the largest number of a row.
const cut = 1 - 1e-5

// Observer fills observations: which jobs are visible, and a row of numbers for each. Not safe for concurrent use.
type Observer struct {
	// Longest is the largest run time of the log, by which requests are divided.
	Longest int64

	slots  []int32 // places in the list of jobs
	a, b   []int32
	shown  []bool
	places []int
}

// Look chooses the visible jobs of m and returns their places in the queue, by slot. It puts the queue in the order in
// which RLScheduler leaves it, so it must be called exactly once for a decision. The result is valid until the next
// call.
//
// Up to Slots jobs are visible in order of submit. Of more, the shortest and the smallest alternate: the next of the
// list by (request, submit, processors), if it is not visible yet, then the next of the list by (processors, submit,
// request). The queue is left in the order of the second list.
func (o *Observer) Look(m *Machine) []int {
	m.mixed = true
	m.bySubmit()
	o.places = o.places[:0]
	if len(m.waiting) <= Slots {
		for i := range m.waiting {
			o.places = append(o.places, i)
		}
		return o.places
	}
	three := func(x, y int32, key func(j *Job) [3]int64) int {
		p, q := key(&m.jobs[x]), key(&m.jobs[y])
		return slices.Compare(p[:], q[:])
	}
	// Each sort is of the queue as the one before has left it.
	slices.SortStableFunc(m.waiting, func(x, y int32) int {
		return three(x, y, func(j *Job) [3]int64 { return [3]int64{j.Request, j.Submit, int64(j.Procs)} })
	})
	o.a = append(o.a[:0], m.waiting...)
	slices.SortStableFunc(m.waiting, func(x, y int32) int {
		return three(x, y, func(j *Job) [3]int64 { return [3]int64{int64(j.Procs), j.Submit, j.Request} })
	})
	m.mixed = true
	o.b = m.waiting
	o.shown = slices.Grow(o.shown[:0], len(m.jobs))[:len(m.jobs)]
	clear(o.shown)
	o.slots = o.slots[:0]
	for k := 0; len(o.slots) < Slots; k++ {
		for _, at := range [2]int32{o.a[k], o.b[k]} {
			if !o.shown[at] && len(o.slots) < Slots {
				o.shown[at] = true
				o.slots = append(o.slots, at)
			}
		}
	}
	for _, at := range o.slots {
		o.places = append(o.places, slices.Index(m.waiting, at))
	}
	return o.places
}

// Row writes the row of a waiting job: wait/12 h, request/Longest, processors/all, memory, user, group and executable
// (absent: 1), and whether it can start (1 − 1e-5, else 1e-5). The first three are cut at 1 − 1e-5.
func (o *Observer) Row(m *Machine, j *Job, dst []float32) {
	_ = dst[Features-1]
	dst[0] = float32(min(float64(m.now-j.Submit)/43200, cut))
	dst[1] = float32(min(float64(j.Request)/float64(o.Longest), cut))
	dst[2] = float32(min(float64(j.Procs)/float64(m.procs), cut))
	dst[3], dst[4], dst[5], dst[6] = 1, 1, 1, 1
	dst[7] = 1e-5
	if j.Procs <= m.free {
		dst[7] = cut
	}
}
