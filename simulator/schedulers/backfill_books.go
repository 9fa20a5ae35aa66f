package schedulers

import (
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// books are what admission and back-filling share with the scheduler that they decide for.
type books struct {
	inputs
	rule  rule
	place place.Placement
	picky bool           // the placement may refuse what fits
	ranks *queue.Classes // classes of waiting jobs are ranked again, not jobs; nil = jobs are
	jobs  []queue.Mark   // by job
	odd   int            // jobs in the system for which counting GPUs is not enough
	freed queue.Freed
	n     int // queues, by virtual cluster; 1 if there are none, or one owns the whole cluster
}

// key returns the rank of j now, least first.
func (b *books) key(v *sim.View, j sim.Job) float64 { return b.rule.key(&b.inputs, v, j) }

// queueOf returns the number of j's queue.
func (b *books) queueOf(v *sim.View, j sim.Job) int {
	if b.n == 1 {
		return 0
	}
	return int(v.Request(j).VC)
}

// class returns the class of j, 0 if jobs are not ranked by class.
func (b *books) class(j sim.Job) int32 {
	if b.ranks == nil {
		return 0
	}
	return b.jobs[j].Class
}

// newKey returns j's key; ok is false if it does not wait, or if it is another job than the one that holder was given.
func (b *books) newKey(v *sim.View, j sim.Job, holder backfiller) (key float64, ok bool) {
	if v.State(j) != sim.Waiting || !holder.holds(v, j) {
		return 0, false
	}
	return b.key(v, j), true
}

// backfiller holds the waiting jobs and decides, with back-filling or admission commit.
type backfiller interface {
	reset(v *sim.View)
	// push takes in a job that waits.
	push(v *sim.View, e queue.Entry)
	// clear forgets all waiting jobs; they are pushed again.
	clear()
	// rekey gives every waiting job its new key and forgets those that have none (books.newKey). Jobs are not ranked by
	// class.
	rekey(v *sim.View)
	// rerank gives the jobs whose class has another key since the last update (ranks.moved) their new one.
	rerank()
	// holds reports whether j has been pushed and still waits.
	holds(v *sim.View, j sim.Job) bool
	// idle reports whether the next decision is the same in whatever order the jobs wait.
	idle(v *sim.View) bool
	// event updates the books of running jobs: j has started or stopped.
	event(v *sim.View, j sim.Job)
	// disturbed says that other code has started or stopped jobs at this point.
	disturbed(v *sim.View)
	// forget drops the reservations that earlier passes have made.
	forget()
	// open begins a pass.
	open(v *sim.View)
	// next makes one decision, or returns done.
	next(v *sim.View, d *sim.Decision) (done bool)
}

// within returns the time from now until t, at least 0; never if t is never.
func within(now, t int64) int64 {
	if t == queue.Never {
		return queue.Never
	}
	return max(0, t-now)
}

// grown returns list with n elements. Those that it had keep their memory.
func grown[T any](list []T, n int) []T {
	if more := n - cap(list); more > 0 {
		list = append(list[:cap(list)], make([]T, more)...)
	}
	return list[:n]
}
