package sched

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"clustergym/env"
	"clustergym/internal/nearest"
)

// Rule describes a simple policy that agents are compared with. It acts through the environment's action space and
// knows what an agent can see, unless About says otherwise.
type Rule struct {
	Name, About string
	Random      bool // it draws, so one play of an episode says little
	Estimates   bool // it ranks by run times, so it needs estimates
	Stops       bool // it stops running jobs, so it needs an environment in which actions can
	Knows       bool // it plans by what no agent sees
}

// Described returns r, of types that embed it.
func (r Rule) Described() Rule { return r }

// Described is a Rule, or a type that embeds one.
type Described interface{ Described() Rule }

// RandomRule returns the rule that every environment has.
func RandomRule() Rule {
	return Rule{Name: "random", About: "any legal action, all equally likely", Random: true}
}

// RuleNames returns the names of rules.
func RuleNames[R Described](rules []R) []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.Described().Name
	}
	return names
}

// FindRule returns the rule of a name among those of the environment id.
func FindRule[R Described](id, name string, rules []R) (r R, err error) {
	if i := slices.IndexFunc(rules, func(r R) bool { return r.Described().Name == name }); i >= 0 {
		return rules[i], nil
	}
	return r, fmt.Errorf("%s: rule %q is unknown, want %s", id, name, nearest.OneOf(name, RuleNames(rules)))
}

// Actor plays a rule in one environment whose action is one discrete number. It is an agents.Policy for batches of one
// row: that environment's current time step. Not safe for concurrent use.
type Actor struct {
	choose func(mask []bool, src *rand.Rand) (int32, error)
}

// NewActor returns an actor that takes the actions that choose returns. choose receives the mask, in which at least one
// action is legal, and the row's random source, which may be nil for rules that do not draw.
func NewActor(choose func(mask []bool, src *rand.Rand) (int32, error)) *Actor { return &Actor{choose} }

// RandomActor returns an actor that plays RandomRule.
func RandomActor() *Actor {
	return NewActor(func(mask []bool, src *rand.Rand) (int32, error) { return int32(env.Uniform(mask, src)), nil })
}

// Action returns the action that the rule takes at the environment's current time step, whose mask is given. src is
// what rules that draw draw from.
func (a *Actor) Action(mask []bool, src *rand.Rand) (int32, error) { return a.choose(mask, src) }

// Act implements agents.Policy.
func (a *Actor) Act(_ context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) (err error) {
	if b.N != 1 {
		return fmt.Errorf("sched: a batch of %d rows for a rule of one environment", b.N)
	}
	var own *rand.Rand
	if len(src) > 0 {
		own = src[0]
	}
	dst.Disc[0], err = a.choose(b.Mask, own)
	return err
}
