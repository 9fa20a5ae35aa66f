package heuristic

import "clustergym/env/sim"

// las is least attained service in discretised queues (Tiresias: Gu et al., NSDI 2019; "dlas" in its
// simulator). A job begins in queue 0 and falls to the next when the time it has run reaches the queue's limit,
// never to return. Lower queues go first. Within a queue, first those that run, in the order in which they came
// to, then those that wait; a job that is stopped goes to the front of those that wait, one that falls goes to
// the back of its new queue.
var las = rule{name: "las", preemptive: true, key: lasKey,
	state: func(s *Scheduler) stateful { return newQueues(s, false) }}

// las2D is las with GPU-time in place of time ("dlas-gpu").
var las2D = rule{name: "las-2d", preemptive: true, key: lasKey,
	state: func(s *Scheduler) stateful { return newQueues(s, true) }}

func lasKey(s *Scheduler, _ *sim.View, j sim.Job) float64 { return s.state.(*queues).at[j].key() }

// place is a job's queue and its rank within: running jobs below waitBase, in order of start; waiting jobs
// around it, the front growing downwards and the back upwards.
type place struct {
	queue int
	rank  float64
}

const waitBase = 1 << 48

// key orders by queue, then rank. Ranks stay below 2^49 and queues below 2^4, so the sum is exact in a float64.
func (p place) key() float64 { return float64(p.queue)*(1<<49) + p.rank }

type queues struct {
	s                   *Scheduler
	byGPU               bool
	limits              []int64
	at                  []place // by job
	started, front, end []float64
}

func newQueues(s *Scheduler, byGPU bool) *queues {
	q := &queues{s: s, byGPU: byGPU}
	for _, d := range s.cfg.Limits {
		q.limits = append(q.limits, int64(d))
	}
	n := len(q.limits) + 1
	q.started, q.front, q.end = make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		q.front[i], q.end[i] = waitBase, waitBase
	}
	return q
}

func (q *queues) submit(_ *sim.View, j sim.Job) {
	for int(j) >= len(q.at) {
		q.at = append(q.at, place{})
	}
	q.at[j] = place{0, q.back(0)}
}

func (q *queues) back(queue int) float64 {
	q.end[queue]++
	return q.end[queue]
}

func (q *queues) before(v *sim.View, running []entry) (until int64) {
	now := int64(v.Now())
	for _, e := range running {
		p := &q.at[e.job]
		got, per := int64(v.Ran(e.job)), int64(1)
		if q.byGPU {
			per = int64(v.Request(e.job).GPUs)
			got *= per
		}
		for p.queue < len(q.limits) && got >= q.limits[p.queue] {
			p.queue++
			p.rank = q.back(p.queue)
		}
		if p.queue < len(q.limits) {
			t := now + (q.limits[p.queue]-got+per-1)/per
			if until == 0 || t < until {
				until = t
			}
		}
	}
	return until
}

func (q *queues) after(chosen, stopped []entry) {
	for _, e := range chosen {
		if p := &q.at[e.job]; p.rank >= waitBase/2 {
			q.started[p.queue]++
			p.rank = q.started[p.queue]
		}
	}
	for i := len(stopped) - 1; i >= 0; i-- {
		p := &q.at[stopped[i].job]
		q.front[p.queue]--
		p.rank = q.front[p.queue]
	}
}
