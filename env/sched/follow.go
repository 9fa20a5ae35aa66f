package sched

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"clustergym/env"
	"clustergym/env/sim"
)

// Steered is an environment that can follow a cluster that somebody else runs: facts in, observations out. What an agent would be
// shown comes from the encoder of its training. There are no rewards, no episodes and no end; Reset ends the following.
//
// The order of calls is: Follow; then, again and again, Tell for what has happened, Look at the time of the observation, and
// Observe. If Observe says that the agent is asked, Imagine takes its action, as if it were carried out at this moment, and
// Observe shows what comes then, until Imagine says that the agent waits. Proceed adds what is decided without asking an agent.
// Forget returns to the facts. What the cluster has made of it comes with later facts.
//
// Instead of Look, Tell can also take the decisions of the current point one by one, as they are carried out. A watcher (Arena.Watch) sees
// the points of Look.
type Steered interface {
	Arena
	// Follow begins to follow facts, on an empty cluster (sim.Present.Facts leads to any other).
	Follow(f Following) error
	// More says whether more jobs may arrive: true, unless somebody says otherwise.
	More(more bool)
	// Tell takes in a fact. An error (sim.ErrFact) changes nothing. Jobs without GPUs are left out. Jobs that are larger than those
	// of the environment's workloads run, but the agent is not asked about them.
	Tell(f *sim.Fact) error
	// Look moves the clock to now and ends what is imagined.
	Look(now time.Duration) error
	// Observe fills ts with what an agent would be shown now, and reports whether it would be asked. It does not allocate in
	// steady state.
	Observe(ts *env.TimeStep) (asks bool, err error)
	// Imagine takes an action that the last Observe has shown as legal. It returns the decisions that follow from it, in order,
	// valid until the next call, and whether the agent waits with it: no further action belongs to this moment.
	Imagine(a env.Action) (decisions []sim.Decision, waits bool, err error)
	// Proceed imagines what is decided at this moment when the agent is not asked, or not any more, and returns the decisions. In
	// most environments there are none.
	Proceed() ([]sim.Decision, error)
	// Forget ends what is imagined. What the environment remembers of the agent's own actions is forgotten too.
	Forget()
	// Keep is Forget, but the environment remembers the actions: PolicyMix-v1, which policy was chosen; DelayOffer-v1, what was
	// declined. It is for agents whose decisions are carried out.
	Keep()
	// Choices appends to dst the waiting jobs that the agent is shown, in the order in which it is shown them.
	Choices(dst []sim.Job) []sim.Job
	// Hide imagines that job j, which waits, has left, so that the agent is shown others: Rank orders whole queues that way.
	Hide(j sim.Job) error
	// Ask lets a scheduler, which sees the whole queue, decide now until it waits, in imagination (sim.Simulator.Ask), and forgets
	// it. visit sees every decision before it is imagined; nil = nobody does.
	Ask(sch sim.Scheduler, visit func(d *sim.Decision) error) error
}

// Following says how an environment follows.
type Following struct {
	// Origin is what the clock of the workload's history shows when that of the facts shows 0. The environment's predictor knows
	// what had ended there.
	Origin time.Duration
	// Works says that jobs have their run times, as in a recorded run. Of others only estimates are known, so estimates must be
	// causal, trace or none.
	Works bool
	// First is the position of the first job that the agent may start. In a recorded episode those before it fill the cluster.
	First int
	Seed  uint64 // as of an episode
}

// Facts is what environments that follow have in common. Not safe for concurrent use.
type Facts struct {
	id    string
	sim   *sim.Simulator
	view  *sim.View
	point *sim.Point // the current one; nil before the first

	shown bool // Observe has shown the current state
	early int  // events of decisions at the current point that have been taken in
	watch func(p *sim.Point)
	made  []sim.Decision
	dec   sim.Decision
}

// NewFacts returns what an environment called id needs to follow with its simulator. watch, if it is not nil, sees every point.
func NewFacts(id string, s *sim.Simulator, watch func(p *sim.Point)) Facts {
	return Facts{id: id, sim: s, view: s.View(), watch: watch}
}

// Begin begins to follow. est are the environment's estimates.
func (x *Facts) Begin(f Following, est sim.Estimates) error {
	if err := x.sim.Follow(sim.Following{Origin: f.Origin, Works: f.Works, Estimates: est}); err != nil {
		return fmt.Errorf("%s: %w", x.id, err)
	}
	x.point, x.shown, x.early = nil, false, 0
	return nil
}

// More implements Steered.
func (x *Facts) More(more bool) { x.sim.More(more) }

// Tell takes in a fact, after the environment has ended what is imagined. leaves is called if it takes a job out of the queue at
// once; what else it does is seen at the next Look.
func (x *Facts) Tell(f *sim.Fact, leaves func(j sim.Job)) error {
	if f.Kind == sim.Submit && f.Job != nil && f.Job.GPUs < 1 {
		return fmt.Errorf("%w: %v: %s schedules jobs with GPUs, and this one asks for none; leave it out", sim.ErrFact, f, x.id)
	}
	j, found := sim.Job(-1), false
	if f.Kind == sim.Start || f.Kind == sim.Drop {
		j, found = x.view.Find(f.ID)
	}
	open, err := x.sim.Tell(f)
	if err != nil {
		return err
	}
	x.shown = false
	if open {
		x.early = len(x.view.DecisionEvents())
		if found {
			leaves(j)
		}
	}
	return nil
}

// Look moves the clock to now, after the environment has ended what is imagined, and shows each every event since the last point. Jobs of
// starts and departures that Tell has already taken out of the queue are early.
func (x *Facts) Look(now time.Duration, each func(ev *sim.Event, early bool)) error {
	p, err := x.sim.Look(now)
	if err != nil {
		return err
	}
	x.point, x.shown = p, false
	for i := range p.Events {
		each(&p.Events[i], i < x.early)
	}
	x.early = 0
	if x.watch != nil {
		x.watch(p)
	}
	return nil
}

// Point returns the current point, nil before the first Look.
func (x *Facts) Point() *sim.Point { return x.point }

// errLook is returned at the wrong moment.
var errLook = errors.New("there is nothing to observe: call Follow, and Look after the last fact")

// Open returns an error if there is no current point: nothing is followed, or a fact has ended the point.
func (x *Facts) Open() error {
	if x.point == nil || !x.sim.Open() {
		return fmt.Errorf("%s: %w", x.id, errLook)
	}
	return nil
}

// Show notes that the current state has been shown.
func (x *Facts) Show() { x.shown = true }

// Imagine begins an imagination unless there is one. begun says that it has begun now.
func (x *Facts) Imagine() (begun bool, err error) {
	begun = !x.sim.Imagines()
	x.made = x.made[:0]
	if err := x.sim.Imagine(); err != nil {
		return false, fmt.Errorf("%s: %w", x.id, err)
	}
	return begun, nil
}

// Shown returns an error unless Observe has shown the current state.
func (x *Facts) Shown() error {
	if !x.shown {
		return fmt.Errorf("%s: an action was imagined that answers no observation; call Observe first", x.id)
	}
	return nil
}

// Apply imagines a decision and notes it.
func (x *Facts) Apply(d *sim.Decision) error {
	if err := x.sim.Apply(d); err != nil {
		return err
	}
	x.note(d)
	return nil
}

// note keeps a copy of d.
func (x *Facts) note(d *sim.Decision) {
	if len(x.made) < cap(x.made) {
		x.made = x.made[:len(x.made)+1]
	} else {
		x.made = append(x.made, sim.Decision{})
	}
	c := &x.made[len(x.made)-1]
	gpus := append(c.GPUs[:0], d.GPUs...)
	*c = *d
	c.GPUs = gpus
	x.shown = false
}

// Decisions returns what has been imagined since the last call of Imagine.
func (x *Facts) Decisions() []sim.Decision { return x.made }

// Drop imagines that j, which waits, leaves.
func (x *Facts) Drop(j sim.Job) error {
	x.shown = false
	x.dec.Op, x.dec.Job, x.dec.GPUs = sim.DropJob, j, x.dec.GPUs[:0]
	return x.sim.Apply(&x.dec)
}

// Forget ends an imagination, and reports whether there was one.
func (x *Facts) Forget() bool {
	was := x.sim.Imagines()
	x.sim.Forget()
	if was {
		x.shown = false
	}
	return was
}

// Ask implements Steered.
func (x *Facts) Ask(sch sim.Scheduler, visit func(d *sim.Decision) error) error {
	if err := x.Open(); err != nil {
		return err
	}
	defer x.sim.Forget()
	return x.sim.Ask(sch, &x.dec, visit)
}

// NoReward fills what a time step holds beside an observation where nothing is paid.
func NoReward(ts *env.TimeStep) {
	ts.Kind, ts.Reward, ts.Elapsed = env.Mid, 0, 0
	for i := range ts.Info {
		ts.Info[i] = math.NaN()
	}
}

// Mindful is an optional ability of Actions that remember actions: Mark notes what they remember, and Back returns to the last
// Mark.
type Mindful interface {
	Mark()
	Back()
}

// steering is what Env has to follow.
type steering struct {
	Facts
	on    bool
	until time.Duration // the pilot that was kept decides until then
	ahead time.Duration // that of the pilot that is imagined

	// The state to which Forget returns.
	gone                                   []sim.Job // what has left the queue in imagination
	waiting, shown                         int
	waitingGPUs, waitingWork, waitingSince float64
}

var _ Steered = (*Env)(nil)

// Follow implements Steered.
func (e *Env) Follow(f Following) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	x := &e.steer
	e.seed, e.est.Seed = f.Seed, f.Seed
	if err := x.Begin(f, e.est); err != nil {
		return err
	}
	x.on, x.until, x.gone = true, 0, x.gone[:0]
	e.win = Window{First: f.First, GPUs: e.sim.View().Cluster().GPUs(), Tau: e.cfg.Tau, Origin: f.Origin, Traced: e.win.Traced[:0]}
	e.blank(f.Seed)
	return nil
}

// More implements Steered.
func (e *Env) More(more bool) { e.steer.More(more) }

// Tell implements Steered.
func (e *Env) Tell(f *sim.Fact) error {
	e.Forget()
	return e.steer.Tell(f, e.leaves)
}

// leaves takes j out of the queue.
func (e *Env) leaves(j sim.Job) {
	if e.state.Known[j].Counted {
		e.dequeue(j)
	}
}

// Look implements Steered.
func (e *Env) Look(now time.Duration) error {
	e.Forget()
	if err := e.steer.Look(now, func(ev *sim.Event, early bool) {
		e.event(ev)
		if !early && (ev.Kind == sim.Start || ev.Kind == sim.Drop) {
			e.leaves(ev.Job)
		}
	}); err != nil {
		return err
	}
	e.point = e.steer.Point()
	e.book(e.point.Events)
	e.shown = 0
	return nil
}

// Observe implements Steered.
func (e *Env) Observe(ts *env.TimeStep) (asks bool, err error) {
	if err := e.steer.Open(); err != nil {
		return false, err
	}
	e.look()
	NoReward(ts)
	e.show(ts)
	e.steer.Show()
	return e.asks() && (e.pilot == nil || e.state.View.Now() >= e.steer.until), nil
}

// imagine begins an imagination unless there is one.
func (e *Env) imagine() error {
	x, s := &e.steer, &e.state
	begun, err := x.Imagine()
	if !begun || err != nil {
		return err
	}
	x.gone, x.shown, x.ahead = x.gone[:0], e.shown, x.until
	x.waiting, x.waitingGPUs, x.waitingWork, x.waitingSince = s.Waiting, s.WaitingGPUs, s.WaitingWork, s.WaitingSince
	if m, ok := e.parts.Actions.(Mindful); ok {
		m.Mark()
	}
	return nil
}

// Imagine implements Steered.
func (e *Env) Imagine(a env.Action) (decisions []sim.Decision, waits bool, err error) {
	x := &e.steer
	if err := x.Shown(); err != nil {
		return nil, false, err
	}
	if err := e.shell.Legal(a, e.mask); err != nil {
		return nil, false, err
	}
	if err := e.imagine(); err != nil {
		return nil, false, err
	}
	e.dec.Op, e.dec.GPUs, e.dec.Until = sim.Wait, e.dec.GPUs[:0], 0
	decided, err := e.parts.Actions.Decode(a, &e.state, &e.dec)
	switch {
	case err != nil:
		return nil, false, err
	case !decided:
		return nil, false, nil
	case e.pilot != nil:
		var sch sim.Scheduler
		sch, x.ahead = e.pilot.Pilot()
		err = e.imaginePilot(sch)
		return x.Decisions(), true, err
	case e.dec.Op == sim.Wait:
		return nil, true, nil
	}
	err = e.imagineOne()
	return x.Decisions(), false, err
}

// imagineOne imagines e.dec.
func (e *Env) imagineOne() error {
	if err := e.steer.Apply(&e.dec); err != nil {
		return err
	}
	if e.dec.Op == sim.StartJob {
		e.hide(e.dec.Job)
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
	sch.Reset(e.state.View)
	for {
		e.dec.Op, e.dec.GPUs, e.dec.Until = sim.Wait, e.dec.GPUs[:0], 0
		if err := sch.Decide(e.state.View, e.point, &e.dec); err != nil || e.dec.Op == sim.Wait {
			return err
		}
		if err := e.imagineOne(); err != nil {
			return err
		}
	}
}

// Proceed implements Steered: a policy that was chosen earlier, and kept, decides as long as the choice holds.
func (e *Env) Proceed() ([]sim.Decision, error) {
	x := &e.steer
	if err := x.Open(); err != nil {
		return nil, err
	}
	if e.pilot == nil || e.state.View.Now() >= x.until {
		return nil, nil
	}
	if err := e.imagine(); err != nil {
		return nil, err
	}
	sch, _ := e.pilot.Pilot()
	err := e.imaginePilot(sch)
	return x.Decisions(), err
}

// Forget implements Steered.
func (e *Env) Forget() {
	if m, ok := e.parts.Actions.(Mindful); ok && e.sim.Imagines() {
		m.Back()
	}
	e.forget()
}

// Keep implements Steered.
func (e *Env) Keep() {
	if e.sim.Imagines() {
		e.steer.until = e.steer.ahead
	}
	e.forget()
}

// forget returns to the facts.
func (e *Env) forget() {
	x, s := &e.steer, &e.state
	if !x.Forget() {
		return
	}
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

// Choices implements Steered.
func (e *Env) Choices(dst []sim.Job) []sim.Job { return append(dst, e.state.Slots...) }

// Hide implements Steered.
func (e *Env) Hide(j sim.Job) error {
	if err := e.imagine(); err != nil {
		return err
	}
	if err := e.steer.Drop(j); err != nil {
		return err
	}
	e.hide(j)
	return nil
}

// Ask implements Steered.
func (e *Env) Ask(sch sim.Scheduler, visit func(d *sim.Decision) error) error {
	e.Forget()
	return e.steer.Ask(sch, visit)
}

// Rank appends to dst the queue of e, which follows, in the order in which an agent prefers its jobs: those with the highest
// scores first. score returns a score for each of the jobs that ts shows (Steered.Choices). Of each observation the best
// each jobs are taken, and are hidden then. What was imagined is forgotten.
func Rank(e Steered, ts *env.TimeStep, each int, dst []sim.Job, score func(ts *env.TimeStep, jobs []sim.Job) ([]float64, error)) ([]sim.Job, error) {
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
