package sched

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"clustergym/env"
	"clustergym/simulator/sim"
)

// Steered is an environment that can follow a cluster that another scheduler runs: facts in, observations out. What an
// agent would be shown comes from the encoder of its training. There are no rewards, no episodes and no end; Reset ends
// the following.
//
// The order of calls is: Follow; then, again and again, Tell for what has happened, Look at the time of the
// observation, and Observe. If Observe says that the agent is asked, Imagine takes its action, as if it were carried
// out at this moment, and Observe shows what comes then, until Imagine says that the agent waits. Proceed adds what is
// decided without asking an agent. Forget returns to the facts. What the cluster has made of it comes with later facts.
type Steered interface {
	Arena
	Facts
	Imagination
	// More says whether more jobs may arrive: true, unless somebody says otherwise.
	More(more bool)
	// Ask lets a scheduler, which sees the whole queue, decide now until it waits, in imagination (sim.Simulator.Ask), and
	// forgets it. visit sees every decision before it is imagined; nil = nobody does.
	Ask(sch sim.Scheduler, visit func(d *sim.Decision) error) error
}

// Facts is what an environment is told of a cluster that it follows. Instead of Look, Tell can also take the decisions
// of the current point one by one, as they are carried out. A watcher (Arena.Watch) sees the points of Look.
type Facts interface {
	// Follow begins to follow facts, on an empty cluster (sim.Present.Facts leads to any other).
	Follow(f Following) error
	// Tell takes in a fact. An error (sim.ErrFact) changes nothing. Jobs without GPUs are left out. Jobs that are larger
	// than those of the environment's workloads run, but the agent is not asked about them.
	Tell(f *sim.Fact) error
	// Look moves the clock to now and ends what is imagined.
	Look(now time.Duration) error
}

// Imagination is what an agent is shown of a cluster that an environment follows, and what would follow from its
// actions.
type Imagination interface {
	// Observe fills ts with what an agent would be shown now, and reports whether it would be asked. It does not allocate
	// in steady state.
	Observe(ts *env.TimeStep) (asks bool, err error)
	// Imagine takes an action that the last Observe has shown as legal. It returns the decisions that follow from it, in
	// order, valid until the next call, and whether the agent waits with it: no further action belongs to this moment.
	Imagine(a env.Action) (decisions []sim.Decision, waits bool, err error)
	// Proceed imagines what is decided at this moment when the agent is not asked, or not any more, and returns the
	// decisions. In most environments there are none.
	Proceed() ([]sim.Decision, error)
	// Forget ends what is imagined. What the environment remembers of the agent's own actions is forgotten too.
	Forget()
	// Keep is Forget, but the environment remembers the actions: PolicyMix-v1, which policy was chosen; DelayOffer-v1,
	// what was declined; QueueRank-v1, which job is next. It is for agents whose decisions are carried out.
	Keep()
	// Choices appends to dst the waiting jobs that the agent is shown, in the order in which it is shown them.
	Choices(dst []sim.Job) []sim.Job
	// Hide imagines that job j, which waits, has left, so that the agent is shown others: Rank orders whole queues that
	// way.
	Hide(j sim.Job) error
}

// Following says how an environment follows.
type Following struct {
	// Origin is what the clock of the workload's history shows when that of the facts shows 0. The environment's predictor
	// knows what had ended there.
	Origin time.Duration
	// Works says that jobs have their run times, as in a recorded run. Of others only estimates are known, so estimates
	// must be causal, trace or none.
	Works bool
	// First is the position of the first job that the agent may start. In a recorded episode those before it fill the
	// cluster.
	First int
	Seed  uint64 // as of an episode
}

// Mindful is an optional ability of Actions that remember more than State has: their own actions, or a queue whose
// order depends on what has been shown. Its methods are called where facts are followed.
type Mindful interface {
	// Looked says that the facts up to this moment, those of s.Point, have been taken in.
	Looked(s *State)
	// Mark notes what is remembered: an imagination begins.
	Mark()
	// Back returns to the last Mark, if one has been since the last Back or Keep. It is called at every Forget.
	Back()
	// Keep is called in place of Back where the decisions that were made in imagination are carried out.
	Keep(made []sim.Decision)
}

// Hider is an optional ability of Actions that are asked about other things than the jobs of a queue: Hide imagines
// that j, which is shown, is shown no more.
type Hider interface {
	Hide(s *State, j sim.Job) error
}

// steering is what Env has to follow.
type steering struct {
	on       bool
	observed bool           // Observe has shown the current state
	flown    bool           // a pilot's scheduler has decided in this imagination
	early    int            // events of decisions at the current point that have been taken in
	made     []sim.Decision // imagined since the last action
	dec      sim.Decision

	// The state to which Forget returns.
	gone                                   []sim.Job // what has left the queue in imagination
	waiting, shown                         int
	waitingGPUs, waitingWork, waitingSince float64
}

var _ Steered = (*Env)(nil)

// errLook is returned at the wrong moment.
var errLook = errors.New("there is nothing to observe: call Follow, and Look after the last fact")

// Follow implements Facts.
func (e *Env) Follow(f Following) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	x := &e.steer
	e.seed, e.est.Seed = f.Seed, f.Seed
	if err := e.sim.Follow(sim.Following{Origin: f.Origin, Works: f.Works, Estimates: e.est}); err != nil {
		return fmt.Errorf("%s: %w", e.spec.ID, err)
	}
	x.on, x.observed, x.early, x.gone, e.log, e.state.Facts = true, false, 0, x.gone[:0], false, true
	e.win = Window{First: f.First, GPUs: e.sim.View().Cluster().GPUs(), Tau: e.cfg.Tau, Origin: f.Origin,
		Traced: e.win.Traced[:0]}
	e.blank(f.Seed)
	return nil
}

// More implements Steered.
func (e *Env) More(more bool) { e.sim.More(more) }

// Tell implements Facts.
func (e *Env) Tell(f *sim.Fact) error {
	e.Forget()
	if f.Kind == sim.Submit && f.Job != nil && f.Job.GPUs < 1 {
		return fmt.Errorf("%w: %v: %s schedules jobs with GPUs, and this one asks for none; leave it out", sim.ErrFact, f,
			e.spec.ID)
	}
	j, found := sim.Job(-1), false
	if f.Kind == sim.Start || f.Kind == sim.Drop {
		j, found = e.state.View.Find(f.ID)
	}
	open, err := e.sim.Tell(f)
	if err != nil {
		return err
	}
	e.steer.observed = false
	e.state.Moment++
	if open {
		if e.steer.early = len(e.state.View.DecisionEvents()); found {
			e.leaves(j)
		}
	}
	return nil
}

// leaves takes j out of the queue.
func (e *Env) leaves(j sim.Job) {
	if e.state.Known[j].Counted {
		e.dequeue(j)
	}
}

// Look implements Facts. Jobs of starts and departures that Tell has already taken out of the queue are early.
func (e *Env) Look(now time.Duration) error {
	e.Forget()
	x := &e.steer
	p, err := e.sim.Look(now)
	if err != nil {
		return err
	}
	e.state.Point, x.observed = p, false
	e.state.Moment++
	for i := range p.Events {
		ev := &p.Events[i]
		e.event(ev)
		if i >= x.early && (ev.Kind == sim.Start || ev.Kind == sim.Drop) {
			e.leaves(ev.Job)
		}
	}
	x.early = 0
	e.showWatcher(p)
	e.book(p.Events)
	e.shown = 0
	if e.mind != nil {
		e.mind.Looked(&e.state)
	}
	return nil
}

// isOpen returns an error if there is no current point: nothing is followed, or a fact has ended the point.
func (e *Env) isOpen() error {
	if e.state.Point == nil || !e.sim.Open() {
		return fmt.Errorf("%s: %w", e.spec.ID, errLook)
	}
	return nil
}

// Observe implements Imagination.
func (e *Env) Observe(ts *env.TimeStep) (asks bool, err error) {
	if err := e.isOpen(); err != nil {
		return false, err
	}
	e.look()
	e.Show(ts)
	e.steer.observed = true
	return e.asks(), nil
}

// imagine begins an imagination unless there is one.
func (e *Env) imagine() error {
	x, s := &e.steer, &e.state
	begun := !e.sim.Imagines()
	x.made = x.made[:0]
	if err := e.sim.Imagine(); err != nil {
		return fmt.Errorf("%s: %w", e.spec.ID, err)
	}
	if !begun {
		return nil
	}
	x.gone, x.shown, x.flown = x.gone[:0], e.shown, false
	x.waiting, x.waitingGPUs, x.waitingWork, x.waitingSince = s.Waiting, s.WaitingGPUs, s.WaitingWork, s.WaitingSince
	if e.mind != nil {
		e.mind.Mark()
	}
	return nil
}

// Imagine implements Imagination.
func (e *Env) Imagine(a env.Action) (decisions []sim.Decision, waits bool, err error) {
	x := &e.steer
	if !x.observed {
		return nil, false, fmt.Errorf("%s: an action was imagined that answers no observation; call Observe first", e.spec.ID)
	}
	if err := e.shell.Legal(a, e.mask); err != nil {
		return nil, false, err
	}
	if err := e.imagine(); err != nil {
		return nil, false, err
	}
	x.observed = false
	e.dec.Op, e.dec.GPUs, e.dec.Until = sim.Wait, e.dec.GPUs[:0], 0
	decided, err := e.parts.Actions.Decode(a, &e.state, &e.dec)
	if err != nil || !decided {
		return nil, false, err
	}
	if e.pilot != nil {
		if sch := e.pilot.Pilot(&e.state); sch != nil {
			err = e.imaginePilot(sch)
			return x.made, e.pilot.Holds(), err
		}
	}
	if e.dec.Op == sim.Wait {
		return nil, true, nil
	}
	err = e.imagineOne()
	return x.made, false, err
}

// imagineOne imagines e.dec and notes it.
func (e *Env) imagineOne() error {
	x, d := &e.steer, &e.dec
	if err := e.sim.Apply(d); err != nil {
		return err
	}
	if len(x.made) < cap(x.made) {
		x.made = x.made[:len(x.made)+1]
	} else {
		x.made = append(x.made, sim.Decision{})
	}
	c := &x.made[len(x.made)-1]
	gpus := append(c.GPUs[:0], d.GPUs...)
	*c = *d
	c.GPUs = gpus
	x.observed = false
	if d.Op == sim.StartJob {
		e.hide(d.Job)
	}
	return nil
}

// hide takes j out of the queue in imagination.
func (e *Env) hide(j sim.Job) {
	if e.state.Known[j].Counted {
		e.dequeue(j)
		e.steer.gone = append(e.steer.gone, j)
	}
}

// imaginePilot imagines what sch decides now.
func (e *Env) imaginePilot(sch sim.Scheduler) error {
	e.steer.flown = true
	for {
		e.dec.Op, e.dec.GPUs, e.dec.Until = sim.Wait, e.dec.GPUs[:0], 0
		if err := sch.Decide(e.state.View, e.state.Point, &e.dec); err != nil || e.dec.Op == sim.Wait {
			return err
		}
		if err := e.imagineOne(); err != nil {
			return err
		}
	}
}

// Proceed implements Imagination: a pilot decides as long as what was chosen earlier, and kept, holds.
func (e *Env) Proceed() ([]sim.Decision, error) {
	x := &e.steer
	if err := e.isOpen(); err != nil {
		return nil, err
	}
	if e.pilot == nil || x.flown && e.sim.Imagines() {
		return nil, nil
	}
	sch := e.pilot.Pilot(&e.state)
	if sch == nil {
		return nil, nil
	}
	if err := e.imagine(); err != nil {
		return nil, err
	}
	err := e.imaginePilot(sch)
	return x.made, err
}

// Forget implements Imagination.
func (e *Env) Forget() {
	e.forget()
	if e.mind != nil {
		e.mind.Back()
	}
}

// Keep implements Imagination.
func (e *Env) Keep() {
	made := e.steer.made
	if !e.sim.Imagines() {
		made = nil
	}
	e.forget()
	if e.mind != nil {
		e.mind.Keep(made)
	}
}

// forget returns to the facts.
func (e *Env) forget() {
	x, s := &e.steer, &e.state
	was := e.sim.Imagines()
	e.sim.Forget()
	if !was {
		return
	}
	x.observed = false
	e.state.Moment++
	for i := len(x.gone) - 1; i >= 0; i-- {
		e.parts.Slots.Add(s, x.gone[i])
	}
	x.gone = x.gone[:0]
	s.Waiting, s.WaitingGPUs, s.WaitingWork, s.WaitingSince = x.waiting, x.waitingGPUs, x.waitingWork, x.waitingSince
	s.Picked = s.Picked[:0]
	if e.books != nil {
		e.books.Rejoin(s)
	}
	e.shown = x.shown
}

// Choices implements Imagination.
func (e *Env) Choices(dst []sim.Job) []sim.Job { return append(dst, e.state.Slots...) }

// Hide implements Imagination.
func (e *Env) Hide(j sim.Job) error {
	if err := e.imagine(); err != nil {
		return err
	}
	e.steer.observed = false
	if h, ok := e.parts.Actions.(Hider); ok {
		return h.Hide(&e.state, j)
	}
	d := &e.steer.dec
	d.Op, d.Job, d.GPUs = sim.DropJob, j, d.GPUs[:0]
	if err := e.sim.Apply(d); err != nil {
		return fmt.Errorf("%s: %w", e.spec.ID, err)
	}
	e.hide(j)
	return nil
}

// Ask implements Steered.
func (e *Env) Ask(sch sim.Scheduler, visit func(d *sim.Decision) error) error {
	e.Forget()
	if err := e.isOpen(); err != nil {
		return err
	}
	defer e.sim.Forget()
	return e.sim.Ask(sch, &e.steer.dec, visit)
}

// Rank appends to dst the queue of e, which follows, in the order in which an agent prefers its jobs: those with the
// highest scores first. score returns a score for each of the jobs that ts shows (Imagination.Choices). Of each
// observation the best each jobs are taken, and are hidden then. What was imagined is forgotten.
func Rank(e Imagination, ts *env.TimeStep, each int, dst []sim.Job,
	score func(ts *env.TimeStep, jobs []sim.Job) ([]float64, error)) ([]sim.Job, error) {
	if each < 1 {
		return dst, fmt.Errorf("sched: %d jobs of each observation are ranked, want at least 1", each)
	}
	e.Forget()
	defer e.Forget()
	var jobs []sim.Job
	var order []int
	for {
		if _, err := e.Observe(ts); err != nil {
			return dst, err
		}
		if jobs = e.Choices(jobs[:0]); len(jobs) == 0 {
			return dst, nil
		}
		scores, err := score(ts, jobs)
		if err != nil {
			return dst, err
		}
		if len(scores) != len(jobs) {
			return dst, fmt.Errorf("sched: %d scores for %d jobs", len(scores), len(jobs))
		}
		order = order[:0]
		for i := range jobs {
			order = append(order, i)
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case scores[a] > scores[b]:
				return -1
			case scores[a] < scores[b]:
				return 1
			}
			return 0
		})
		for _, i := range order[:min(each, len(order))] {
			dst = append(dst, jobs[i])
			if err := e.Hide(jobs[i]); err != nil {
				return dst, err
			}
		}
	}
}
