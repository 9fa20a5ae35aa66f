package jobselect

import (
	"math/rand/v2"
	"slices"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/simulator/schedulers/tuned"
)

// order is a rule that starts the visible job of the least score that fits; ties go to the lower slot. It never waits
// while a visible job fits.
type order struct {
	sched.Rule
	score func(s *sched.State, slot int) float64
}

var orders = []order{
	{sched.Rule{Name: "fifo", About: "the oldest visible job that fits"},
		func(s *sched.State, i int) float64 { return float64(s.View.Pos(s.Slots[i])) }},
	{sched.Rule{Name: "sjf", About: "the visible job that fits with the shortest estimated run time", Estimates: true},
		func(s *sched.State, i int) float64 { return float64(s.Known[s.Slots[i]].Rest) }},
	{sched.Rule{Name: "smallest", About: "the visible job that fits with the fewest GPUs"},
		func(s *sched.State, i int) float64 { return s.Known[s.Slots[i]].GPUs }},
	{sched.Rule{Name: "area", About: "the visible job that fits with the least estimated run time × GPUs",
		Estimates: true},
		func(s *sched.State, i int) float64 { return s.Known[s.Slots[i]].Area }},
}

// Rules returns the rules that act in the slots, in the order in which tables show them. Compared with the same order
// over the whole queue (simulator/schedulers) they show what the restriction to the slots costs.
func Rules() []sched.Rule {
	rules := []sched.Rule{sched.RandomRule(),
		{Name: "random-start", About: "any visible job that fits, all equally likely", Random: true}}
	for _, o := range orders {
		rules = append(rules, o.Rule)
	}
	rules = append(rules, holdRule)
	for _, o := range stoppings {
		rules = append(rules, o.Rule)
	}
	return rules
}

// NewRule returns an actor that plays one of Rules in e, an environment whose action i starts slot i and whose last
// action waits. Rules that stop running jobs need one in which they can be stopped.
func NewRule(name string, e *sched.Env) (*sched.Actor, error) {
	if _, err := sched.FindRule(e.Spec().ID, name, Rules()); err != nil {
		return nil, err
	}
	for _, o := range orders {
		if o.Name == name {
			return sched.NewActor(func(mask []bool, _ *rand.Rand) (int32, error) { return o.choose(mask, e.State()), nil }), nil
		}
	}
	for i := range stoppings {
		if stoppings[i].Name == name {
			return newStopper(&stoppings[i], e, tuned.Index{})
		}
	}
	if name == holdRule.Name {
		return NewHold(e, tuned.Hold{})
	}
	if name == "random" {
		return sched.RandomActor(), nil
	}
	return sched.NewActor(func(mask []bool, src *rand.Rand) (int32, error) {
		starts := mask[:len(e.State().Slots)]
		if !slices.Contains(starts, true) { // it is asked because a job can be stopped
			return int32(len(mask) - 1), nil
		}
		return int32(env.Uniform(starts, src)), nil
	}), nil
}

func (o *order) choose(mask []bool, s *sched.State) int32 {
	wait := len(mask) - 1
	best, score := wait, 0.0
	for i := range s.Slots {
		if !mask[i] {
			continue
		}
		if v := o.score(s, i); best == wait || v < score {
			best, score = i, v
		}
	}
	return int32(best)
}
