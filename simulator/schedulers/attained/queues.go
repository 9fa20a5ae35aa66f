package attained

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"clustergym/internal/grow"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// queuePlace is a job's queue and its rank within: running jobs below waitBase, in order of start; waiting jobs around
// it, with the front growing downwards and the back upwards.
type queuePlace struct {
	queue int
	rank  float64
	ran   int64 // run time that no longer counts
	idle  int64 // waiting time that no longer counts
}

const waitBase = 1 << 48

// key orders by queue, then rank. Ranks stay below 2^49 and queues below 2^4, so the sum is exact in a float64.
func (p queuePlace) key() float64 { return float64(p.queue)*(1<<49) + p.rank }

// Queues are the queues of las, las-2d and las-2d-prompt.
type Queues struct {
	byGPU, late         bool
	limits              []int64
	promote             float64
	at                  []queuePlace  // by job
	rising              []sim.Job     // scratch
	falling             []queue.Entry // scratch
	started, front, end []float64
}

// NewQueues returns queues with these limits, for time or, byGPU, for GPU-time. late: falls are noticed as Tiresias'
// simulator notices them.
func NewQueues(limits []time.Duration, promote float64, byGPU, late bool) *Queues {
	n := len(limits) + 1
	q := &Queues{byGPU: byGPU, late: late, promote: promote, started: make([]float64, n), front: make([]float64, n),
		end: make([]float64, n)}
	for _, d := range limits {
		q.limits = append(q.limits, int64(d))
	}
	return q
}

// Reset empties the queues.
func (q *Queues) Reset() {
	q.at = q.at[:0]
	for i := range q.started {
		q.started[i], q.front[i], q.end[i] = 0, waitBase, waitBase
	}
}

// Key returns the rank of j, least first.
func (q *Queues) Key(j sim.Job) float64 { return q.at[j].key() }

// Submit puts j at the back of queue 0.
func (q *Queues) Submit(_ *sim.View, j sim.Job) {
	*grow.At(&q.at, j) = queuePlace{queue: 0, rank: q.back(0)}
}

func (q *Queues) back(queue int) float64 {
	q.end[queue]++
	return q.end[queue]
}

// Before lets running jobs fall that have reached the limit of their queue; it returns when the next one falls or
// rises, 0 if never.
func (q *Queues) Before(v *sim.View, running []queue.Entry) (until int64) {
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
func (q *Queues) attained(v *sim.View, j sim.Job) (ran, per int64) {
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
func (q *Queues) fallsAt(now, limit, ran, per int64) int64 {
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
func (q *Queues) rises(v *sim.View, j sim.Job) int64 {
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

// Rise brings waiting jobs that have waited long enough back to queue 0, in the order of the trace.
func (q *Queues) Rise(v *sim.View) bool {
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

// After ranks the jobs that run from now on, and those that were stopped.
func (q *Queues) After(v *sim.View, chosen, stopped []queue.Entry) {
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
