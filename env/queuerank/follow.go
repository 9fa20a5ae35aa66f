package queuerank

import (
	"fmt"
	"time"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/env/sim"
	"clustergym/traces"
)

// steering is what the environment has to follow facts.
type steering struct {
	sched.Facts
	on     bool
	queued []bool // by job: it is in the queue
	held   hold   // the job that was chosen, and kept
	ahead  hold   // the one that is imagined
	before queue  // that to which Forget returns
	gone   []sim.Job
}

// hold is a job that waits for its start, before all others.
type hold struct {
	job    sim.Job // -1 = none
	shadow int64   // when it will fit by the requested times, -1 = not asked yet
}

var nobody = hold{-1, -1}

var _ sched.Steered = (*Env)(nil)

// Follow implements sched.Steered.
func (e *Env) Follow(f sched.Following) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	x := &e.steer
	e.est.Seed = f.Seed
	if err := x.Begin(f, e.est); err != nil {
		return err
	}
	e.clear()
	x.on, x.held, x.queued = true, nobody, x.queued[:0]
	return nil
}

// More implements sched.Steered.
func (e *Env) More(more bool) { e.steer.More(more) }

// takes reports whether the environment's workload would have the job.
func (e *Env) takes(t *traces.Job) bool {
	return t.GPUs <= e.cfg.MaxGPUs && (e.tuned == nil || e.tuned.check([]traces.Job{*t}) == nil)
}

// Tell implements sched.Steered.
func (e *Env) Tell(f *sim.Fact) error {
	e.Forget()
	return e.steer.Tell(f, e.leaves)
}

// leaves takes j out of the queue.
func (e *Env) leaves(j sim.Job) {
	x := &e.steer
	if x.queued[j] {
		x.queued[j] = false
		e.take(j)
	}
	if x.held.job == j {
		x.held = nobody
	}
}

// Look implements sched.Steered.
func (e *Env) Look(now time.Duration) error {
	e.Forget()
	return e.steer.Look(now, func(ev *sim.Event, early bool) {
		switch ev.Kind {
		case sim.Submit:
			e.arrive(ev.Job)
		case sim.Preempt, sim.Fail:
			e.enqueue(ev.Job)
		case sim.Start, sim.Drop:
			if !early {
				e.leaves(ev.Job)
			}
		}
	})
}

// enqueue adds j to the queue of an environment that follows.
func (e *Env) enqueue(j sim.Job) {
	x := &e.steer
	for int(j) >= len(x.queued) {
		x.queued = append(x.queued, false)
	}
	t := e.view.Trace(j)
	if x.queued[j] = e.takes(t); x.queued[j] {
		k := &e.known[j]
		e.queue.add(j, e.view.Pos(j), int64(t.Submit), k.e, k.milli)
	}
}

// Observe implements sched.Steered. While a job is waited for that was chosen, the agent is shown none: there is nothing to choose.
func (e *Env) Observe(ts *env.TimeStep) (asks bool, err error) {
	x := &e.steer
	if err := x.Open(); err != nil {
		return false, err
	}
	held := x.held.job
	if e.sim.Imagines() {
		held = x.ahead.job
	}
	if e.queue.slots = e.queue.slots[:0]; held < 0 { // with Config.Peer a look changes the order of the queue
		e.queue.fill(e.cfg.Visible)
	}
	sched.NoReward(ts)
	e.show(ts)
	x.Show()
	return len(e.queue.slots) > 0, nil
}

// imagine begins an imagination unless there is one.
func (e *Env) imagine() error {
	x := &e.steer
	begun, err := x.Imagine()
	if begun && err == nil {
		x.ahead, x.gone = x.held, x.gone[:0]
		x.before.copyFrom(&e.queue)
	}
	return err
}

// Imagine implements sched.Steered. A job that does not fit is waited for; with back-filling others may start until then.
func (e *Env) Imagine(a env.Action) (decisions []sim.Decision, waits bool, err error) {
	x := &e.steer
	if err := x.Shown(); err != nil {
		return nil, false, err
	}
	i, err := e.shell.Index(a)
	if err != nil {
		return nil, false, err
	}
	if int(i) >= len(e.queue.slots) {
		return nil, false, e.shell.Masked(i)
	}
	j := e.queue.slots[i]
	if err := e.imagine(); err != nil {
		return nil, false, err
	}
	x.ahead = hold{j, -1}
	waits, err = e.hold()
	return x.Decisions(), waits, err
}

// hold imagines that the held job starts, or what may start while it waits, and reports whether it waits.
func (e *Env) hold() (waits bool, err error) {
	x := &e.steer
	j := x.ahead.job
	e.hide(j)
	if e.tuned != nil {
		e.tuned.held = j
	}
	switch ok, err := e.tryStart(j); {
	case err != nil:
		return false, err
	case ok:
		x.ahead = nobody
		return false, nil
	case e.cfg.Backfill != "easy":
		return true, nil
	}
	if x.ahead.shadow < 0 {
		x.ahead.shadow = e.enough(j)
	}
	return true, e.backfill(x.ahead.shadow)
}

// hide takes j out of the queue in imagination.
func (e *Env) hide(j sim.Job) {
	if x := &e.steer; x.queued[j] {
		x.queued[j] = false
		x.gone = append(x.gone, j)
		e.take(j)
	}
}

// Proceed implements sched.Steered: a job that was chosen earlier, and kept, starts as soon as it fits.
func (e *Env) Proceed() ([]sim.Decision, error) {
	x := &e.steer
	if err := x.Open(); err != nil {
		return nil, err
	}
	if e.sim.Imagines() || x.held.job < 0 {
		return nil, nil
	}
	if err := e.imagine(); err != nil {
		return nil, err
	}
	_, err := e.hold()
	return x.Decisions(), err
}

// Forget implements sched.Steered.
func (e *Env) Forget() {
	x := &e.steer
	if !x.Forget() {
		return
	}
	for _, j := range x.gone {
		x.queued[j] = true
	}
	e.queue.copyFrom(&x.before)
}

// Keep implements sched.Steered: a job that was chosen and does not fit is waited for.
func (e *Env) Keep() {
	x := &e.steer
	if !e.sim.Imagines() {
		return
	}
	if e.Forget(); x.ahead.job >= 0 {
		x.held = x.ahead
	}
}

// Choices implements sched.Steered.
func (e *Env) Choices(dst []sim.Job) []sim.Job { return append(dst, e.queue.slots...) }

// Hide implements sched.Steered.
func (e *Env) Hide(j sim.Job) error {
	if err := e.imagine(); err != nil {
		return err
	}
	if err := e.steer.Drop(j); err != nil {
		return fmt.Errorf("%s: %w", ID, err)
	}
	e.hide(j)
	return nil
}

// Ask implements sched.Steered.
func (e *Env) Ask(sch sim.Scheduler, visit func(d *sim.Decision) error) error {
	e.Forget()
	return e.steer.Ask(sch, visit)
}

// copyFrom makes q's queue that of o, an environment's with the same settings.
func (q *queue) copyFrom(o *queue) {
	q.bySubmit, q.byTime, q.bySize = append(q.bySubmit[:0], o.bySubmit...), append(q.byTime[:0], o.byTime...), append(q.bySize[:0], o.bySize...)
	q.slots = append(q.slots[:0], o.slots...)
	if o.peer != nil {
		if q.peer == nil {
			q.peer = new(peerQueue)
		}
		p := q.peer
		p.list, p.byTime, p.bySize = append(p.list[:0], o.peer.list...), append(p.byTime[:0], o.peer.byTime...), append(p.bySize[:0], o.peer.bySize...)
		p.seen, p.look = append(p.seen[:0], o.peer.seen...), o.peer.look
	}
	if o.tuned != nil {
		if q.tuned == nil {
			q.tuned = new(tunedQueue)
		}
		q.tuned.list = append(q.tuned.list[:0], o.tuned.list...)
	}
}
