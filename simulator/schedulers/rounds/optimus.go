package rounds

import (
	"clustergym/internal/grow"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// optimus gives GPUs to elastic jobs where they shorten the remaining time most (Peng et al., "Optimus: an efficient
// dynamic resource scheduler for deep learning clusters", EuroSys 2018, section 4.1, as far as it is known here).
// Every 10 minutes each job, in the order of the trace, gets the least that it can run on: its whole gang, or the
// lower end of its range if it is elastic. Then, one by one, a GPU goes to the elastic job whose estimated remaining
// time it makes fall most,
//
//	(left/T(n) − left/T(n+1)) · T(asked) / share of a GPU,
//
// where T is the throughput by number of GPUs (traces.Profile.Scaling; proportional if nothing is known), as long as
// the time falls and GPUs are left. Ties go to the job that comes first in the trace.
//
// The paper counts workers and parameter servers, and estimates T and what is left from the job's progress; here a GPU
// is a worker, and the estimates are those of the configuration. Gangs of other jobs are as large as they ask for.
type optimus struct {
	*rounds
	length, ends int64
	members
	n     []int // by place in list
	at    []int // place in list, by job
	gains queue.Heap
	order []place.Ask
	room  []int // thousandths by virtual cluster; index 0 if there are none
}

func (o *optimus) reset(*sim.View) {
	o.ends = 0
	o.members.reset()
}

func (o *optimus) event(*sim.View, *sim.Event) {}

func (o *optimus) until(v *sim.View) int64 {
	if busy(v, sim.Running) {
		return o.ends
	}
	return 0
}

func (o *optimus) decide(v *sim.View) error {
	if int64(v.Now()) < o.ends && busy(v, sim.Running) {
		return nil
	}
	if o.members.update(v); len(o.list) == 0 {
		return nil
	}
	o.ends = int64(v.Now()) + o.length
	o.Begin(v, func(sim.Job) bool { return true })
	o.divide(v)
	o.order = o.order[:0]
	for i, e := range o.list {
		if o.n[i] > 0 {
			o.order = append(o.order, place.Ask{Job: e.Job, Type: place.AnyType, N: o.n[i]})
		}
	}
	// If the counted GPUs are not placed so that a larger gang fits, the job gets the least.
	for _, e := range o.list {
		o.order = append(o.order, place.Ask{Job: e.Job, Type: place.AnyType, N: least(v, e.Job)})
	}
	o.PutAll(v, o.order)
	return nil
}

// least returns the smallest gang size of j.
func least(v *sim.View, j sim.Job) int {
	if t := v.Trace(j); t.MaxGPUs > 0 {
		return max(1, t.MinGPUs)
	}
	return v.Asked(j)
}

// divide computes how many GPUs each job gets.
func (o *optimus) divide(v *sim.View) {
	free := o.On.FreeMilli()
	o.room = o.room[:0]
	for vc := range len(o.On.VCs()) + 1 {
		if vc == 0 {
			o.room = append(o.room, free)
		} else if o.On.Pool() {
			o.room = append(o.room, min(free, o.On.VCRoom(int32(vc))))
		} else {
			o.room = append(o.room, min(free, o.On.VCRoom(int32(vc)), o.On.VCFree(int32(vc))*1000))
		}
	}
	spend := func(j sim.Job, n int) bool {
		r := v.Request(j)
		if m := n * r.Milli; m > free || m > o.room[r.VC] {
			return false
		} else if free -= m; r.VC > 0 {
			o.room[r.VC] -= m
		} else {
			o.room[0] = free
		}
		return true
	}
	o.n, o.gains = o.n[:0], o.gains[:0]
	for i, e := range o.list {
		*grow.At(&o.at, e.Job) = i
		n := least(v, e.Job)
		if !spend(e.Job, n) {
			n = 0
		}
		o.n = append(o.n, n)
		o.offer(v, e, n)
	}
	for len(o.gains) > 0 {
		e := o.gains.Pop()
		if n := &o.n[o.at[e.Job]]; spend(e.Job, 1) {
			*n++
			o.offer(v, e, *n)
		}
	}
}

// offer notes what one GPU more than n would gain for a job, if it is elastic.
func (o *optimus) offer(v *sim.View, e queue.Entry, n int) {
	t := v.Trace(e.Job)
	if n == 0 || n >= t.MaxGPUs {
		return
	}
	p := t.Profile
	left := o.remaining(v, e.Job) * p.Throughput(v.Asked(e.Job))
	e.Key = -(left/p.Throughput(n) - left/p.Throughput(n+1)) / float64(v.Request(e.Job).Milli)
	if e.Key < 0 {
		o.gains.Push(e)
	}
}
