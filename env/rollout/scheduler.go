package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/internal/nearest"
	"clustergym/simulator/cluster"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
)

// Names resolves the names of policies over the whole queue of a simulator, among them those that look ahead.
func Names() *policyname.Resolver {
	return &policyname.Resolver{Orders: schedulers.Orders(), Written: schedulers.CheckWritten,
		Ahead: []policyname.Ahead{policyname.Rollout},
		Check: func(n policyname.Name) error {
			c := schedulers.Named(n)
			if err := c.Validate(); err != nil || n.Ahead == policyname.None {
				return err
			}
			return CheckBase(&c)
		}}
}

// CheckBase says in one sentence why rollouts cannot play on with a heuristic; nil if they can.
func CheckBase(c *schedulers.Config) error {
	if !schedulers.Known(c.Order) {
		return fmt.Errorf("%s%s: the base %q is unknown, want %s", policyname.Rollout, c.Order, c.Order,
			nearest.OneOf(c.Order, schedulers.Bases()))
	}
	k := *c
	if stops(c) {
		k.Order = "fifo" // their ranks follow from the state, and passes plays them on
	}
	if k.Backfill == "easy" {
		k.Backfill = "none" // it begins anew at each decision: running jobs end when their age lets expect it
	}
	why := k.Forgets()
	if stops(c) && why == "" {
		if _, err := cluster.NewPlacement(c.Placement); err != nil {
			why = "placement " + c.Placement + " looks at running jobs"
		}
	}
	switch {
	case why != "" && schedulers.Preemptive(c.Order):
		return fmt.Errorf(
			"%s%s: rollouts play on from any state, and %s; want one of %s, with skip, or an order that stops no job, such as "+
				"sjf, with a placement that looks at no job, such as closest-b",
			policyname.Rollout, c.Name(), why, strings.Join(Stopping(), ", "))
	case why != "":
		return fmt.Errorf(
			"%s%s: rollouts play on from any state, and %s; want an order that stops no job, such as fifo, sjf or f1, with "+
				"strict or skip, and without back-filling or with easy",
			policyname.Rollout, c.Name(), why)
	}
	if !c.Estimates.Known() {
		return fmt.Errorf("%s%s: %w", policyname.Rollout, c.Name(), ErrBlind)
	}
	return nil
}

// stops reports whether c is an order that stops running jobs and that rollouts play on with.
func stops(c *schedulers.Config) bool {
	return slices.Contains(Stopping(),
		c.Order) && (c.Admission == "" || c.Admission == "skip") && (c.Backfill == "" || c.Backfill == "none")
}

// line lists the waiting jobs that fit now in the order of a heuristic.
type line struct {
	policy           schedulers.Policy // that starts the first job in its order that fits
	waiting, running []sim.Job
	view             sim.View
	point            sim.Point
	free             sim.Decision
}

// newLine returns a line in the order of base, whatever its admission and back-filling.
func newLine(base schedulers.Config) (*line, error) {
	p, err := schedulers.New(base.Line())
	return &line{policy: p}, err
}

// grow returns dst with one more decision, whose GPU list is one that it had before.
func grow(dst []sim.Decision) []sim.Decision {
	if len(dst) < cap(dst) {
		dst = dst[:len(dst)+1]
	} else {
		dst = append(dst, sim.Decision{})
	}
	d := &dst[len(dst)-1]
	*d = sim.Decision{GPUs: d.GPUs[:0]}
	return dst
}

// add appends to dst the starts of the first jobs of list that fit, until dst has most decisions. Jobs that dst already
// starts are left out.
func (l *line) add(v *sim.View, list []sim.Job, most int, dst []sim.Decision) ([]sim.Decision, error) {
	l.waiting, l.running = append(l.waiting[:0], list...), append(l.running[:0], v.Running()...)
	for i := range dst {
		if dst[i].Op == sim.StartJob {
			l.hide(dst[i].Job)
		}
	}
	l.point.Now, l.point.Events = v.Now(), l.point.Events[:0]
	for len(dst) < most && len(l.waiting) > 0 {
		l.view = v.Within(v.Cluster(), &l.waiting, &l.running)
		l.policy.Reset(&l.view)
		l.free.Op, l.free.GPUs, l.free.Until = sim.Wait, l.free.GPUs[:0], 0
		if err := l.policy.Decide(&l.view, &l.point, &l.free); err != nil {
			return dst, err
		}
		if l.free.Op != sim.StartJob {
			break
		}
		dst = grow(dst)
		d := &dst[len(dst)-1]
		d.Op, d.Job, d.GPUs = sim.StartJob, l.free.Job, append(d.GPUs, l.free.GPUs...)
		l.hide(d.Job)
	}
	return dst, nil
}

// first sets d to what base decides over the jobs of list, which need not fit.
func (l *line) first(v *sim.View, base schedulers.Policy, list []sim.Job, d *sim.Decision) error {
	l.waiting, l.running = append(l.waiting[:0], list...), append(l.running[:0], v.Running()...)
	l.point.Now, l.point.Events = v.Now(), l.point.Events[:0]
	l.view = v.Within(v.Cluster(), &l.waiting, &l.running)
	base.Reset(&l.view)
	d.Op, d.GPUs, d.Until = sim.Wait, d.GPUs[:0], 0
	return base.Decide(&l.view, &l.point, d)
}

// hide removes a job from the list.
func (l *line) hide(j sim.Job) {
	if i := slices.Index(l.waiting, j); i >= 0 {
		l.waiting[i] = l.waiting[len(l.waiting)-1]
		l.waiting = l.waiting[:len(l.waiting)-1]
	}
}

// Scheduler is a heuristic that looks ahead. It is a schedulers.Policy.
type Scheduler struct {
	name           string
	base           schedulers.Policy
	line           *line
	look           *stopping // instead of line and search, for orders that stop gangs
	search         *Search
	past           *Past // that it feeds, nil = none
	most           int   // candidates
	seed           uint64
	ctx            context.Context
	cands          []sim.Decision
	waiting, gangs []sim.Job // scratch
	point          sim.Point
	open           bool // the current point has been seen
	tally          Tally
}

// Tally counts what a policy has decided since it was reset.
type Tally struct {
	Decisions int // at which there was a choice
	Deviated  int // at which the base would have chosen otherwise
	Waited    int // of these, how often it waits where the base starts a job
	Rollouts  int
}

var _ schedulers.Policy = (*Scheduler)(nil)

// Setup is what Scheduler and Actor need beside the settings.
type Setup struct {
	Config
	// Source draws futures; nil = from the run's own past, which a Scheduler collects.
	Source  Source
	Workers int
	Clock   func() time.Duration // for budgets of time
	Hold    tuned.Hold           // weights of the base hold of an Actor; zero = the default ones
}

// New returns the scheduler that improves base.
func New(setup Setup, base schedulers.Config) (*Scheduler, error) {
	if err := base.Validate(); err != nil {
		return nil, err
	}
	if err := CheckBase(&base); err != nil {
		return nil, err
	}
	var err error
	est := base.Estimates
	est.Seed = base.Seed
	s := &Scheduler{name: policyname.Rollout.String() + base.Name(), most: setup.Candidates, seed: base.Seed,
		ctx: context.Background()}
	if setup.Source == nil {
		s.past = NewPast(est)
		setup.Source = s.past
	}
	if stops(&base) {
		if s.look, err = newStopping(setup, base.Order, base.Placement, est); err != nil {
			return nil, err
		}
		for _, b := range append(s.look.bases, s.look.place) {
			b.wakes = true
		}
		s.look.lines[0].wakes = true
		s.Keep(0, 0)
		return s, nil
	}
	if s.search, err = setup.search(base, est); err != nil {
		return nil, err
	}
	if s.base, err = schedulers.New(base); err != nil {
		return nil, err
	}
	s.line, err = newLine(base)
	return s, err
}

// search returns the search that plays on with base.
func (s *Setup) search(base schedulers.Config, est sim.Estimates) (*Search, error) {
	return NewSearch(Options{
		Config: s.Config, Estimates: est, Source: s.Source, Workers: s.Workers, Clock: s.Clock,
		Base: func() (Base, error) { return schedulers.New(base) },
	})
}

// Name returns the name of the policy that looks ahead with the base.
func (s *Scheduler) Name() string { return s.name }

// Reseed changes the seed of the draws, and that of noisy estimates, from the next Reset on.
func (s *Scheduler) Reseed(seed uint64) {
	s.seed = seed
	if s.look != nil {
		s.look.reseed(seed)
		return
	}
	s.base.Reseed(seed)
	s.line.policy.Reseed(seed)
	s.search.Reseed(seed)
}

// Cancel makes decisions end with ctx's error when ctx is cancelled.
func (s *Scheduler) Cancel(ctx context.Context) { s.ctx = ctx }

// Keep implements sched.Keeper: a policy that stops running jobs spares those at positions before first, and those
// whose stint has not lasted min.
func (s *Scheduler) Keep(first int, least time.Duration) {
	if s.look != nil {
		s.look.keep(first, least)
	}
}

// Tally returns what has been decided since the last Reset.
func (s *Scheduler) Tally() Tally { return s.tally }

// Reset implements sim.Scheduler.
func (s *Scheduler) Reset(v *sim.View) {
	s.tally, s.open = Tally{}, false
	if s.past != nil {
		s.past.Reset(s.seed)
	}
}

// Decide implements sim.Scheduler.
func (s *Scheduler) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if !s.open && s.past != nil {
		if err := s.past.Observe(v, p); err != nil {
			return err
		}
	}
	s.open = true
	if s.look != nil {
		return s.stop(v, d)
	}
	s.cands = grow(s.cands[:0])
	s.point.Now, s.point.Events = v.Now(), s.point.Events[:0]
	s.base.Reset(v)
	if err := s.base.Decide(v, &s.point, &s.cands[0]); err != nil {
		return err
	}
	best, err := s.choose(v)
	if err != nil {
		return err
	}
	s.take(d, &s.cands[best])
	return nil
}

// take makes c the decision.
func (s *Scheduler) take(d, c *sim.Decision) {
	d.Op, d.Job, d.N, d.Until, d.GPUs = c.Op, c.Job, c.N, c.Until, append(d.GPUs[:0], c.GPUs...)
	s.open = d.Op != sim.Wait
}

// stop decides where the base stops gangs.
func (s *Scheduler) stop(v *sim.View, d *sim.Decision) error {
	l := s.look
	if len(v.Cluster().VCs()) > 0 {
		return fmt.Errorf(
			"%s: it counts GPUs, and virtual clusters divide them; want an order that stops no job, or a cluster without "+
				"virtual clusters", s.name)
	}
	if c := l.goOn(v); c != nil {
		s.take(d, c)
		return nil
	}
	own := l.own()
	l.place.Reset(v)
	s.point.Now, s.point.Events = v.Now(), s.point.Events[:0]
	if err := l.place.Decide(v, &s.point, own); err != nil {
		return err
	}
	s.waiting, s.gangs = s.waiting[:0], s.gangs[:0]
	for _, j := range v.Waiting() {
		if !v.Decided(j) {
			s.waiting = append(s.waiting, j)
		}
	}
	for _, j := range v.Running() {
		if len(s.waiting) > 0 && !l.lines[0].spares(v, j) {
			s.gangs = append(s.gangs, j)
		}
	}
	c, err := l.choose(s.ctx, v, s.seed, s.waiting, s.gangs, true, &s.tally)
	if err != nil {
		return err
	}
	if c.Op == sim.Wait {
		c.Until = l.place.until
	}
	s.take(d, c)
	return nil
}

// choose lists the candidates after the base's choice and returns the best.
func (s *Scheduler) choose(v *sim.View) (best int, err error) {
	waits := s.cands[0].Op == sim.Wait
	canWait := !waits && len(v.Running()) > 0
	most := s.most
	if canWait {
		most--
	}
	if s.cands, err = s.line.add(v, v.Waiting(), most, s.cands); err != nil {
		return 0, err
	}
	if canWait { // not where nothing runs, so that it does not matter whether jobs will arrive
		s.cands = grow(s.cands)
	}
	return s.search.take(s.ctx, v, s.seed, s.cands, &s.tally)
}

// take returns the best of several candidates and counts the decision.
func (s *Search) take(ctx context.Context, v *sim.View, seed uint64, cands []sim.Decision, t *Tally) (int, error) {
	if len(cands) < 2 {
		return 0, nil
	}
	c, err := s.Choose(ctx, v, seed, cands)
	if err != nil {
		return 0, err
	}
	t.Decisions++
	for _, n := range c.Played {
		t.Rollouts += n
	}
	if c.Best > 0 {
		t.Deviated++
		if cands[c.Best].Op == sim.Wait {
			t.Waited++
		}
	}
	return c.Best, nil
}
