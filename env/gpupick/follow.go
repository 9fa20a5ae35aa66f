package gpupick

import (
	"fmt"
	"slices"
	"time"

	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/sched"
	"clustergym/env/sim"
)

// steering is what the environment has to follow facts.
type steering struct {
	sched.Facts
	stale  bool      // the picks are those of an earlier moment
	before []sim.Job // the queue to which Forget returns
}

var _ sched.Steered = (*Env)(nil)

// Follow implements sched.Steered.
func (e *Env) Follow(f sched.Following) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	e.est.Seed, e.picks.est.Seed = f.Seed, f.Seed
	if err := e.steer.Begin(f, e.est); err != nil {
		return err
	}
	e.clear()
	e.steer.stale = true
	return nil
}

// More implements sched.Steered.
func (e *Env) More(more bool) { e.steer.More(more) }

// Tell implements sched.Steered.
func (e *Env) Tell(f *sim.Fact) error {
	e.Forget()
	e.steer.stale = true
	return e.steer.Tell(f, e.leaves)
}

// leaves takes j out of the queue, if it is there.
func (e *Env) leaves(j sim.Job) {
	i := slices.Index(e.queue[e.head:], j)
	switch {
	case i == 0:
		e.head++
	case i > 0:
		e.queue = slices.Delete(e.queue, e.head+i, e.head+i+1)
	}
}

// Look implements sched.Steered.
func (e *Env) Look(now time.Duration) error {
	e.Forget()
	e.steer.stale = true
	return e.steer.Look(now, func(ev *sim.Event, early bool) {
		switch ev.Kind {
		case sim.Submit:
			e.shift()
			e.enqueue(ev.Job)
			if e.seen != nil {
				e.seen.Learn(e.view, ev.Job, e.est.Of(e.view, ev.Job))
			}
		case sim.Preempt, sim.Fail:
			e.enqueue(ev.Job)
		case sim.Start, sim.Drop:
			if !early {
				e.leaves(ev.Job)
			}
		}
	})
}

// enqueue puts a job that the environment's workload would have in its place in the queue: at the end, unless it was stopped.
func (e *Env) enqueue(j sim.Job) {
	if e.view.Trace(j).GPUs > e.cfg.MaxGPUs {
		return
	}
	i := len(e.queue)
	for i > e.head && e.view.Pos(e.queue[i-1]) > e.view.Pos(j) {
		i--
	}
	e.queue = slices.Insert(e.queue, i, j)
}

// Observe implements sched.Steered.
func (e *Env) Observe(ts *env.TimeStep) (asks bool, err error) {
	if err := e.steer.Open(); err != nil {
		return false, err
	}
	if e.steer.stale {
		e.turn()
		e.steer.stale = false
	}
	sched.NoReward(ts)
	e.picks.Encode(ts.Obs)
	e.mask(ts.Mask)
	e.steer.Show()
	return e.head < len(e.queue) && e.view.Fits(e.queue[e.head]), nil
}

// imagine begins an imagination unless there is one.
func (e *Env) imagine() error {
	begun, err := e.steer.Imagine()
	if begun && err == nil {
		e.steer.before = append(e.steer.before[:0], e.queue[e.head:]...)
	}
	return err
}

// Imagine implements sched.Steered. Only the pick of a job's last GPU is a decision.
func (e *Env) Imagine(a env.Action) (decisions []sim.Decision, waits bool, err error) {
	x := &e.steer
	if err := x.Shown(); err != nil {
		return nil, false, err
	}
	k, err := e.shell.Index(a)
	if err != nil {
		return nil, false, err
	}
	g := int(k)
	if err := e.allows(g); err != nil {
		return nil, false, err
	}
	if err := e.imagine(); err != nil {
		return nil, false, err
	}
	if g == len(e.picks.taken) {
		return nil, true, nil
	}
	if !e.picks.Pick(cluster.GPU(g)) {
		return nil, false, nil
	}
	j := e.queue[e.head]
	e.dec.Op, e.dec.Job, e.dec.Until = sim.StartJob, j, 0
	e.dec.GPUs = append(e.dec.GPUs[:0], e.picks.GPUs()...)
	if err := x.Apply(&e.dec); err != nil {
		return nil, false, err
	}
	e.leaves(j)
	x.stale = true
	return x.Decisions(), false, nil
}

// Proceed implements sched.Steered: nothing is decided without the agent.
func (e *Env) Proceed() ([]sim.Decision, error) { return nil, e.steer.Open() }

// Forget implements sched.Steered.
func (e *Env) Forget() {
	if e.steer.Forget() {
		e.queue, e.head = append(e.queue[:0], e.steer.before...), 0
		e.steer.stale = true
	}
}

// Keep implements sched.Steered.
func (e *Env) Keep() { e.Forget() }

// Choices implements sched.Steered: the job whose GPUs are picked.
func (e *Env) Choices(dst []sim.Job) []sim.Job {
	if e.head < len(e.queue) {
		dst = append(dst, e.queue[e.head])
	}
	return dst
}

// Hide implements sched.Steered.
func (e *Env) Hide(j sim.Job) error {
	if err := e.imagine(); err != nil {
		return err
	}
	if err := e.steer.Drop(j); err != nil {
		return fmt.Errorf("%s: %w", ID, err)
	}
	e.leaves(j)
	e.steer.stale = true
	return nil
}

// Ask implements sched.Steered.
func (e *Env) Ask(sch sim.Scheduler, visit func(d *sim.Decision) error) error {
	e.Forget()
	return e.steer.Ask(sch, visit)
}
