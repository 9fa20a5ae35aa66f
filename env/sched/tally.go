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
	system              int     // jobs that have arrived and not ended
	inverse             float64 // of those, the sum of 1/work, in 1/s
	jobs, wait, stretch float64 // integrals of system, of the jobs that wait, and of inverse
}

// begin begins at v's current time, at which what has happened belongs to the stretch before.
func (t *tally) begin(v *sim.View) {
	*t = tally{now: v.Now(), system: len(v.Running()) + len(v.Waiting())}
	for _, list := range [...][]sim.Job{v.Running(), v.Waiting()} {
		for _, j := range list {
			t.inverse += inverse(v, j)
		}
	}
}

// point integrates up to p, of which waiting jobs wait.
func (t *tally) point(v *sim.View, p *sim.Point, waiting int) {
	if span := (p.Now - t.now).Seconds(); span > 0 {
		t.jobs += float64(t.system) * span
		t.wait += float64(waiting) * span
		t.stretch += t.inverse * span
		t.now = p.Now
	}
	for i := range p.Events {
		switch e := &p.Events[i]; e.Kind {
		case sim.Submit:
			t.system++
			t.inverse += inverse(v, e.Job)
		case sim.Finish, sim.Drop:
			t.system--
			if t.inverse -= inverse(v, e.Job); t.system == 0 {
				t.inverse = 0 // drop accumulated rounding errors
			}
		}
	}
}

func inverse(v *sim.View, j sim.Job) float64 { return 1 / max(v.Trace(j).Work, 1).Seconds() }

// enter shows r, which has been reset, the jobs that are in the system now, as if they had just arrived and started.
// What it would pay for that is not paid: the episode's account begins after it.
// scratch is overwritten.
func enter(r Reward, v *sim.View, scratch *sim.Event) {
	for _, j := range v.Waiting() {
		*scratch = sim.Event{Kind: sim.Submit, Job: j, At: v.Now()}
		r.Event(v, scratch)
	}
	for _, j := range v.Running() {
		*scratch = sim.Event{Kind: sim.Submit, Job: j, At: v.Now()}
		r.Event(v, scratch)
		*scratch = sim.Event{Kind: sim.Start, Job: j, At: v.Now(), GPUs: v.GPUs(j)}
		r.Event(v, scratch)
	}
}
