package env

import (
	"context"
	"math/rand/v2"
)

// Play plays episode ep of e to its end. Before each step choose fills a, whose slices have the lengths that e's Spec
// requires; after the step Play calls every function of saw with the action and the time step that followed. ts holds
// the current time step, and the last one when Play returns. Play returns the sum of the rewards and the number of
// steps.
func Play(ctx context.Context, e Env, ep Episode, ts *TimeStep, choose func(ts *TimeStep, a Action) error,
	saw ...func(a Action, ts *TimeStep),
) (ret float64, steps int, err error) {
	if err := e.Reset(ctx, ep, ts); err != nil {
		return 0, 0, err
	}
	a := NewActions(e.Spec(), 1).Row(0)
	for !ts.Kind.Last() {
		if err := choose(ts, a); err != nil {
			return ret, steps, err
		}
		if err := e.Step(ctx, a, ts); err != nil {
			return ret, steps, err
		}
		ret += ts.Reward
		steps++
		for _, f := range saw {
			f(a, ts)
		}
	}
	return ret, steps, nil
}

// Uniform draws one of the true places of mask, which has at least one. All are equally likely.
func Uniform(mask []bool, src *rand.Rand) int {
	legal := 0
	for _, ok := range mask {
		if ok {
			legal++
		}
	}
	k := src.IntN(max(1, legal))
	for i, ok := range mask {
		if !ok {
			continue
		}
		if k == 0 {
			return i
		}
		k--
	}
	return 0
}
