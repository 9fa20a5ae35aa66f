package heuristic

import "clustergym/env/sim"

// KeyOf returns the rank that p's order gives to j now, least first.
func KeyOf(p Policy, v *sim.View, j sim.Job) float64 {
	s := p.(*Scheduler)
	if s.rule.prepare != nil {
		s.rule.prepare(s, v)
	}
	return s.rule.key(s, v, j)
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
func PlanExactly(p Policy) { p.(*Scheduler).picky = true }

// RankJobs makes p rank every waiting job anew whenever its order ranks anew, even if ranking classes is enough. It
// reports whether p ranks classes otherwise.
func RankJobs(p Policy) bool {
	s := p.(*Scheduler)
	classes := s.ranks != nil
	s.ranks, s.always = nil, true
	return classes
}
