package agents

import (
	"math"
	"math/rand/v2"

	"clustergym/env"
)

// Rule names how a policy that weighs its actions chooses one of them. It is the same for every agent, ours and those
// of other programs, so that a comparison compares agents and not the rules by which they are played. A rule applies to
// each factor of an action alone.
type Rule string

// The rules.
const (
	// ByShare decides first whether to act and then how: the action that does nothing (env.Spec.NoOp) must be likelier
	// than all other legal actions together, else the likeliest of these is taken, the first among equals. Without this
	// rule, a choice that is split among many like actions, such as ten short jobs to start, would lose to a wait although
	// starting one of them is far likelier than waiting. Where no action does nothing, ByShare is ByArgMax.
	ByShare Rule = "share"
	// ByArgMax takes the legal action of the largest number, the first among equals.
	ByArgMax Rule = "argmax"
	// BySample draws a legal action from the distribution.
	BySample Rule = "sample"
	// AsGiven takes the action that the policy gives in place of what it weighs.
	AsGiven Rule = "own"
)

// Rules returns the rules that users can choose between, the default first.
func Rules() []Rule { return []Rule{ByShare, ByArgMax, BySample} }

// Certain returns r, or ByShare in place of BySample: the rule where nothing is drawn, as outside of evaluations.
func (r Rule) Certain() Rule {
	if r == BySample {
		return ByShare
	}
	return r
}

// For returns the rule that r amounts to for numbers of a kind: values are no distribution, so they have ByArgMax
// alone. The rule "" is ByShare.
func (r Rule) For(kind ScoreKind) Rule {
	switch {
	case kind == Values:
		return ByArgMax
	case r == "":
		return ByShare
	}
	return r
}

// Chooser is an optional ability of policies that weigh their actions.
type Chooser interface {
	Policy
	// By has the policy choose by rule r from now on, "" = as it does by default. It returns the rule that it follows,
	// which is another one if r does not apply to it.
	By(r Rule) Rule
}

// NoOp returns the action of s that ByShare treats apart, -1 if there is none: the one that does nothing, where an
// action is a single discrete factor.
func NoOp(s env.Spec) int {
	if len(s.Action.Sizes) != 1 || len(s.Action.Low) > 0 || s.NoOp >= s.Action.Sizes[0] {
		return -1
	}
	return s.NoOp
}

// Choose returns the action that rule r chooses by x, numbers of a kind for every action of one factor: an index,
// NoneLegal or NotSane. noop is the action that does nothing, -1 = there is none. BySample draws one number from src;
// the other rules draw nothing, and src may be nil. Probabilities need not sum to 1.
func Choose[T float32 | float64](r Rule, kind ScoreKind, x []T, legal []bool, noop int, src *rand.Rand) int {
	r = r.For(kind)
	u := 0.0
	if r == BySample {
		u = src.Float64() // one for every factor, whatever is legal
	}
	top := Best(x, legal)
	if top < 0 {
		return top
	}
	if kind == Probabilities && !probabilities(x, legal) {
		return NotSane
	}
	switch {
	case r == BySample:
		return draw(kind, x, legal, top, u)
	case r == ByShare && noop >= 0 && noop < len(x) && legal[noop]:
		return share(kind, x, legal, noop)
	}
	return top
}

// Best returns the legal action of the largest number, the first among equals.
func Best[T float32 | float64](x []T, legal []bool) int {
	at := NoneLegal
	for k, v := range x {
		if !legal[k] {
			continue
		}
		if v != v {
			return NotSane
		}
		if at < 0 || v > x[at] {
			at = k
		}
	}
	return at
}

// probabilities returns whether the numbers of legal actions can be probabilities.
func probabilities[T float32 | float64](x []T, legal []bool) bool {
	for k, v := range x {
		if legal[k] && (v < 0 || v-v != 0) {
			return false
		}
	}
	return true
}

// weight returns what an action of number v weighs against one of number base.
func weight[T float32 | float64](kind ScoreKind, v, base T) float64 {
	if kind == Probabilities {
		return float64(v)
	}
	return math.Exp(float64(v) - float64(base))
}

// share is Choose by ByShare, where noop is legal and no number of a legal action is NaN.
func share[T float32 | float64](kind ScoreKind, x []T, legal []bool, noop int) int {
	best, others, own := NoneLegal, 0.0, 1.0
	if kind == Probabilities {
		own = float64(x[noop])
	}
	for k, v := range x {
		if !legal[k] || k == noop {
			continue
		}
		if best < 0 || v > x[best] {
			best = k
		}
		others += weight(kind, v, x[noop])
	}
	if best < 0 || others < own {
		return noop
	}
	return best
}

// draw takes an action by inversion: the first legal one whose cumulative weight, summed in order, exceeds the share u
// of all. top is the legal action of the largest number.
func draw[T float32 | float64](kind ScoreKind, x []T, legal []bool, top int, u float64) int {
	total := 0.0
	for k, v := range x {
		if legal[k] {
			total += weight(kind, v, x[top])
		}
	}
	if !(total > 0) || math.IsInf(total, 0) { // NaN too
		return NotSane
	}
	u *= total
	sum, last := 0.0, NoneLegal
	for k, v := range x {
		if !legal[k] {
			continue
		}
		w := weight(kind, v, x[top])
		if sum += w; w > 0 {
			if last = k; u < sum {
				break
			}
		}
	}
	return last // the last one if rounding pushed u to the total
}
