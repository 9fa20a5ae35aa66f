package delayoffer

import (
	"math"
	"math/rand/v2"

	"clustergym/env/sched"
	"clustergym/simulator/sim"
)

// shorter is the share of a gang's remaining time below which another job's remaining time makes the gang give way. Of
// 1/2, 1/5, 1/10, 1/20 and 1/40 it was the best on the validation windows of experiments/dally.
const shorter = 1. / 5

// Rules returns the rules that answer offers, in the order in which tables show them. The environment's own timers also
// decide when a rule is asked. So rule timers plays the policy dally exactly if auto is off, and rule auto if it is on.
func Rules() []sched.Rule {
	return []sched.Rule{
		sched.RandomRule(),
		{Name: "accept", About: "every offer is accepted: GPUs at once, wherever they lie"},
		{Name: "decline", About: "every offer is declined that may be: a job waits for GPUs of one machine"},
		{Name: "timers",
			About: "an offer is declined until the timers rack_wait and nw_wait have run out, as by the policy dally without " +
				"its tuner"},
		{Name: "auto",
			About: "an offer is declined until the timers have run out that the policy dally tunes by past delays"},
		{Name: "nearest",
			About: "an offer is declined until the nearest tier is offered that could hold the gang if nothing else ran"},
		{Name: "give-way",
			About: "as nearest, but a gang larger than a machine also declines while a job waits that is known to have less " +
				"than a fifth " +
				"of its own remaining time left; without estimates, that has run for less than a fifth of its time"},
	}
}

// NewRule returns an actor that plays one of Rules in e.
func NewRule(name string, e *Env) (*sched.Actor, error) {
	if _, err := sched.FindRule(e.Spec().ID, name, Rules()); err != nil {
		return nil, err
	}
	never := func(*sim.View, int) (rack, network float64) { return math.Inf(1), math.Inf(1) }
	o := e.offers
	by := func(timers func(*sim.View, int) (rack, network float64)) bool {
		return o.rule.TimelyBy(o.view, o.offer, timers)
	}
	var accepts func() bool
	switch name {
	case "random":
		return sched.RandomActor(), nil
	case "accept":
		accepts = func() bool { return true }
	case "decline":
		accepts = func() bool { return false }
	case "timers":
		accepts = func() bool { return by(o.rule.Fixed) }
	case "auto":
		accepts = func() bool { return by(o.rule.Tuned) }
	case "nearest":
		accepts = func() bool { return by(never) }
	case "give-way":
		accepts = func() bool { return !o.givesWay() && by(never) }
	}
	return sched.NewActor(func(mask []bool, _ *rand.Rand) (int32, error) {
		if !mask[Decline] || accepts() {
			return Accept, nil
		}
		return Decline, nil
	}), nil
}

// givesWay reports whether the offer is for a gang larger than a machine while another waiting job has much less left.
func (e *offers) givesWay() bool {
	o := e.offer
	if e.view.Request(o.Job).GPUs <= e.view.Cluster().MaxNode() {
		return false
	}
	own, _ := e.remaining(o.Job)
	for _, j := range e.view.Waiting() {
		if left, _ := e.remaining(j); j != o.Job && left < shorter*own {
			return true
		}
	}
	return false
}
