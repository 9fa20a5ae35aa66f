package schedulers

import (
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/sim"
)

// KeyOf returns the rank that p's order gives to j now, least first.
func KeyOf(p Policy, v *sim.View, j sim.Job) float64 {
	s := Undivided(p).(*Scheduler)
	if s.rule.prepare != nil {
		s.rule.prepare(&s.inputs, v)
	}
	return s.rule.key(&s.inputs, v, j)
}

// PassesOver reports whether the order called name passes over the job behind each one that starts.
func PassesOver(name string) bool {
	r, _, _ := named(name)
	return r.passOver
}

// IsOrder reports whether name is an order, not another kind of policy.
func IsOrder(name string) bool {
	_, own, ok := named(name)
	return ok && !own
}

// Remembers reports whether the order called name has a state.
func Remembers(name string) bool {
	r, _, _ := named(name)
	return r.state != nil
}

// PlanExactly makes p, which preempts, plan exactly even if counting GPUs is enough.
func PlanExactly(p Policy) { everywhere(p, func(s *Scheduler) { s.picky = true }) }

// Refusing returns how the placement of cfg places a job, nil if it refuses none that fits.
func Refusing(cfg Config) func(v *sim.View, j sim.Job, c *cluster.Cluster) ([]cluster.GPU, bool) {
	p, err := newPlacement(cfg)
	if err != nil || !place.Constrained(p) {
		return nil
	}
	return func(v *sim.View, j sim.Job, c *cluster.Cluster) ([]cluster.GPU, bool) {
		return p.Place(v, j, v.Request(j), c, nil)
	}
}

// everywhere calls change with each Scheduler that decides for p: that for a whole cluster, and those of its parts.
func everywhere(p Policy, change func(s *Scheduler)) {
	Watch(p, func(q Policy) Policy {
		change(q.(*Scheduler))
		return q
	})
}

// OnParts returns a policy that plays one scheduler made by make on each part of a cluster whose nodes are divided
// among virtual clusters, and one on any other cluster.
func OnParts(build func() sim.Scheduler) Policy {
	return &divided{Policy: nameless{build()}, make: func(Config) (Policy, error) { return nameless{build()}, nil }}
}

type nameless struct{ sim.Scheduler }

func (nameless) Name() string  { return "" }
func (nameless) Reseed(uint64) {}

// Watch makes p ask wrap(q) instead of each policy q that decides for it.
func Watch(p Policy, wrap func(q Policy) Policy) Policy {
	d, ok := p.(*divided)
	if !ok {
		return wrap(p)
	}
	build := d.make
	d.Policy = wrap(d.Policy)
	d.make = func(cfg Config) (Policy, error) {
		q, err := build(cfg)
		return wrap(q), err
	}
	return d
}

// Undivided returns the policy that decides on a cluster in which no virtual cluster owns nodes.
func Undivided(p Policy) Policy {
	if d, ok := p.(*divided); ok {
		return d.Policy
	}
	return p
}

// RankJobs makes p rank every waiting job anew whenever its order ranks anew, even if ranking classes is enough. It
// reports whether p ranks classes otherwise.
func RankJobs(p Policy) bool {
	classes := false
	everywhere(p, func(s *Scheduler) {
		classes = classes || s.ranks != nil
		s.ranks, s.always = nil, true
	})
	return classes
}

// Restless makes p forget at every point the reservations that its back-filling has made.
func Restless(p Policy) {
	everywhere(p, func(s *Scheduler) { s.fill = restless{s.fill} })
}

type restless struct{ backfiller }

func (b restless) open(v *sim.View) {
	b.forget()
	b.backfiller.open(v)
}
