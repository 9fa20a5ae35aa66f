package asrpt

import (
	"cmp"
	"math"
	"slices"
)

// virtual is a single machine that runs preemptive SRPT: of the jobs that it has, always the one with the least work
// left.
type virtual struct {
	now  float64
	jobs []virtualJob // the one with the least left last
}

type virtualJob struct {
	job  int
	left float64 // seconds
}

// add gives the machine a job of so many seconds.
func (v *virtual) add(now float64, j int, work float64) {
	at, _ := slices.BinarySearchFunc(v.jobs, virtualJob{j, work}, func(a, b virtualJob) int {
		return cmp.Or(cmp.Compare(b.left, a.left), cmp.Compare(b.job, a.job))
	})
	if len(v.jobs) == 0 {
		v.now = now
	}
	v.jobs = slices.Insert(v.jobs, at, virtualJob{j, work})
}

// end returns when the next job is finished if none is added before.
func (v *virtual) end() float64 {
	if len(v.jobs) == 0 {
		return math.Inf(1)
	}
	return v.now + v.jobs[len(v.jobs)-1].left
}

// advance runs until now, and calls done for each job that is finished by then, in order.
func (v *virtual) advance(now float64, done func(j int, at float64)) {
	for len(v.jobs) > 0 {
		last := &v.jobs[len(v.jobs)-1]
		if end := v.now + last.left; end <= now {
			j := last.job
			v.jobs = v.jobs[:len(v.jobs)-1]
			v.now = end
			done(j, end)
			continue
		}
		last.left -= now - v.now
		break
	}
	v.now = now
}
