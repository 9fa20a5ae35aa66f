package delayoffer

import (
	"fmt"
	"time"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/env/sim"
)

// steering is what the environment has to follow facts. The rule remembers answers: it is marked before the pass of a point, and
// goes back unless the answers are kept.
type steering struct {
	sched.Facts
	open bool   // the pass of the current point has begun
	over bool   // and is over: what follows from the answers has been imagined
	kept bool   // the answers are kept
	own  []bool // by job: its start was imagined and kept, so the rule has counted its delay
}

var _ sched.Steered = (*Env)(nil)

// Follow implements sched.Steered.
func (e *Env) Follow(f sched.Following) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	e.est.Seed = f.Seed
	if err := e.steer.Begin(f, e.est); err != nil {
		return err
	}
	e.rule.Reset(e.view)
	if e.shown.seen != nil {
		e.shown.seen.Reset()
	}
	e.offer = nil
	e.steer.open, e.steer.over, e.steer.kept = false, false, false
	return nil
}

// More implements sched.Steered.
func (e *Env) More(more bool) { e.steer.More(more) }

// Tell implements sched.Steered.
func (e *Env) Tell(f *sim.Fact) error {
	e.Forget()
	return e.steer.Tell(f, func(sim.Job) {})
}

// Look implements sched.Steered.
func (e *Env) Look(now time.Duration) error {
	e.Forget()
	if err := e.steer.Look(now, func(ev *sim.Event, _ bool) {
		e.hear(ev)
	}); err != nil {
		return err
	}
	e.point = e.steer.Point()
	e.rule.Note(e.view, e.point)
	e.steer.open, e.steer.over, e.steer.kept = false, false, false
	return nil
}

// hear takes in what has happened to a job.
func (e *Env) hear(ev *sim.Event) {
	x := &e.steer
	switch ev.Kind {
	case sim.Submit:
		for int(ev.Job) >= len(x.own) {
			x.own = append(x.own, false)
		}
		x.own[ev.Job] = false
		if e.shown.seen != nil {
			e.shown.seen.Learn(e.view, ev.Job, e.est.Of(e.view, ev.Job))
		}
	case sim.Start:
		if !x.own[ev.Job] {
			e.rule.Took(e.view, ev.Job, ev.At, ev.GPUs)
		}
		x.own[ev.Job] = false
	}
}

// pass begins the pass of the current point, if it has not begun.
func (e *Env) pass() error {
	x := &e.steer
	if err := x.Open(); err != nil || x.open {
		return err
	}
	e.rule.Mark()
	e.rule.Open(e.view, e.point)
	e.offer = e.rule.Next(e.view)
	x.open = true
	return nil
}

// Observe implements sched.Steered.
func (e *Env) Observe(ts *env.TimeStep) (asks bool, err error) {
	if err := e.pass(); err != nil {
		return false, err
	}
	sched.NoReward(ts)
	e.show(ts)
	e.steer.Show()
	return e.offer != nil, nil
}

// Imagine implements sched.Steered. Decisions follow from the answer to the last offer of a point.
func (e *Env) Imagine(a env.Action) (decisions []sim.Decision, waits bool, err error) {
	x := &e.steer
	if err := x.Shown(); err != nil {
		return nil, false, err
	}
	if err := e.legal(a); err != nil {
		return nil, false, err
	}
	if e.offer == nil {
		return nil, false, fmt.Errorf("%w: %s: there is no offer to answer", env.ErrIllegalAction, ID)
	}
	if _, err := x.Imagine(); err != nil {
		return nil, false, err
	}
	e.rule.Answer(e.view, a.Disc[0] == Accept)
	if e.offer = e.rule.Next(e.view); e.offer != nil {
		return nil, false, nil
	}
	err = e.decide()
	return x.Decisions(), true, err
}

// decide imagines what follows from the answers.
func (e *Env) decide() error {
	x := &e.steer
	if _, err := x.Imagine(); err != nil {
		return err
	}
	x.over = true
	for {
		e.dec.Op, e.dec.GPUs, e.dec.Until = sim.Wait, e.dec.GPUs[:0], 0
		if err := e.rule.Decide(e.view, e.point, &e.dec); err != nil || e.dec.Op == sim.Wait {
			return err
		}
		if err := x.Apply(&e.dec); err != nil {
			return err
		}
	}
}

// Proceed implements sched.Steered: offers of a machine are accepted without asking.
func (e *Env) Proceed() ([]sim.Decision, error) {
	x := &e.steer
	if err := e.pass(); err != nil {
		return nil, err
	}
	if e.offer != nil || x.over {
		return nil, nil
	}
	err := e.decide()
	return x.Decisions(), err
}

// Forget implements sched.Steered.
func (e *Env) Forget() {
	x := &e.steer
	x.Forget()
	if x.open && !x.kept {
		e.rule.Back()
		x.open, x.over, e.offer = false, false, nil
	}
}

// Keep implements sched.Steered: answers are kept once all offers of the point have been answered.
func (e *Env) Keep() {
	x := &e.steer
	if x.over && !x.kept {
		x.kept = true
		for _, d := range x.Decisions() {
			if d.Op == sim.StartJob {
				x.own[d.Job] = true
			}
		}
	}
	e.Forget()
}

// Choices implements sched.Steered: the job that is asked.
func (e *Env) Choices(dst []sim.Job) []sim.Job {
	if e.offer != nil {
		dst = append(dst, e.offer.Job)
	}
	return dst
}

// Hide implements sched.Steered: the job declines what it is offered.
func (e *Env) Hide(j sim.Job) error {
	x := &e.steer
	if e.offer == nil || e.offer.Job != j {
		return fmt.Errorf("%s: job %d is offered nothing", ID, j)
	}
	if _, err := x.Imagine(); err != nil {
		return err
	}
	e.rule.Answer(e.view, false)
	e.offer = e.rule.Next(e.view)
	return nil
}

// Ask implements sched.Steered.
func (e *Env) Ask(sch sim.Scheduler, visit func(d *sim.Decision) error) error {
	e.Forget()
	return e.steer.Ask(sch, visit)
}
