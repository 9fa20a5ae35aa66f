package policymix

import (
	"math/rand/v2"
	"slices"

	"clustergym/env/sched"
	"clustergym/simulator/schedulers"
)

// Rules returns the rules that choose policies, in the order in which tables show them: random play, and each of
// Policies at every choice, which is that policy over the whole queue with admission skip.
func Rules() []sched.Rule {
	rules := []sched.Rule{sched.RandomRule()}
	for _, name := range Policies() {
		rules = append(rules,
			sched.Rule{Name: name, About: "policy " + name + " at every choice", Estimates: schedulers.Estimating(name)})
	}
	return rules
}

// NewRule returns an actor that plays one of Rules in e, an environment of New.
func NewRule(name string, e *sched.Env) (*sched.Actor, error) {
	if _, err := sched.FindRule(e.Spec().ID, name, Rules()); err != nil {
		return nil, err
	}
	if name == "random" {
		return sched.RandomActor(), nil
	}
	k := int32(slices.Index(Policies(), name))
	return sched.NewActor(func([]bool, *rand.Rand) (int32, error) { return k, nil }), nil
}
