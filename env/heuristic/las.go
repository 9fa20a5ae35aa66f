package heuristic

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"clustergym/env/heuristic/queue"
	"clustergym/env/sim"
)

// las is least attained service in discretised queues (Tiresias: Gu et al., NSDI 2019; "dlas" in its simulator). A
// job begins in queue 0 and falls to the next queue when its run time reaches the queue's limit; it never returns.
// Lower queues go first. Within a queue, running jobs go first, in the order in which they started, then waiting
// jobs. A job that is stopped goes to the front of the waiting ones. A job that falls goes to the back of its new
// queue, even if it is stopped in the same pass. Several that fall at once fall in the order of the trace.
//
// With Config.Promote, Tiresias' knob against starvation, a job that waits below queue 0 rises to the back of queue 0
// when it has waited this many times as long as it has run. Both are counted since it last rose, and waiting only
// from when it has run again. Its run time then counts from 0 again. Promotion counts time even if GPU-time decides
// the queue.
var las = rule{name: "las", preemptive: true, key: lasKey,
	state: func(s *Scheduler) stateful { return newQueues(s, false, false) }}

// las2D is las with GPU-time in place of time ("dlas-gpu" in Tiresias' simulator, every number of which it
// reproduces). A fall is noticed at the next pass, and the passes made for it are late: like that simulator it
// schedules them ⌊(limit − run time)/GPUs⌋ whole seconds after the last one, where (limit − run time × GPUs)/GPUs
// would be right.
var las2D = rule{name: "las-2d", preemptive: true, key: lasKey,
	state: func(s *Scheduler) stateful { return newQueues(s, true, true) }}

// las2DPrompt is las2D with falls at the moment when the GPU-time reaches the limit, as in the paper.
var las2DPrompt = rule{name: "las-2d-prompt", preemptive: true, key: lasKey,
	state: func(s *Scheduler) stateful { return newQueues(s, true, false) }}

func lasKey(s *Scheduler, _ *sim.View, j sim.Job) float64 { return s.state.(*queues).at[j].key() }

// queuePlace is a job's queue and its rank within: running jobs below waitBase, in order of start; waiting jobs around it,
// with the front growing downwards and the back upwards.
type queuePlace struct {
	queue int
	rank  float64
	ran   int64 // run time that no longer counts
	idle  int64 // waiting time that no longer counts
}

const waitBase = 1 << 48

// key orders by queue, then rank. Ranks stay below 2^49 and queues below 2^4, so the sum is exact in a float64.
func (p queuePlace) key() float64 { return float64(p.queue)*(1<<49) + p.rank }

type queues struct {
	s                   *Scheduler
	byGPU, late         bool
	limits              []int64
	promote             float64
	at                  []queuePlace  // by job
	rising              []sim.Job     // scratch
	falling             []queue.Entry // scratch
	started, front, end []float64
}

// newQueues returns empty queues. It reuses those of the previous run.
func newQueues(s *Scheduler, byGPU, late bool) *queues {
	q, ok := s.state.(*queues)
	if !ok {
		n := len(s.cfg.Limits) + 1
		q = &queues{s: s, byGPU: byGPU, late: late, promote: s.cfg.Promote, started: make([]float64, n), front: make([]float64, n), end: make([]float64, n)}
		for _, d := range s.cfg.Limits {
			q.limits = append(q.limits, int64(d))
		}
	}
	q.at = q.at[:0]
	for i := range q.started {
		q.started[i], q.front[i], q.end[i] = 0, waitBase, waitBase
	}
	return q
}

func (q *queues) submit(_ *sim.View, j sim.Job) {
	for int(j) >= len(q.at) {
		q.at = append(q.at, queuePlace{})
	}
	q.at[j] = queuePlace{queue: 0, rank: q.back(0)}
}

func (q *queues) back(queue int) float64 {
	q.end[queue]++
	return q.end[queue]
}

func (q *queues) before(v *sim.View, running []queue.Entry) (until int64) {
	now := int64(v.Now())
	// Several that fall at once fall in the order of the trace.
	q.falling = q.falling[:0]
	for _, e := range running {
		p := &q.at[e.Job]
		if p.queue == len(q.limits) {
			continue
		}
		ran, per := q.attained(v, e.Job)
		limit := q.limits[p.queue]
		if per < 0 {
			limit, per = reaches(limit, -per), 1
		}
		if ran*per >= limit {
			q.falling = append(q.falling, e)
		} else {
			until = earlier(until, now, q.fallsAt(now, limit, ran, per))
		}
	}
	slices.SortFunc(q.falling, func(a, b queue.Entry) int { return a.Pos - b.Pos })
	for _, e := range q.falling {
		p := &q.at[e.Job]
		ran, share := q.attained(v, e.Job)
		for ; p.queue < len(q.limits); p.queue++ {
			limit, per := q.limits[p.queue], share
			if per < 0 {
				limit, per = reaches(limit, -per), 1
			}
			if ran*per < limit {
				until = earlier(until, now, q.fallsAt(now, limit, ran, per))
				break
			}
			p.rank = q.back(p.queue + 1)
		}
	}
	if q.promote > 0 {
		for _, j := range v.Waiting() {
			until = earlier(until, now, q.rises(v, j))
		}
	}
	return until
}

// attained returns how long j, which runs, has run as far as that counts, and how much service that is per unit of
// time: 1 if time counts, else its GPUs or, if it has shares of GPUs, minus the sum of their thousandths. The rate is 0
// for a job without GPUs if GPU-time counts, so such a job never falls.
func (q *queues) attained(v *sim.View, j sim.Job) (ran, per int64) {
	ran, per = int64(v.Ran(j))-q.at[j].ran, 1
	if q.byGPU {
		r := v.Request(j)
		if per = int64(r.GPUs); r.Milli < 1000 {
			per *= -int64(r.Milli)
		}
	}
	return ran, per
}

// reaches returns after which run time on that many thousandths of a GPU a job has attained limit. Beside this run time
// the rate is 1.
func reaches(limit, milli int64) int64 {
	hi, lo := bits.Mul64(uint64(limit), 1000)
	if hi >= uint64(milli) {
		return queue.Never
	}
	t, rest := bits.Div64(hi, lo, uint64(milli))
	if rest > 0 {
		t++
	}
	return int64(min(t, queue.Never))
}

// fallsAt returns when a running job reaches the limit of its queue, 0 if never.
func (q *queues) fallsAt(now, limit, ran, per int64) int64 {
	switch {
	case per == 0 || limit >= queue.Never-now:
		return 0
	case q.late:
		const second = int64(time.Second)
		return now + (limit-ran)/(per*second)*second
	}
	return now + (limit-ran*per+per-1)/per
}

// earlier returns the earlier of until (0 = never) and t, which counts only if it is after now.
func earlier(until, now, t int64) int64 {
	if t > now && (until == 0 || t < until) {
		return t
	}
	return until
}

// waitedSoFar returns how long j has waited since it was submitted.
func waitedSoFar(v *sim.View, j sim.Job) int64 {
	return int64(v.Now() - v.Trace(j).Submit - v.Ran(j))
}

// rises returns when j comes back to queue 0 if it goes on waiting, 0 if never.
func (q *queues) rises(v *sim.View, j sim.Job) int64 {
	p := &q.at[j]
	ran := int64(v.Ran(j)) - p.ran
	if p.queue == 0 || ran <= 0 {
		return 0
	}
	wait := math.Ceil(q.promote*float64(ran)) - float64(waitedSoFar(v, j)-p.idle)
	if wait > math.MaxInt64/4 {
		return 0
	}
	return max(1, int64(v.Now())+int64(wait))
}

// rise brings waiting jobs that have waited long enough back to queue 0, in the order of the trace.
func (q *queues) rise(v *sim.View) bool {
	if q.promote == 0 {
		return false
	}
	q.rising = q.rising[:0]
	for _, j := range v.Waiting() {
		if t := q.rises(v, j); t > 0 && t <= int64(v.Now()) {
			q.rising = append(q.rising, j)
		}
	}
	slices.SortFunc(q.rising, func(a, b sim.Job) int { return v.Pos(a) - v.Pos(b) })
	for _, j := range q.rising {
		q.at[j] = queuePlace{queue: 0, rank: q.back(0), ran: int64(v.Ran(j))}
	}
	return len(q.rising) > 0
}

func (q *queues) after(v *sim.View, chosen, stopped []queue.Entry) {
	for _, e := range chosen {
		if p := &q.at[e.Job]; p.rank >= waitBase/2 {
			if int64(v.Ran(e.Job)) == p.ran {
				p.idle = waitedSoFar(v, e.Job)
			}
			q.started[p.queue]++
			p.rank = q.started[p.queue]
		}
	}
	for i := len(stopped) - 1; i >= 0; i-- {
		// A job that has just fallen keeps its new place.
		if p := &q.at[stopped[i].Job]; p.rank < waitBase/2 {
			q.front[p.queue]--
			p.rank = q.front[p.queue]
		}
	}
}
