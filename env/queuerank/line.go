package queuerank

import (
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// line is the queue and the job that is held before all others.
type line struct {
	cfg     Config
	own     Program
	queue   Queue
	machine Machine
	state   *sched.State
	win     *sched.Window
	ahead   *ahead // what Stream plays, nil = an episode

	held   hold
	list   []sim.Job // that may be back-filled in this pass, from index next on
	next   int       // -1 = the pass has not begun
	marked struct {
		on   bool
		held hold
	}
}

// hold is a job that waits for its start, before all others.
type hold struct {
	job    sim.Job // -1 = none
	shadow int64   // when it will fit by the requested times, -1 = not asked yet
	out    bool    // it is not in the queue
}

var nobody = hold{-1, -1, false}

var _ sched.Slots = (*line)(nil)

// of returns what the queue keeps of j.
func (l *line) of(s *sched.State, j sim.Job) Waiting {
	r := s.View.Request(j)
	return Waiting{Job: j, Pos: s.View.Pos(j), Submit: int64(s.View.Trace(j).Submit), E: int64(s.Known[j].Estimate),
		Milli: int64(r.GPUs * r.Milli)}
}

// Reset implements sched.Slots.
func (l *line) Reset() {
	l.queue.Reset()
	l.held, l.marked.on = nobody, false
}

// Add implements sched.Slots.
func (l *line) Add(s *sched.State, j sim.Job) { l.queue.Add(l.of(s, j)) }

// Remove implements sched.Slots.
func (l *line) Remove(s *sched.State, j sim.Job) {
	if l.held.job != j || !l.held.out {
		l.queue.Drop(l.of(s, j))
	}
	if l.held.job == j {
		l.held = nobody
	}
}

// Fill implements sched.Slots. While a job is held the agent is shown none: there is nothing to choose. The simulator
// hands out the jobs of one instant one by one; the agent is asked after the last of them, unless the program is eager.
// At the end of an Ongoing episode, where nobody chooses, it shows what waits, as the value of that is asked for: the
// job that is held first.
func (l *line) Fill(s *sched.State) {
	s.Slots, s.Fits = s.Slots[:0], s.Fits[:0]
	if l.win != nil && l.win.End > 0 && s.View.Now() >= l.win.End {
		if l.held.job >= 0 && l.held.out {
			s.Slots = append(s.Slots, l.held.job)
		}
		if k := l.cfg.Visible - len(s.Slots); k > 0 && l.queue.Len() > 0 {
			s.Slots = l.queue.Fill(s.Slots, k)
		}
		for range s.Slots {
			s.Fits = append(s.Fits, true)
		}
		return
	}
	if l.queue.Len() == 0 || !s.View.Over() && (l.held.job >= 0 || !l.own.Eager && l.arriving(s.View)) {
		return
	}
	s.Slots = l.queue.Fill(s.Slots, l.cfg.Visible)
	for range s.Slots {
		s.Fits = append(s.Fits, true) // every visible job can be chosen
	}
}

// arriving reports whether another job arrives at the current time.
func (l *line) arriving(v *sim.View) bool {
	if l.ahead != nil {
		return v.Arriving() && l.ahead.submit == v.Now()
	}
	n := v.Arrived()
	return n < len(l.win.Traced) && l.win.Traced[n].Submit == v.Now()
}

// choices is Discrete(visible): an action is the slot of the job that is held until it starts.
type choices struct{ *line }

var (
	_ sched.Actions = choices{}
	_ sched.Pilot   = choices{}
	_ sched.Mindful = choices{}
	_ sim.Scheduler = holder{}
)

// Spec implements sched.Actions.
func (l choices) Spec() env.ActionSpec { return env.ActionSpec{Sizes: []int{l.cfg.Visible}} }

// NoOp implements sched.Actions.
func (choices) NoOp() int { return -1 }

// Mask implements sched.Actions.
func (l choices) Mask(dst []bool, s *sched.State) (legal int) {
	clear(dst)
	for i := range s.Slots {
		dst[i] = true
	}
	return len(s.Slots)
}

// Decode implements sched.Actions.
func (l choices) Decode(a env.Action, s *sched.State, _ *sim.Decision) (bool, error) {
	l.held = hold{s.Slots[a.Disc[0]], -1, true}
	l.queue.Drop(l.of(s, l.held.job))
	return true, nil
}

// Pilot implements sched.Pilot.
func (l choices) Pilot(*sched.State) sim.Scheduler {
	if l.held.job < 0 {
		return nil
	}
	l.next = -1
	return holder(l)
}

// Holds implements sched.Pilot: a job that fits has started, and the next can be chosen.
func (l choices) Holds() bool { return l.held.job >= 0 }

// Looked implements sched.Mindful.
func (choices) Looked(*sched.State) {}

// Mark implements sched.Mindful.
func (l choices) Mark() {
	l.marked.on, l.marked.held = true, l.held
	l.queue.Save()
}

// Back implements sched.Mindful.
func (l choices) Back() {
	if l.marked.on {
		l.marked.on, l.held = false, l.marked.held
		l.queue.Restore()
	}
}

// Keep implements sched.Mindful: a job that was chosen and does not fit is waited for, and one that was imagined to
// start until it has.
func (l choices) Keep([]sim.Decision) {
	held := l.held
	if on := l.marked.on; on {
		if l.Back(); held.job >= 0 {
			l.held = hold{held.job, held.shadow, false}
		}
	}
}

// holder starts the job that is held, or what may start while it waits.
type holder struct{ *line }

// Reset implements sim.Scheduler.
func (holder) Reset(*sim.View) {}

// Decide implements sim.Scheduler.
func (l holder) Decide(v *sim.View, _ *sim.Point, d *sim.Decision) error {
	if l.next < 0 {
		l.next, l.list = 0, l.list[:0]
		h := &l.held
		if !h.out {
			l.queue.Drop(l.of(l.state, h.job))
			h.out = true
		}
		if l.starts(h.job, true, d) || l.cfg.Backfill != "easy" {
			return nil
		}
		if h.shadow < 0 {
			h.shadow = l.machine.Early(h.job)
		}
		l.list = l.queue.InOrder(l.list, h.job)
	}
	for l.next < len(l.list) {
		j := l.list[l.next]
		l.next++
		if int64(v.Now())+int64(l.state.Known[j].Estimate) < l.held.shadow && l.starts(j, false, d) {
			return nil
		}
	}
	return nil
}

// starts makes d the start of j, if it fits.
func (l holder) starts(j sim.Job, held bool, d *sim.Decision) (ok bool) {
	if d.GPUs, ok = l.machine.Place(j, held, d.GPUs); ok {
		d.Op, d.Job = sim.StartJob, j
	}
	return ok
}

// counter is the machine of QueueRank-v1.
type counter struct {
	l     *line
	place cluster.Placement
	ends  []ending
}

// Place implements Machine.
func (c *counter) Place(j sim.Job, _ bool, dst []cluster.GPU) ([]cluster.GPU, bool) {
	v := c.l.state.View
	return c.place.Place(v.Cluster(), v.Request(j), dst)
}
