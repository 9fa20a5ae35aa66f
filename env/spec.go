package env

import (
	"fmt"
	"math"
	"time"
)

// Spec describes one environment. A change that affects returns gets a new version number in ID.
type Spec struct {
	ID       string  // as "JobSelect-v1"
	Obs      []Field // sorted by name, as Gymnasium sorts Dict keys
	Action   ActionSpec
	Info     []Field
	MaxSteps int     // an episode is truncated after this many steps; 0 = never
	Solved   float64 // mean return at which the environment counts as solved; NaN = undefined
	NoOp     int     // the action that does nothing, legal unless masked; -1 = none
	// Tau is the simulated time over which the discount factor gamma applies once: a transition of length Elapsed is
	// discounted by gamma^(Elapsed/Tau). 0 = once per step, as usual.
	Tau time.Duration
}

// Field is one named part of the observation, of Info or of a task.
type Field struct {
	Name      string
	Shape     []int   // empty = a scalar
	Low, High float32 // bounds of every element
	Unit      string  // "fraction", "hours", "one-hot", …
	Doc       string  // one line for people
	// Group is how many columns of an image [rows, columns] belong together, such as those of one slot or of one machine.
	// It divides the number of columns; 0 = none do. A convolution that names no kernel takes one group at a time.
	Group int
	// Filled says, of a table [rows, columns] whose rows may be empty, such as slots of a queue: 1 + the column that is
	// above 0 in rows that hold something and 0 in empty rows. 0 = there is no such column; a row of zeros is then empty.
	Filled int
	// Critic marks a field of the observation that policies must not see: it is for critics in training. Such fields are
	// behind all others.
	Critic bool
	// Metric says, of an info, that it is a figure of the whole episode: it is complete with the last step, and clients
	// get it with that step. Before, it is NaN, or the figure of the episode so far.
	Metric bool
}

// Len returns the number of elements.
func (f Field) Len() int {
	n := 1
	for _, d := range f.Shape {
		n *= d
	}
	return n
}

// ActionSpec describes actions: one size is Gymnasium's Discrete, several are MultiDiscrete; Low and High are the
// bounds of a Box. An action may have both a discrete and a Box part.
type ActionSpec struct {
	Sizes     []int
	Low, High []float32
}

// ObsLen returns the number of elements of an observation.
func (s Spec) ObsLen() int {
	n := 0
	for _, f := range s.Obs {
		n += f.Len()
	}
	return n
}

// MaskLen returns the number of elements of a mask: the sum of Action.Sizes.
func (s Spec) MaskLen() int {
	n := 0
	for _, k := range s.Action.Sizes {
		n += k
	}
	return n
}

// Discount returns the factor by which the value after a transition of length elapsed is discounted.
func (s Spec) Discount(gamma float64, elapsed time.Duration) float64 {
	if s.Tau == 0 || gamma == 1 {
		return gamma
	}
	return math.Pow(gamma, float64(elapsed)/float64(s.Tau))
}

// Check returns how ts breaks the contract of s, or nil if it does not. It checks lengths, the bounds of every field,
// that every factor has a legal action, and that the reward is finite.
func (s Spec) Check(ts *TimeStep) error {
	if len(ts.Obs) != s.ObsLen() || len(ts.Mask) != s.MaskLen() || len(ts.Info) != len(s.Info) {
		return fmt.Errorf("%s: time step has %d observations, %d mask bits and %d infos, want %d, %d and %d",
			s.ID, len(ts.Obs), len(ts.Mask), len(ts.Info), s.ObsLen(), s.MaskLen(), len(s.Info))
	}
	if math.IsNaN(ts.Reward) || math.IsInf(ts.Reward, 0) {
		return fmt.Errorf("%s: reward is %v", s.ID, ts.Reward)
	}
	if ts.Elapsed < 0 {
		return fmt.Errorf("%s: elapsed is %v", s.ID, ts.Elapsed)
	}
	if ts.Kind > Truncated {
		return fmt.Errorf("%s: kind is %d", s.ID, ts.Kind)
	}
	if ts.Kind == First && (ts.Reward != 0 || ts.Elapsed != 0) {
		return fmt.Errorf("%s: first step has reward %v and elapsed %v, want 0", s.ID, ts.Reward, ts.Elapsed)
	}
	at := 0
	for _, f := range s.Obs {
		for i := 0; i < f.Len(); i++ {
			// The negation also catches NaN.
			if v := ts.Obs[at]; !(v >= f.Low && v <= f.High) {
				return fmt.Errorf("%s: observation %s[%d] is %v, outside [%v, %v]", s.ID, f.Name, i, v, f.Low, f.High)
			}
			at++
		}
	}
	at = 0
	for i, n := range s.Action.Sizes {
		legal := false
		for _, ok := range ts.Mask[at : at+n] {
			legal = legal || ok
		}
		if !legal && !ts.Kind.Last() {
			return fmt.Errorf("%s: no action of factor %d is legal", s.ID, i)
		}
		at += n
	}
	return nil
}
