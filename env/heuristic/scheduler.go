package heuristic

import (
	"fmt"
	"slices"
	"time"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// Scheduler is an order with an admission, a back-filling and a placement. It keeps its own ordered queue and learns
// of changes from events, so Decide must be called at every point; otherwise call Reset. Not safe for concurrent use.
type Scheduler struct {
	cfg    Config
	rule   rule
	strict bool
	place  placer
	picky  bool // the placement may refuse what fits
	est    sim.Estimates
	asks   bool     // it needs estimates
	state  stateful // of stateful orders

	lanes  []lane     // by virtual cluster; one if there are none, or one owns the whole cluster
	fill   backfiller // holds the queue and decides instead of lanes; nil without back-filling or commit
	jobs   []jobMark  // by job
	odd    int        // jobs in the system for which counting GPUs is not enough
	freed  freed
	aside  []aside // passed over: see rule.passOver
	open   bool    // a point is being decided
	moved  bool    // a job has been started since waiting jobs were ranked
	use    usage   // for orders that look at what users and jobs hold
	ranks  *ranks  // classes of waiting jobs are ranked anew, not jobs; nil = jobs are
	since  uint64  // version that the cluster had after the last decision, plus what the simulator has changed since
	known  uint64  // View.Decisions after the last decision
	until  int64
	err    error // found by Reset
	last   ranking
	behind bool      // waiting jobs still have the keys of an earlier point: the order did not matter
	always bool      // for tests: at every point all waiting jobs are forgotten and queued anew
	taken  []sim.Job // scratch of Reset and rerank
	seen   int       // jobs before this position have been queued

	// Preemptive orders plan a whole pass and then return it decision by decision.
	running []entry
	ended   bool // jobs may have stopped running since takeStock
	chosen  []entry
	fresh   []int // places in chosen of waiting jobs, by countedPlan
	stopped []entry
	plan    []step
	next    int
	exact   exactPlan
	kept    kept // running jobs that are spared

	// What steady orders need to know of the last pass.
	issued  int  // its decisions
	waiting int  // the jobs that it left waiting
	failed  bool // a job found no place, although there was room by count
	foreign bool // something else than submits, finishes and the decisions of the last pass has happened since it
	calm    bool // nothing but these decisions has
}

// ranking is the state in which all waiting jobs got their keys.
type ranking struct {
	valid            bool
	version          uint64 // of the cluster
	waiting, arrived int
}

// lane holds the waiting jobs of one virtual cluster. Admission acts within each.
type lane struct {
	waitQueue
	over  bool // no more of them start in this pass
	room  int  // thousandths that its quota still allows in the plan; MaxInt = without a quota
	stuck int  // position of the first job, which did not fit; valid while nothing is given back. −1 = unknown
}

// jobMark is what the scheduler notes about a job.
type jobMark struct {
	queued bool  // it is in a lane
	odd    bool  // counted in Scheduler.odd
	class  int32 // in Scheduler.ranks, while it is queued
}

// aside is a job that was passed over, and its lane.
type aside struct {
	entry
	lane int
}

// backfiller holds the waiting jobs and decides, with back-filling or admission commit.
type backfiller interface {
	reset(v *sim.View)
	// push takes in a job that waits.
	push(v *sim.View, e entry)
	// clear forgets all waiting jobs; they are pushed again.
	clear()
	// rekey gives every waiting job its new key and forgets those that have none (newKey). Jobs are not ranked by class.
	rekey(v *sim.View)
	// rerank gives the jobs whose class has another key since the last update (ranks.moved) their new one.
	rerank()
	// holds reports whether j has been pushed and still waits.
	holds(v *sim.View, j sim.Job) bool
	// idle reports whether the next decision is the same in whatever order the jobs wait.
	idle(v *sim.View) bool
	// event updates the books of running jobs: j has started or stopped.
	event(v *sim.View, j sim.Job)
	// disturbed says that other code has started or stopped jobs at this point.
	disturbed(v *sim.View)
	// forget drops the reservations that earlier passes have made.
	forget()
	// open begins a pass.
	open(v *sim.View)
	// next makes one decision, or returns done.
	next(v *sim.View, d *sim.Decision) (done bool)
}

var _ Policy = (*Scheduler)(nil)

func newScheduler(cfg Config) (Policy, error) {
	s := &Scheduler{cfg: cfg, strict: cfg.admission() != "skip", asks: cfg.Estimating()}
	s.rule = rules[slices.IndexFunc(rules, func(r rule) bool { return r.name == cfg.Order })]
	var err error
	if s.place, err = newPlacement(cfg); err != nil {
		return nil, err
	}
	s.picky = constrained(s.place)
	s.est = cfg.Estimates
	s.est.Seed = cfg.Seed
	switch {
	case cfg.admission() == "commit":
		s.fill = &commit{s: s, fill: cfg.backfill() == "easy"}
	case cfg.backfill() == "easy":
		s.fill = &eitherEasy{easy: &easy{s: s}, wide: &conservative{s: s, heads: true}}
	case cfg.backfill() == "conservative":
		s.fill = &conservative{s: s}
	}
	if s.rule.classes != nil {
		s.ranks = &ranks{classes: s.rule.classes(s)}
	}
	return s, nil
}

// Name returns order and admission, and how it back-fills: "sjf+skip", "fifo+strict+easy".
func (s *Scheduler) Name() string { return s.cfg.Name() }

// Reseed changes the seed of random orders, noisy estimates and random placements, from the next Reset on.
func (s *Scheduler) Reseed(seed uint64) {
	s.cfg.Seed, s.est.Seed = seed, seed
	if p, ok := s.place.(interface{ Reseed(seed uint64) }); ok {
		p.Reseed(seed)
	}
}

// Reset implements sim.Scheduler. Jobs that already wait are queued.
func (s *Scheduler) Reset(v *sim.View) {
	n := 1
	if vcs := len(v.Cluster().VCs()); vcs > 0 && v.Cluster().Owner() == 0 {
		n = vcs + 1 // lane 0 stays empty
	}
	for len(s.lanes) < n {
		s.lanes = append(s.lanes, lane{})
	}
	s.lanes = s.lanes[:n]
	if s.ranks != nil {
		s.ranks.reset()
	}
	for i := range s.lanes {
		s.lanes[i].rankBy(s.ranks)
		// Preemptive orders always use one line for each kind of request: what fits is counted in GPUs, in rank order.
		s.lanes[i].reset(&s.jobs, s.strict && !s.rule.preemptive)
		s.lanes[i].over, s.lanes[i].stuck = false, -1
	}
	s.jobs, s.odd, s.aside = s.jobs[:0], 0, s.aside[:0]
	s.last.valid, s.behind = false, false
	s.use.reset()
	s.freed.reset(v.Cluster())
	s.place.Reset()
	s.open, s.moved, s.running, s.plan, s.next, s.err = false, false, s.running[:0], s.plan[:0], 0, nil
	s.issued, s.failed, s.known = unknown, false, v.Decisions()
	if s.rule.state != nil {
		s.state = s.rule.state(s)
	}
	if s.fill != nil {
		s.fill.reset(v)
	}
	s.taken = append(s.taken[:0], v.Waiting()...)
	slices.SortFunc(s.taken, func(a, b sim.Job) int { return v.Pos(a) - v.Pos(b) })
	for _, j := range s.taken {
		if err := s.submit(v, j); err != nil && s.err == nil {
			s.err = err // Decide reports it
		}
	}
	s.seen = v.Arrived()
	for _, j := range v.Running() {
		s.running = append(s.running, entry{pos: v.Pos(j), job: j})
		if s.state != nil {
			s.state.submit(v, j)
		}
		s.note(v, j)
		if s.fill != nil {
			s.fill.event(v, j)
		}
	}
}

// note makes room for what the scheduler notes about j, and counts it if it is odd.
func (s *Scheduler) note(v *sim.View, j sim.Job) *jobMark {
	for int(j) >= len(s.jobs) {
		s.jobs = append(s.jobs, jobMark{})
	}
	s.forgetOdd(j)
	m := &s.jobs[j]
	*m = jobMark{odd: !plain(v.Request(j))}
	if m.odd {
		s.odd++
	}
	return m
}

func (s *Scheduler) forgetOdd(j sim.Job) {
	if int(j) < len(s.jobs) && s.jobs[j].odd {
		s.jobs[j].odd = false
		s.odd--
	}
}

// plain requests are for whole GPUs and nothing else.
func plain(r *cluster.Request) bool {
	return r.Milli == 1000 && r.Types == 0 && r.CPUMilli == 0 && r.MemBytes == 0
}

func (s *Scheduler) submit(v *sim.View, j sim.Job) error {
	if s.state != nil {
		s.state.submit(v, j)
	}
	if s.asks {
		if err := s.est.Check(v, j); err != nil {
			return fmt.Errorf("%s: %w", s.Name(), err)
		}
	}
	s.note(v, j)
	s.push(v, s.ranked(v, j))
	return nil
}

// push takes in a job that waits.
func (s *Scheduler) push(v *sim.View, e entry) {
	m := &s.jobs[e.job]
	if s.ranks != nil {
		m.class = s.ranks.of(v, e.job)
	}
	if s.fill != nil {
		s.fill.push(v, e)
		return
	}
	m.queued = true
	s.lanes[s.laneOf(v, e.job)].push(e, v.Request(e.job))
}

// laneOf returns the number of j's lane.
func (s *Scheduler) laneOf(v *sim.View, j sim.Job) int {
	if len(s.lanes) == 1 {
		return 0
	}
	return int(v.Request(j).VC)
}

func (s *Scheduler) pop(l *lane, at int) entry {
	e := l.pop(at)
	s.jobs[e.job].queued = false
	return e
}

// Decide implements sim.Scheduler.
func (s *Scheduler) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if s.err != nil {
		return s.err
	}
	if s.fill != nil && s.open && s.others(v) {
		s.disturbed(v)
		s.fill.open(v)
	}
	s.use.mine = s.open && s.moved
	if !s.open {
		s.open, s.until = true, 0
		if err := s.observe(v, p); err != nil {
			return err
		}
		if q, ok := s.state.(steady); ok && s.kept.none() && s.same(v) && q.still(s, v) {
			s.issued, s.until = 0, q.wakes(v)
			s.finish(v, d)
			return nil
		}
		s.issued = 0
		s.begin(v)
	}
	if s.moved && s.rule.everyStart {
		s.rerank(v)
		if s.fill != nil {
			s.fill.open(v)
		}
	} else if s.behind {
		s.rekey(v)
	}
	var done bool
	switch {
	case s.fill != nil:
		done = s.fill.next(v, d)
	case s.rule.preemptive:
		done = s.nextStep(v, d)
	default:
		done = s.nextStart(v, d)
	}
	s.moved = !done
	if s.since, s.known = v.Cluster().Version(), v.Decisions(); !done {
		s.since++ // the start
		s.known++
	}
	if done {
		s.failed = s.issued != len(s.plan)
		s.finish(v, d)
	} else {
		s.issued++
	}
	return nil
}

// same reports whether a preemptive order finds the jobs, and what is free, as its last pass has left them. Other code
// may have decided something at this point.
func (s *Scheduler) same(v *sim.View) bool {
	return s.calm && !s.failed && s.counts(v) && len(s.running) == len(v.Running()) && s.waiting == len(v.Waiting())
}

// finish ends a pass.
func (s *Scheduler) finish(v *sim.View, d *sim.Decision) {
	s.open, s.waiting = false, len(v.Waiting())
	s.freed.done(v.Cluster())
	d.Op, d.Until = sim.Wait, time.Duration(s.until)
}

// counts reports whether counting GPUs decides which jobs of a preemptive order run.
func (s *Scheduler) counts(v *sim.View) bool {
	return len(s.lanes) == 1 && (v.Cluster().Pool() || !s.picky && s.odd == 0)
}

// observe processes the events since the last point.
func (s *Scheduler) observe(v *sim.View, p *sim.Point) error {
	c := v.Cluster()
	own := 0
	s.foreign, s.calm = false, true
	for i := range p.Events {
		e := &p.Events[i]
		switch e.Kind {
		case sim.Timer:
		case sim.Start, sim.Preempt:
			own++
		case sim.Submit, sim.Finish:
			s.calm = false
		default:
			s.foreign = true
		}
		switch e.Kind {
		case sim.Submit:
			// A job that Reset found waiting can also be among the events of the first point.
			if v.Pos(e.Job) >= s.seen {
				if err := s.submit(v, e.Job); err != nil {
					return err
				}
			}
			continue
		case sim.Start:
			if s.fill != nil {
				s.fill.event(v, e.Job)
			}
			continue
		case sim.Timer:
			continue
		case sim.NodeFail:
			s.since++
			if s.fill != nil {
				s.fill.forget() // less is free, and will be when running jobs have ended
			}
			continue
		case sim.NodeRecover:
			s.since++
			s.freed.event(c, e)
			if s.fill != nil {
				s.fill.forget() // more will be free
			}
			continue
		case sim.Finish, sim.Fail:
			s.since++
		}
		s.freed.event(c, e)
		s.ended = true
		if s.fill != nil {
			s.fill.event(v, e.Job)
		}
		switch e.Kind {
		case sim.Finish, sim.Drop:
			s.forgetOdd(e.Job)
			if l, ok := s.state.(learner); ok && e.Kind == sim.Finish {
				l.learn(v, e.Job)
			}
		case sim.Preempt, sim.Fail:
			s.requeue(v, e.Job)
		}
	}
	s.freed.open(c)
	s.foreign = s.foreign || own != s.issued
	s.calm = s.calm && !s.foreign
	return nil
}

// requeue queues again a job that failed or that other code has stopped; under a stateful order, as if the order had
// stopped it.
func (s *Scheduler) requeue(v *sim.View, j sim.Job) {
	if v.State(j) != sim.Waiting || int(j) >= len(s.jobs) {
		return
	}
	if s.knows(v, j) {
		if s.fill != nil { // others started it, so how long it lasts may have changed
			s.push(v, s.ranked(v, j))
		}
		return
	}
	if s.state != nil {
		s.state.after(v, nil, []entry{{pos: v.Pos(j), job: j}})
	}
	s.push(v, s.ranked(v, j))
}

// knows reports whether j, which waits, has been pushed and not popped since.
func (s *Scheduler) knows(v *sim.View, j sim.Job) bool {
	if s.fill != nil {
		return s.fill.holds(v, j)
	}
	return int(j) < len(s.jobs) && s.jobs[j].queued
}

// begin opens a pass.
func (s *Scheduler) begin(v *sim.View) {
	if s.rule.dynamic && !s.ranksStand(v) {
		if q, ok := s.state.(steady); !ok || !q.ranked(s.foreign) {
			s.rerank(v)
		}
	}
	if s.fill != nil {
		if s.others(v) {
			s.disturbed(v)
		}
		s.fill.open(v)
		return
	}
	if s.rule.preemptive {
		s.freed.any, s.freed.all = true, true // every pass gives everything back
	}
	for i := range s.lanes {
		l := &s.lanes[i]
		l.over = false
		if s.freed.any {
			l.stuck = -1
		}
		if !l.single {
			l.open(v.Cluster(), &s.freed)
		}
	}
	if s.rule.preemptive {
		s.makePlan(v)
	}
}

// others reports whether other code has decided since the last decision. On a part of a cluster, whose policies decide one
// after the other, divided notes in since that jobs have been dropped.
func (s *Scheduler) others(v *sim.View) bool {
	return v.Cluster().Version() != s.since || v.Cluster().Own() == v.Cluster().GPUs() && v.Decisions() != s.known
}

// disturbed takes note that other code has decided something at this point: what had no room may have some now.
func (s *Scheduler) disturbed(v *sim.View) {
	s.freed.any, s.freed.all = true, true
	s.fill.disturbed(v)
}

// rerank gives all waiting jobs new keys.
func (s *Scheduler) rerank(v *sim.View) {
	if s.ranks != nil {
		s.rankClasses(v)
		return
	}
	s.takeIn(v)
}

// rankClasses does what rerank does by giving new keys to classes.
func (s *Scheduler) rankClasses(v *sim.View) {
	s.moved = false
	foreign := s.others(v)
	cells := 0
	for i := range s.lanes {
		l := &s.lanes[i]
		l.over = false // another may come first now
		if foreign {
			l.openAll()
		}
		cells += l.cells()
	}
	if max(cells, s.ranks.made) > 64+2*len(v.Waiting()) { // most are of classes that no job waits with
		s.takeIn(v)
	}
	change := s.ranks.update(v)
	if s.fill != nil {
		if len(change) > 0 {
			s.fill.rerank()
		}
		return
	}
	for _, c := range change {
		for i := range s.lanes {
			s.lanes[i].rerank(c)
		}
	}
}

// noVersion is a version that no cluster reaches: other code has changed something.
const noVersion = 1 << 63

// takeIn queues all waiting jobs anew.
func (s *Scheduler) takeIn(v *sim.View) {
	if s.fill != nil && s.ranks == nil && !s.always {
		s.rekey(v)
		return
	}
	s.taken = s.taken[:0]
	for _, j := range v.Waiting() {
		if s.knows(v, j) { // one that other code has stopped at this point cannot start at it
			s.taken = append(s.taken, j)
		}
	}
	if s.fill != nil {
		s.fill.clear()
	}
	if s.ranks != nil {
		s.ranks.reset()
	}
	for i := range s.lanes {
		s.lanes[i].reset(&s.jobs, s.lanes[i].single)
		s.lanes[i].over = false // another may come first now
	}
	if s.rule.prepare != nil && s.ranks == nil {
		s.rule.prepare(s, v)
	}
	s.moved = false
	for _, j := range s.taken {
		s.push(v, s.ranked(v, j))
	}
	s.last = ranking{true, v.Cluster().Version(), len(v.Waiting()), v.Arrived()}
}

// rekey does what takeIn does for a backfiller, in place: from one point to the next, few jobs change places. The keys
// stay as they are while the order of the jobs does not matter.
func (s *Scheduler) rekey(v *sim.View) {
	if s.behind = s.fill.idle(v); s.behind {
		s.moved, s.last.valid = false, false
		return
	}
	if s.rule.prepare != nil {
		s.rule.prepare(s, v)
	}
	s.moved = false
	s.fill.rekey(v)
	s.last = ranking{true, v.Cluster().Version(), len(v.Waiting()), v.Arrived()}
}

// newKey returns j's key; ok is false if it does not wait, or if it is another job than the one that was pushed.
func (s *Scheduler) newKey(v *sim.View, j sim.Job) (key float64, ok bool) {
	if v.State(j) != sim.Waiting || !s.fill.holds(v, j) {
		return 0, false
	}
	return s.rule.key(s, v, j), true
}

// ranksStand reports whether ranking anew would change no key: jobs have arrived since, which got their keys then, and
// nothing else has happened that keys follow from.
func (s *Scheduler) ranksStand(v *sim.View) bool {
	e, ok := s.fill.(*eitherEasy)
	if !s.rule.everyStart || s.always || s.ranks != nil || s.fill != nil && !(ok && e.backfiller == e.easy) || s.use.outdone {
		return false
	}
	l := &s.last
	return l.valid && l.version == v.Cluster().Version() && len(v.Waiting())-l.waiting == v.Arrived()-l.arrived
}

// ranked returns j with its key; without one if its class has it.
func (s *Scheduler) ranked(v *sim.View, j sim.Job) entry {
	e := entry{pos: v.Pos(j), job: j}
	if s.ranks == nil {
		e.key = s.rule.key(s, v, j)
	}
	return e
}

// best returns, over the lanes that are not over, the lane and the place in it of the first job in rank. Jobs that
// ask for more whole GPUs than are free on c are left out.
func (s *Scheduler) best(v *sim.View, c *cluster.Cluster) (l *lane, at int) {
	if len(s.lanes) == 1 {
		if l = &s.lanes[0]; l.over {
			return nil, none
		}
		return l, l.best(v, s.limit(c.Free()))
	}
	at = none
	for i := range s.lanes {
		k := &s.lanes[i]
		if k.over {
			continue
		}
		w := k.best(v, s.limit(min(c.VCFree(int32(i)), c.VCRoom(int32(i))/1000)))
		if w != none && (at == none || k.top(w).before(l.top(at))) {
			l, at = k, w
		}
	}
	return l, at
}

// limit returns the greatest number of whole GPUs that a job may ask for to be considered when free GPUs are free.
func (s *Scheduler) limit(free int) int {
	if s.strict {
		return unlimited
	}
	return free
}

// nextStart starts the first job in line that fits, or returns done.
func (s *Scheduler) nextStart(v *sim.View, d *sim.Decision) (done bool) {
	c := v.Cluster()
	for {
		l, at := s.best(v, c)
		if at == none {
			if len(s.aside) > 0 {
				s.comeBack(v)
			}
			return true
		}
		e := *l.top(at)
		if s.strict && l.stuck != e.pos || !s.strict && !l.hopeless(c, &s.freed, at) {
			ok := false
			if c.Pool() { // no placement distinguishes its GPUs
				d.GPUs, ok = d.GPUs[:0], c.Fits(v.Request(e.job))
			} else {
				d.GPUs, ok = s.place.Place(v, e.job, c, d.GPUs)
			}
			if ok {
				s.pop(l, at)
				if s.rule.passOver {
					s.passOver(v, l)
				}
				d.Op, d.Job = sim.StartJob, e.job
				return false
			}
		}
		if s.strict {
			l.over, l.stuck = true, e.pos
		} else {
			l.close(at)
		}
	}
}

// passOver excludes the next job in line from the rest of the pass.
func (s *Scheduler) passOver(v *sim.View, l *lane) {
	if at := l.best(v, unlimited); at != none {
		e := s.pop(l, at)
		s.aside = append(s.aside, aside{e, s.laneOf(v, e.job)})
	}
}

// comeBack returns the jobs that were passed over to their lines.
func (s *Scheduler) comeBack(v *sim.View) {
	for _, a := range s.aside {
		if v.State(a.job) == sim.Waiting {
			s.push(v, a.entry)
		}
	}
	s.aside = s.aside[:0]
}
