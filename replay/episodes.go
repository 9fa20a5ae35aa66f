package replay

import (
	"fmt"

	"clustergym/env"
)

// Episodes holds whole episodes one after another, each of any length, for learners that adapt to a task from a few of
// them (package maml). Columns have one row per transition, in order. They belong to Episodes and keep their memory
// when it is emptied. It is not safe for concurrent use.
type Episodes struct {
	Obs      []float32   // [N, ObsLen]
	Mask     []bool      // [N, MaskLen], legal actions when acting
	Info     []float64   // [N, len(Spec.Info)], the info when acting
	Action   env.Actions // N actions, as passed to the environment
	Number   []float32   // [N, len(Spec.Action.Low)], continuous actions as drawn, before they were clipped to the box
	Reward   []float64   // [N]
	Discount []float64   // [N], per step; 0 exactly if the episode terminated
	Start    []int       // first transition of every episode, then N: always one element more than there are episodes

	// The learner fills the fields below.
	Advantage []float32 // [N]
	LogProb   []float32 // [N], of the action under the policy that acted
	Head      []float32 // [N, width of the policy's head], output of the policy that acted
	LogStd    []float32 // [len(Spec.Action.Low)], logarithms of its deviations

	// Packed is what a learner has computed from the transitions alone, not from the fields that it fills, and keeps with
	// them. It is valid while PackedLen is Len: Reset, Act, After and Append make it 0, and a learner that fills Packed
	// sets it.
	Packed    any
	PackedLen int

	spec  env.Spec
	gamma float64
}

// NewEpisodes returns empty Episodes for an environment of spec s. gamma is the discount factor per s.Tau, or per step
// if Tau is 0.
func NewEpisodes(s env.Spec, gamma float64) (*Episodes, error) {
	if !(gamma >= 0 && gamma <= 1) {
		return nil, fmt.Errorf("replay: gamma is %v, want a number in [0, 1]", gamma)
	}
	return &Episodes{spec: s, gamma: gamma, Start: []int{0}}, nil
}

// Like returns empty Episodes of the same environment and discount.
func (e *Episodes) Like() *Episodes { return &Episodes{spec: e.spec, gamma: e.gamma, Start: []int{0}} }

// Spec returns the environment's spec.
func (e *Episodes) Spec() env.Spec { return e.spec }

// Len returns the number of transitions N.
func (e *Episodes) Len() int { return e.Action.N }

// Episodes returns the number of episodes that have ended.
func (e *Episodes) Episodes() int { return len(e.Start) - 1 }

// Reset removes everything.
func (e *Episodes) Reset() {
	e.Obs, e.Mask, e.Info, e.Number = e.Obs[:0], e.Mask[:0], e.Info[:0], e.Number[:0]
	e.Action.N, e.Action.Disc, e.Action.Cont = 0, e.Action.Disc[:0], e.Action.Cont[:0]
	e.Reward, e.Discount, e.Start = e.Reward[:0], e.Discount[:0], append(e.Start[:0], 0)
	e.Advantage, e.LogProb, e.Head = e.Advantage[:0], e.LogProb[:0], e.Head[:0]
	e.PackedLen = 0
}

// Act adds the observed time step and the action: the first half of a transition, which After completes. number is nil
// if there are no continuous actions.
func (e *Episodes) Act(seen *env.TimeStep, a env.Action, number []float32) {
	e.Obs = append(e.Obs, seen.Obs...)
	e.Mask = append(e.Mask, seen.Mask...)
	e.Info = append(e.Info, seen.Info...)
	e.Action.Disc = append(e.Action.Disc, a.Disc...)
	e.Action.Cont = append(e.Action.Cont, a.Cont...)
	e.Number = append(e.Number, number...)
	e.Action.N++
	e.PackedLen = 0
}

// After adds the time step that followed. A step that ends the episode ends it here too.
func (e *Episodes) After(next *env.TimeStep) {
	d := e.spec.Discount(e.gamma, next.Elapsed)
	if next.Kind == env.Terminated {
		d = 0
	}
	e.Reward, e.Discount = append(e.Reward, next.Reward), append(e.Discount, d)
	e.PackedLen = 0
	if next.Kind.Last() {
		e.Start = append(e.Start, e.Action.N)
	}
}

// Append adds all episodes of o, which must be of the same environment, with LogProb and Head if o has them.
func (e *Episodes) Append(o *Episodes) {
	from := e.Action.N
	e.Obs, e.Mask, e.Info = append(e.Obs, o.Obs...), append(e.Mask, o.Mask...), append(e.Info, o.Info...)
	e.Action.Disc, e.Action.Cont = append(e.Action.Disc, o.Action.Disc...), append(e.Action.Cont, o.Action.Cont...)
	e.Number, e.Reward, e.Discount = append(e.Number,
		o.Number...), append(e.Reward, o.Reward...), append(e.Discount, o.Discount...)
	e.LogProb, e.Head = append(e.LogProb, o.LogProb...), append(e.Head, o.Head...)
	e.Action.N += o.Action.N
	e.PackedLen = 0
	for _, s := range o.Start[1:] {
		e.Start = append(e.Start, from+s)
	}
}

// Part returns the episodes from to to-1 alone, without the fields that the learner fills. It shares e's memory and
// must not be added to.
func (e *Episodes) Part(from, to int) *Episodes {
	a, b := e.Start[from], e.Start[to]
	o, m, i, f, c := e.spec.ObsLen(), e.spec.MaskLen(), len(e.spec.Info), len(e.spec.Action.Sizes), len(e.spec.Action.Low)
	p := &Episodes{
		Obs: e.Obs[a*o : b*o], Mask: e.Mask[a*m : b*m], Info: e.Info[a*i : b*i], Number: e.Number[min(a*c,
			len(e.Number)):min(b*c, len(e.Number))],
		Reward: e.Reward[a:b], Discount: e.Discount[a:b], spec: e.spec, gamma: e.gamma,
	}
	p.Action = env.Actions{N: b - a, Disc: e.Action.Disc[a*f : b*f], Cont: e.Action.Cont[a*c : b*c]}
	for _, s := range e.Start[from : to+1] {
		p.Start = append(p.Start, s-a)
	}
	return p
}

// Every returns every n-th transition, the first among them, as one episode that has not ended: what losses of single
// transitions need, with the fields that the learner fills. It shares no memory with e.
func (e *Episodes) Every(n int) *Episodes {
	p := e.Like()
	all := e.Len()
	p.Obs, p.Mask = strided(e.Obs, all, n), strided(e.Mask, all, n)
	p.Action = env.Actions{N: (all + n - 1) / n, Disc: strided(e.Action.Disc, all, n),
		Cont: strided(e.Action.Cont, all, n)}
	p.Number, p.Info = strided(e.Number, all, n), strided(e.Info, all, n)
	p.Reward, p.Discount = strided(e.Reward, all, n), strided(e.Discount, all, n)
	p.Advantage, p.LogProb = strided(e.Advantage, all, n), strided(e.LogProb, all, n)
	p.Head, p.LogStd = strided(e.Head, all, n), append(p.LogStd, e.LogStd...)
	return p
}

// strided returns every n-th of s's rows.
func strided[T any](s []T, rows, n int) []T {
	if len(s) == 0 {
		return nil
	}
	w := len(s) / rows
	out := make([]T, 0, (rows+n-1)/n*w)
	for i := 0; i < rows; i += n {
		out = append(out, s[i*w:(i+1)*w]...)
	}
	return out
}

// MeanReturn returns the mean undiscounted return of the episodes, 0 if there are none.
func (e *Episodes) MeanReturn() float64 {
	if e.Episodes() == 0 {
		return 0
	}
	sum := 0.0
	for _, r := range e.Reward[:e.Start[e.Episodes()]] {
		sum += r
	}
	return sum / float64(e.Episodes())
}
