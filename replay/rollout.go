package replay

import (
	"errors"
	"fmt"
	"io"
	"time"

	"clustergym/env"
)

// ErrFull is returned by Rollout.Add when the rollout is full and Reset has not been called.
var ErrFull = errors.New("replay: the rollout is full")

// Rollout is a fixed number of consecutive steps of all rows, across ends of episodes, for learners that use every
// step once, in order. Columns are [Steps, Rows]: step t of row i is at t*Rows+i. The columns belong to the rollout;
// readers may keep views until the next Reset. Each observation is stored once: the observation after a step enters
// only through its value, which is passed to Add for truncated rows and to Advantages for the last step. It is not
// safe for concurrent use.
type Rollout struct {
	Steps, Rows int

	Obs      []float32   // [Steps, Rows, ObsLen]
	Mask     []bool      // [Steps, Rows, MaskLen], legal actions when acting
	Action   env.Actions // Steps*Rows actions
	LogProb  []float32   // [Steps, Rows], of the action under the acting policy
	Value    []float32   // [Steps, Rows], of Obs, by the acting policy's critic
	Reward   []float32   // [Steps, Rows], as received
	Discount []float32   // [Steps, Rows], per step; 0 exactly if the episode terminated
	Final    []float32   // [Steps, Rows], value of the final observation if the episode was truncated
	End      []bool      // [Steps, Rows], the step ended its episode, in either way
	Live     []bool      // [Steps, Rows], false = the reset step of a NextStep batch, not a transition

	// Elapsed is the simulated time of each step in seconds, [Steps, Rows]; nil unless Timed was called.
	Elapsed []float32
	// LambdaTau, with Elapsed, is the simulated time over which the lambda of Advantages applies once; 0 = once per step.
	LambdaTau time.Duration

	// RewardClip bounds each reward in Advantages to [-RewardClip, RewardClip] after scaling; 0 = no bound.
	RewardClip float64

	Advantage []float32 // [Steps, Rows], filled by Advantages; 0 where not live
	Return    []float32 // [Steps, Rows], Advantage + Value, the critic's target

	spec  env.Spec
	gamma float64
	t     int
	cut   bool
}

// NewRollout returns an empty rollout of steps steps of rows environments of spec s. gamma is the discount factor per
// s.Tau, or per step if Tau is 0.
func NewRollout(s env.Spec, steps, rows int, gamma float64) (*Rollout, error) {
	if steps < 1 || rows < 1 {
		return nil, fmt.Errorf("replay: a rollout of %d steps and %d rows, want at least 1 of each", steps, rows)
	}
	if !(gamma >= 0 && gamma <= 1) {
		return nil, fmt.Errorf("replay: gamma is %v, want a number in [0, 1]", gamma)
	}
	n := steps * rows
	col := func() []float32 { return make([]float32, n) }
	return &Rollout{
		Steps: steps, Rows: rows,
		Obs: make([]float32, n*s.ObsLen()), Mask: make([]bool, n*s.MaskLen()), Action: *env.NewActions(s, n),
		LogProb: col(), Value: col(), Reward: col(), Discount: col(), Final: col(), Advantage: col(), Return: col(),
		End: make([]bool, n), Live: make([]bool, n),
		spec: s, gamma: gamma,
	}, nil
}

// Timed makes an empty rollout keep Elapsed, which then belongs to what WriteTo saves.
func (r *Rollout) Timed() {
	if r.Elapsed == nil {
		r.Elapsed = make([]float32, r.Steps*r.Rows)
	}
}

// Len returns the number of steps stored.
func (r *Rollout) Len() int { return r.t }

// Full reports whether all steps are stored, or all that there will be after Cut.
func (r *Rollout) Full() bool { return r.cut || r.t == r.Steps }

// Cut ends a rollout of at least one step early: until Reset it is full with the steps stored, which are the first Len
// of every column. WriteTo does not save this: a rollout that was read can be continued.
func (r *Rollout) Cut() { r.cut = r.t > 0 }

// Reset empties the rollout.
func (r *Rollout) Reset() { r.t, r.cut = 0, false }

// Add stores one step of all rows: the batch that was acted on, the actions and the batch that followed; the
// log-probability of each action and the value of each observation, both [Rows] of the policy that acted; and final
// [Rows], the value of the final observation, which is read for truncated rows. A policy without a critic passes nil
// for value and final. Add copies everything and does not allocate. An error changes nothing.
func (r *Rollout) Add(b *env.Batch, a *env.Actions, next *env.Batch, logp, value, final []float32) error {
	if r.Full() {
		return ErrFull
	}
	n := r.Rows
	if err := checkBatches(r.spec, n, b, a, next); err != nil {
		return err
	}
	if len(logp) != n || value != nil && len(value) != n || final != nil && len(final) != n {
		return fmt.Errorf("replay: %d log-probabilities, %d values and %d final values, want %d of each", len(logp),
			len(value), len(final), n)
	}
	o, m, f, c := r.spec.ObsLen(), r.spec.MaskLen(), len(r.spec.Action.Sizes), len(r.spec.Action.Low)
	at := r.t * n
	copy(r.Obs[at*o:(at+n)*o], b.Obs)
	copy(r.Mask[at*m:(at+n)*m], b.Mask)
	copy(r.Action.Disc[at*f:(at+n)*f], a.Disc)
	copy(r.Action.Cont[at*c:(at+n)*c], a.Cont)
	copy(r.LogProb[at:at+n], logp)
	clear(r.Value[at : at+n])
	copy(r.Value[at:at+n], value)
	for i := 0; i < n; i++ {
		k, kind := at+i, next.Kind[i]
		r.Live[k] = kind != env.First
		r.End[k] = kind.Last()
		r.Reward[k] = float32(next.Reward[i])
		if r.Elapsed != nil {
			r.Elapsed[k] = float32(next.Elapsed[i].Seconds())
		}
		r.Discount[k] = float32(discount(r.spec, r.gamma, next, i))
		r.Final[k] = 0
		if kind == env.Truncated && final != nil {
			r.Final[k] = final[i]
		}
	}
	r.t++
	return nil
}

// WriteTo saves the steps stored, without advantages and returns.
func (r *Rollout) WriteTo(w io.Writer) (int64, error) {
	e := newEncoder(w)
	e.header(kindRollout)
	for _, v := range r.shape() {
		e.int(v)
	}
	e.f64(r.gamma)
	e.int(r.t)
	n := r.t * r.Rows
	o, m, f, c := r.spec.ObsLen(), r.spec.MaskLen(), len(r.spec.Action.Sizes), len(r.spec.Action.Low)
	put(e, r.Obs[:n*o])
	put(e, r.Mask[:n*m])
	put(e, r.Action.Disc[:n*f])
	put(e, r.Action.Cont[:n*c])
	for _, col := range r.columns() {
		put(e, col[:n])
	}
	put(e, r.End[:n])
	put(e, r.Live[:n])
	if r.Elapsed != nil {
		put(e, r.Elapsed[:n])
	}
	return e.end()
}

// ReadFrom restores what WriteTo saved, and reads to the end of src. The rollout must have been made with the same
// environment, steps, rows and gamma. Anything else is ErrFormat, and changes nothing.
func (r *Rollout) ReadFrom(src io.Reader) (int64, error) {
	d := newDecoder(src)
	d.header(kindRollout)
	names := [...]string{"number of steps", "number of rows", "observation length", "mask length",
		"number of discrete factors", "number of continuous actions"}
	for i, want := range r.shape() {
		d.same(names[i], float64(d.u64()), float64(want))
	}
	d.same("gamma", d.f64(), r.gamma)
	t := d.int("length", 0, r.Steps)
	if d.err != nil {
		return d.n, d.err
	}
	fresh, err := NewRollout(r.spec, r.Steps, r.Rows, r.gamma)
	if err != nil {
		return d.n, err
	}
	fresh.t = t
	n := t * r.Rows
	o, m, f, c := r.spec.ObsLen(), r.spec.MaskLen(), len(r.spec.Action.Sizes), len(r.spec.Action.Low)
	get(d, fresh.Obs[:n*o])
	d.bools(fresh.Mask[:n*m])
	get(d, fresh.Action.Disc[:n*f])
	for k, v := range fresh.Action.Disc[:n*f] {
		d.check(v >= 0 && int(v) < r.spec.Action.Sizes[k%f], "it holds the action %d", v)
	}
	finite(d, fresh.Action.Cont[:n*c])
	for _, col := range fresh.columns() {
		finite(d, col[:n])
	}
	d.bools(fresh.End[:n])
	d.bools(fresh.Live[:n])
	if r.Elapsed != nil {
		fresh.Timed()
		get(d, fresh.Elapsed[:n])
		for _, v := range fresh.Elapsed[:n] {
			d.check(v >= 0, "a step takes %v s", v)
		}
	}
	for k := 0; k < n; k++ {
		d.check(fresh.Discount[k] >= 0 && fresh.Discount[k] <= 1, "a discount is %v", fresh.Discount[k])
	}
	if err := d.end(); err != nil {
		return d.n, err
	}
	fresh.RewardClip, fresh.LambdaTau = r.RewardClip, r.LambdaTau
	*r = *fresh
	return d.n, nil
}

func (r *Rollout) shape() [6]int {
	s := r.spec
	return [...]int{r.Steps, r.Rows, s.ObsLen(), s.MaskLen(), len(s.Action.Sizes), len(s.Action.Low)}
}

func (r *Rollout) columns() [5][]float32 {
	return [...][]float32{r.LogProb, r.Value, r.Reward, r.Discount, r.Final}
}
