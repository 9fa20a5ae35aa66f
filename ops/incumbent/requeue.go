package incumbent

import (
	"slices"
	"time"

	"clustergym/simulator/sim"
	"clustergym/traces"
)

// requeuer plays a scheduler on a cluster where jobs are requeued as they were recorded: after as much of their run
// time (traces.Job.Stops). They keep what they have done, for the recorded runs add up, and wait again at the place in
// line that their submit gives them.
type requeuer struct {
	sim.Scheduler
	past    *Past
	made    map[int]int
	stopped time.Duration // when a job was last stopped, -1 = never
}

// requeued returns sch on such a cluster, or sch itself where no job of the record was requeued.
func (p *Past) requeued(sch sim.Scheduler) sim.Scheduler {
	if !slices.ContainsFunc(p.Jobs, func(j traces.Job) bool { return len(j.Stops) > 0 }) {
		return sch
	}
	return &requeuer{Scheduler: sch, past: p}
}

// Reset implements sim.Scheduler.
func (q *requeuer) Reset(v *sim.View) {
	q.made, q.stopped = map[int]int{}, -1
	q.Scheduler.Reset(v)
}

// Decide implements sim.Scheduler.
func (q *requeuer) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	var next time.Duration
	for _, j := range v.Running() {
		pos := v.Pos(j)
		stops := q.past.Jobs[pos].Stops
		k := q.made[pos]
		if k == len(stops) {
			continue
		}
		at := v.Started(j) + stops[k]
		if k > 0 {
			at -= stops[k-1]
		}
		if at <= v.Now() {
			d.Op, d.Job = sim.PreemptJob, j
			q.made[pos]++
			q.stopped = v.Now()
			return nil
		}
		if next == 0 || at < next {
			next = at
		}
	}
	if err := q.Scheduler.Decide(v, p, d); err != nil {
		return err
	}
	if q.stopped == v.Now() { // what was stopped may start again a moment later
		next = v.Now() + time.Second
	}
	if d.Op == sim.Wait && next > 0 && (d.Until == 0 || next < d.Until) {
		d.Until = next
	}
	return nil
}
