package schedulers

import (
	"fmt"
	"slices"

	"clustergym/internal/grow"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// Scheduler is an order with an admission, a back-filling and a placement. It keeps its own ordered queue and learns
// of changes from events, so Decide must be called at every point; otherwise call Reset. Not safe for concurrent use.
type Scheduler struct {
	books
	strict bool
	asks   bool       // it needs estimates
	queues []vcQueue  // by virtual cluster; one if there are none, or one owns the whole cluster
	fill   backfiller // holds the waiting jobs and decides instead of queues; nil without back-filling or commit
	aside  []aside    // passed over: see rule.passOver
	pass   pass
	last   lastPass
	since  happened // since the last pass
	keys   ranking
	taken  []sim.Job // scratch of Reset and rerank
	seen   int       // jobs before this position have been queued
	err    error     // found by Reset
	always bool      // for tests: at every point all waiting jobs are forgotten and queued again

	preemption
}

// ranking is the state in which all waiting jobs got their keys.
type ranking struct {
	behind           bool // they still have the keys of an earlier point: the order did not matter
	valid            bool
	version          uint64 // of the cluster
	waiting, arrived int
}

// vcQueue holds the waiting jobs of one virtual cluster. Admission acts within each.
type vcQueue struct {
	queue.Queue
	over   bool // no more of them start in this pass
	budget int  // thousandths that its quota still allows in the plan; MaxInt = without a quota
	stuck  int  // position of the first job, which did not fit; valid while nothing is given back. −1 = unknown
}

// aside is a job that was passed over, and its queue.
type aside struct {
	queue.Entry
	queue int
}

var _ Policy = (*Scheduler)(nil)

func newScheduler(cfg Config, p place.Placement) (Policy, error) {
	s := &Scheduler{strict: cfg.admission() != "skip", asks: cfg.Estimating()}
	s.cfg, s.est = cfg, cfg.estimates()
	s.rule, _, _ = named(cfg.Order)
	s.place = p
	s.picky = place.Constrained(s.place)
	switch {
	case cfg.admission() == "commit":
		s.fill = &commit{s: &s.books, fill: cfg.backfill() == "easy"}
	case cfg.backfill() == "easy":
		s.fill = &eitherEasy{easy: &easy{s: &s.books}, wide: &conservative{s: &s.books, heads: true}}
	case cfg.backfill() == "conservative":
		s.fill = &conservative{s: &s.books}
	}
	if s.rule.classes != nil {
		s.ranks = &queue.Classes{Classifier: s.rule.classes(&s.inputs)}
	}
	return s, nil
}

// Name returns order and admission, and how it back-fills: "sjf+skip", "fifo+strict+easy".
func (s *Scheduler) Name() string { return s.cfg.Name() }

// Reseed changes the seed of random orders, noisy estimates and random placements, from the next Reset on.
func (s *Scheduler) Reseed(seed uint64) {
	s.cfg.Seed, s.est.Seed = seed, seed
	place.Reseed(s.place, seed)
}

// Reset implements sim.Scheduler. Jobs that already wait are queued.
func (s *Scheduler) Reset(v *sim.View) {
	n := 1
	if vcs := len(v.Cluster().VCs()); vcs > 0 && v.Cluster().Owner() == 0 {
		n = vcs + 1 // queue 0 stays empty
	}
	s.queues, s.n = grown(s.queues, n), n
	if s.ranks != nil {
		s.ranks.Reset()
	}
	for i := range s.queues {
		s.queues[i].RankBy(s.ranks)
		// Preemptive orders always use one line for each kind of request: what fits is counted in GPUs, in rank order.
		s.queues[i].Reset(&s.jobs, s.strict && !s.rule.preemptive)
		s.queues[i].over, s.queues[i].stuck = false, -1
	}
	s.jobs, s.odd, s.aside = s.jobs[:0], 0, s.aside[:0]
	s.keys = ranking{}
	s.use.Reset()
	s.freed.Reset(v.Cluster())
	s.place.Reset()
	s.running, s.plan, s.next, s.err = s.running[:0], s.plan[:0], 0, nil
	s.pass, s.last = pass{version: s.pass.version, decisions: v.Decisions()}, lastPass{own: -1}
	if s.rule.state != nil {
		s.state = s.rule.state(&s.inputs)
	}
	if s.rule.written != nil {
		s.rule.written.Reset()
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
		s.running = append(s.running, queue.Entry{Pos: v.Pos(j), Job: j})
		if s.state != nil {
			s.state.Submit(v, j)
		}
		s.note(v, j)
		if s.fill != nil {
			s.fill.event(v, j)
		}
	}
}

// note makes room for what the scheduler notes about j, and counts it if it is odd.
func (s *Scheduler) note(v *sim.View, j sim.Job) *queue.Mark {
	s.forgetOdd(j)
	m := grow.At(&s.jobs, j)
	*m = queue.Mark{Odd: !queue.Plain(v.Request(j))}
	if m.Odd {
		s.odd++
	}
	return m
}

func (s *Scheduler) forgetOdd(j sim.Job) {
	if int(j) < len(s.jobs) && s.jobs[j].Odd {
		s.jobs[j].Odd = false
		s.odd--
	}
}

func (s *Scheduler) submit(v *sim.View, j sim.Job) error {
	if s.state != nil {
		s.state.Submit(v, j)
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
func (s *Scheduler) push(v *sim.View, e queue.Entry) {
	m := &s.jobs[e.Job]
	if s.ranks != nil {
		m.Class = s.ranks.Of(v, e.Job)
	}
	if s.fill != nil {
		s.fill.push(v, e)
		return
	}
	m.Queued = true
	s.queues[s.queueOf(v, e.Job)].Push(e, v.Request(e.Job))
}

func (s *Scheduler) pop(l *vcQueue, at int) queue.Entry {
	e := l.Pop(at)
	s.jobs[e.Job].Queued = false
	return e
}

// Decide implements sim.Scheduler.
func (s *Scheduler) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if s.err != nil {
		return s.err
	}
	if s.fill != nil && s.pass.open && s.pass.others(v) {
		s.disturbed(v)
		s.fill.open(v)
	}
	s.use.Mine = s.pass.open && s.pass.moved
	if !s.pass.open {
		s.pass.begins()
		if err := s.observe(v, p); err != nil {
			return err
		}
		if q, ok := s.state.(steady); ok && s.kept.none() && s.same(v) && q.Still(&s.queues[0].Queue, v) {
			s.pass.until = q.Wakes(v)
			s.finish(v, d)
			return nil
		}
		s.begin(v)
	}
	if s.pass.moved && s.rule.everyStart {
		s.rerank(v)
		if s.fill != nil {
			s.fill.open(v)
		}
	} else if s.keys.behind {
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
	if s.rule.written != nil {
		if err := s.rule.written.Err(); err != nil {
			return err
		}
	}
	if s.pass.decides(v, done); done {
		s.last.failed = s.pass.own != len(s.plan)
		s.finish(v, d)
	}
	return nil
}

// same reports whether a preemptive order finds the jobs, and what is free, as its last pass has left them. Other code
// may have decided something at this point.
func (s *Scheduler) same(v *sim.View) bool {
	return s.since == nothing && !s.last.failed && s.counts(v) && len(s.running) == len(v.Running()) &&
		s.last.waiting == len(v.Waiting())
}

// finish ends a pass.
func (s *Scheduler) finish(v *sim.View, d *sim.Decision) {
	s.last.own, s.last.waiting = s.pass.own, len(v.Waiting())
	s.freed.Done(v.Cluster())
	s.pass.ends(d)
}

// counts reports whether counting GPUs decides which jobs of a preemptive order run.
func (s *Scheduler) counts(v *sim.View) bool {
	return len(s.queues) == 1 && (v.Cluster().Pool() || !s.picky && s.odd == 0)
}

// observe processes the events since the last point.
func (s *Scheduler) observe(v *sim.View, p *sim.Point) error {
	c := v.Cluster()
	s.since = s.last.since(p)
	for i := range p.Events {
		e := &p.Events[i]
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
			s.pass.version++
			if s.fill != nil {
				s.fill.forget() // less is free, and will be when running jobs have ended
			}
			continue
		case sim.NodeRecover:
			s.pass.version++
			s.freed.Event(c, e)
			if s.fill != nil {
				s.fill.forget() // more will be free
			}
			continue
		case sim.Finish, sim.Fail:
			s.pass.version++
		}
		s.freed.Event(c, e)
		s.ended = true
		if s.fill != nil {
			s.fill.event(v, e.Job)
		}
		switch e.Kind {
		case sim.Finish, sim.Drop:
			s.forgetOdd(e.Job)
			if l, ok := s.state.(learner); ok && e.Kind == sim.Finish {
				l.Learn(v, e.Job)
			}
		case sim.Preempt, sim.Fail:
			s.requeue(v, e.Job)
		}
	}
	s.freed.Open(c)
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
		s.state.After(v, nil, []queue.Entry{{Pos: v.Pos(j), Job: j}})
	}
	s.push(v, s.ranked(v, j))
}

// knows reports whether j, which waits, has been pushed and not popped since.
func (s *Scheduler) knows(v *sim.View, j sim.Job) bool {
	if s.fill != nil {
		return s.fill.holds(v, j)
	}
	return int(j) < len(s.jobs) && s.jobs[j].Queued
}

// begin opens a pass.
func (s *Scheduler) begin(v *sim.View) {
	if s.rule.dynamic && !s.ranksStand(v) {
		if q, ok := s.state.(steady); !ok || !q.Ranked(s.since == others) {
			s.rerank(v)
		}
	}
	if s.fill != nil {
		if s.pass.others(v) {
			s.disturbed(v)
		}
		s.fill.open(v)
		return
	}
	if s.rule.preemptive {
		s.freed.Any, s.freed.All = true, true // every pass gives everything back
	}
	for i := range s.queues {
		l := &s.queues[i]
		l.over = false
		if s.freed.Any {
			l.stuck = -1
		}
		if !l.Single {
			l.Open(v.Cluster(), &s.freed)
		}
	}
	if s.rule.preemptive {
		s.makePlan(v)
	}
}

// disturbed takes note that other code has decided something at this point: what had no room may have some now.
func (s *Scheduler) disturbed(v *sim.View) {
	s.freed.Any, s.freed.All = true, true
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
	s.pass.moved = false
	foreign := s.pass.others(v)
	cells := 0
	for i := range s.queues {
		l := &s.queues[i]
		l.over = false // another may come first now
		if foreign {
			l.OpenAll()
		}
		cells += l.Slots()
	}
	if max(cells, s.ranks.Made) > 64+2*len(v.Waiting()) { // most are of classes that no job waits with
		s.takeIn(v)
	}
	change := s.ranks.Update(v)
	if s.fill != nil {
		if len(change) > 0 {
			s.fill.rerank()
		}
		return
	}
	for _, c := range change {
		for i := range s.queues {
			s.queues[i].Rerank(c)
		}
	}
}

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
		s.ranks.Reset()
	}
	for i := range s.queues {
		s.queues[i].Reset(&s.jobs, s.queues[i].Single)
		s.queues[i].over = false // another may come first now
	}
	if s.rule.prepare != nil && s.ranks == nil {
		s.rule.prepare(&s.inputs, v)
	}
	s.pass.moved = false
	for _, j := range s.taken {
		s.push(v, s.ranked(v, j))
	}
	s.keys = ranking{false, true, v.Cluster().Version(), len(v.Waiting()), v.Arrived()}
}

// rekey does what takeIn does for a backfiller, in place: from one point to the next, few jobs change places. The keys
// stay as they are while the order of the jobs does not matter.
func (s *Scheduler) rekey(v *sim.View) {
	if s.keys.behind = s.fill.idle(v); s.keys.behind {
		s.pass.moved, s.keys.valid = false, false
		return
	}
	if s.rule.prepare != nil {
		s.rule.prepare(&s.inputs, v)
	}
	s.pass.moved = false
	s.fill.rekey(v)
	s.keys = ranking{false, true, v.Cluster().Version(), len(v.Waiting()), v.Arrived()}
}

// ranksStand reports whether ranking anew would change no key: jobs have arrived since, which got their keys then, and
// nothing else has happened that keys follow from.
func (s *Scheduler) ranksStand(v *sim.View) bool {
	e, ok := s.fill.(*eitherEasy)
	if !s.rule.everyStart || s.always || s.ranks != nil || s.fill != nil && !(ok && e.backfiller == e.easy) ||
		s.use.Outdone {
		return false
	}
	l := &s.keys
	return l.valid && l.version == v.Cluster().Version() && len(v.Waiting())-l.waiting == v.Arrived()-l.arrived
}

// ranked returns j with its key; without one if its class has it.
func (s *Scheduler) ranked(v *sim.View, j sim.Job) queue.Entry {
	e := queue.Entry{Pos: v.Pos(j), Job: j}
	if s.ranks == nil {
		e.Key = s.key(v, j)
	}
	return e
}

// best returns, over the queues that are not over, the queue and the place in it of the first job in rank. Jobs that
// ask for more whole GPUs than are free on c are left out.
func (s *Scheduler) best(v *sim.View, c *cluster.Cluster) (l *vcQueue, at int) {
	if len(s.queues) == 1 {
		if l = &s.queues[0]; l.over {
			return nil, queue.None
		}
		return l, l.Best(v, s.limit(c.Free()))
	}
	at = queue.None
	for i := range s.queues {
		k := &s.queues[i]
		if k.over {
			continue
		}
		w := k.Best(v, s.limit(min(c.VCFree(int32(i)), c.VCRoom(int32(i))/1000)))
		if w != queue.None && (at == queue.None || k.Top(w).Before(l.Top(at))) {
			l, at = k, w
		}
	}
	return l, at
}

// limit returns the greatest number of whole GPUs that a job may ask for to be considered when free GPUs are free.
func (s *Scheduler) limit(free int) int {
	if s.strict {
		return queue.Unlimited
	}
	return free
}

// nextStart starts the first job in line that fits, or returns done.
func (s *Scheduler) nextStart(v *sim.View, d *sim.Decision) (done bool) {
	c := v.Cluster()
	for {
		l, at := s.best(v, c)
		if at == queue.None {
			if len(s.aside) > 0 {
				s.comeBack(v)
			}
			return true
		}
		e := *l.Top(at)
		if s.heldBack(v, e.Job, len(v.Running()) > 0) {
			s.holdBack(v, l, at)
			continue
		}
		if s.strict && l.stuck != e.Pos || !s.strict && !l.Hopeless(c, &s.freed, at) {
			ok := false
			if c.Pool() { // no placement distinguishes its GPUs
				d.GPUs, ok = d.GPUs[:0], c.Fits(v.Request(e.Job))
			} else {
				d.GPUs, ok = s.place.Place(v, e.Job, v.Request(e.Job), c, d.GPUs)
			}
			if ok {
				s.pop(l, at)
				if s.rule.passOver {
					s.passOver(v, l)
				} else if len(s.aside) > 0 { // start if is asked again at the next decision
					s.comeBack(v)
				}
				d.Op, d.Job = sim.StartJob, e.Job
				return false
			}
		}
		if s.strict {
			l.over, l.stuck = true, e.Pos
		} else {
			l.Close(at)
		}
	}
}

// passOver excludes the next job in line from the rest of the pass.
func (s *Scheduler) passOver(v *sim.View, l *vcQueue) {
	if at := l.Best(v, queue.Unlimited); at != queue.None {
		e := s.pop(l, at)
		s.aside = append(s.aside, aside{e, s.queueOf(v, e.Job)})
	}
}

// holdBack excludes the first job of the row at place from the decision.
func (s *Scheduler) holdBack(v *sim.View, l *vcQueue, at int) {
	e := s.pop(l, at)
	s.aside = append(s.aside, aside{e, s.queueOf(v, e.Job)})
}

// comeBack returns the jobs that were passed over to their lines.
func (s *Scheduler) comeBack(v *sim.View) {
	for _, a := range s.aside {
		if v.State(a.Job) == sim.Waiting {
			s.push(v, a.Entry)
		}
	}
	s.aside = s.aside[:0]
}
