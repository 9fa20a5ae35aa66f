package sched

import (
	"time"

	"clustergym/simulator/sim"
)

// tally integrates over time what an Ongoing episode has in its system. Divided by the number of jobs that arrive, the
// integrals are means over jobs (Little's law, Little 1961): summed over consecutive stretches of a run they are those
// of the whole run, wherever it is cut.
type tally struct {
	now                 time.Duration
	system, waiting     int     // jobs that have arrived and not ended, and those of them that have no GPUs
	inverse             float64 // of those in the system, the sum of 1/work, in 1/s
	jobs, wait, stretch float64 // integrals of system, waiting and inverse
}

// begin begins at v's current time, at which what has happened belongs to the stretch before.
func (t *tally) begin(v *sim.View) {
	*t = tally{now: v.Now(), system: len(v.Running()) + len(v.Waiting()), waiting: len(v.Waiting())}
	for _, list := range [...][]sim.Job{v.Running(), v.Waiting()} {
		for _, j := range list {
			t.inverse += inverse(v, j)
		}
	}
}

// point integrates up to p.
func (t *tally) point(v *sim.View, p *sim.Point) {
	for i := range p.Events {
		e := &p.Events[i]
		t.advance(e.At)
		switch e.Kind {
		case sim.Submit:
			t.system++
			t.waiting++
			t.inverse += inverse(v, e.Job)
		case sim.Start:
			t.waiting--
		case sim.Preempt, sim.Fail:
			t.waiting++
		case sim.Finish, sim.Drop:
			if e.Kind == sim.Drop {
				t.waiting--
			}
			t.system--
			if t.inverse -= inverse(v, e.Job); t.system == 0 {
				t.inverse = 0 // drop accumulated rounding errors
			}
		}
	}
	t.advance(p.Now)
}

func (t *tally) advance(now time.Duration) {
	if now <= t.now {
		return
	}
	span := (now - t.now).Seconds()
	t.jobs += float64(t.system) * span
	t.wait += float64(t.waiting) * span
	t.stretch += t.inverse * span
	t.now = now
}

func inverse(v *sim.View, j sim.Job) float64 { return 1 / max(v.Trace(j).Work, 1).Seconds() }

// enter shows r, which has been reset, the jobs that are in the system now, as if they had just arrived and started.
// What it would pay for that is not paid: the episode's account begins after it. e is scratch space.
func enter(r Reward, v *sim.View, e *sim.Event) {
	arrive := func(j sim.Job) {
		*e = sim.Event{Kind: sim.Submit, Job: j, At: v.Now()}
		r.Event(v, e)
	}
	for _, j := range v.Waiting() {
		arrive(j)
	}
	for _, j := range v.Running() {
		arrive(j)
		*e = sim.Event{Kind: sim.Start, Job: j, At: v.Now(), GPUs: v.GPUs(j)}
		r.Event(v, e)
	}
	*e = sim.Event{}
}
