package jobselect

import (
	"math/rand/v2"
	"slices"

	"clustergym/env/sched"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
)

// holdRule is the heuristic hold through the slots: it may leave GPUs free, and so wait while a visible job fits.
var holdRule = sched.Rule{Name: "hold", About: "short jobs first; those that would block the cluster are held back",
	Estimates: true}

// holder plays a policy over the visible jobs, such as hold.
type holder struct {
	e                *sched.Env
	policy           schedulers.Policy
	waiting, running []sim.Job
	part             sim.View
	point            sim.Point
	decision         sim.Decision
}

// NewHold returns an actor that plays the rule hold in e with the given weights; zero = those of e's version.
func NewHold(e *sched.Env, weights tuned.Hold) (*sched.Actor, error) {
	if e.Config().ID != "" && weights.IsZero() {
		weights = tuned.SteadyHold(e.Config().Estimates)
	}
	c := schedulers.Passing(holdRule.Name)
	c.Hold = weights
	return newHolder(e, c)
}

// NewWritten returns an actor that starts the visible job of the least key that fits, by an order that is written out
// (schedulers.Config) and stops no job. It waits where start if holds all back.
func NewWritten(order string, e *sched.Env) (*sched.Actor, error) {
	return newHolder(e, schedulers.Passing(order))
}

// newHolder returns an actor that plays the policy c in e, with its estimates and placement.
func newHolder(e *sched.Env, c schedulers.Config) (*sched.Actor, error) {
	c.Estimates, c.Placement = e.Config().Estimates, e.Parts().Placement
	p, err := schedulers.New(c)
	if err != nil {
		return nil, err
	}
	h := &holder{e: e, policy: p}
	return sched.NewActor(h.choose), nil
}

// choose decides over the jobs whose slots are legal and those that do not fit.
func (h *holder) choose(mask []bool, _ *rand.Rand) (int32, error) {
	s, wait := h.e.State(), len(mask)-1
	v := s.View
	h.waiting, h.running = append(h.waiting[:0], s.Slots...), append(h.running[:0], v.Running()...)
	h.part = v.Within(v.Cluster(), &h.waiting, &h.running)
	h.policy.Reseed(s.Seed)
	h.policy.Reset(&h.part)
	h.point.Now, h.point.Events = v.Now(), h.point.Events[:0]
	d := &h.decision
	d.Op, d.GPUs, d.Until = sim.Wait, d.GPUs[:0], 0
	if err := h.policy.Decide(&h.part, &h.point, d); err != nil {
		return 0, err
	}
	if d.Op == sim.StartJob {
		if i := slices.Index(s.Slots, d.Job); i >= 0 && mask[i] {
			return int32(i), nil
		}
	}
	if !mask[wait] {
		return int32(slices.Index(mask, true)), nil
	}
	return int32(wait), nil
}
