package envtest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/env"
	"clustergym/internal/rng"
)

// episode returns the k-th episode of the suite's stream.
func (s *suite) episode(k int) env.Episode {
	return env.Episode{Seed: env.EpisodeSeed(s.seed, k), Window: -1}
}

// player chooses legal actions at random. Two players with the same seed that see the same masks choose the
// same actions.
type player struct {
	spec env.Spec
	src  *rand.Rand
	a    env.Action
}

func (s *suite) player(seed uint64) *player {
	return &player{
		spec: s.spec,
		src:  rng.Stream(seed, "envtest/actions"),
		a:    env.Action{Disc: make([]int32, len(s.spec.Action.Sizes)), Cont: make([]float32, len(s.spec.Action.Low))},
	}
}

// choose returns an action; its slices belong to the player and are valid until the next call.
func (p *player) choose(ts *env.TimeStep) env.Action {
	at := 0
	for f, n := range p.spec.Action.Sizes {
		p.a.Disc[f] = int32(env.Uniform(ts.Mask[at:at+n], p.src))
		at += n
	}
	for i := range p.a.Cont {
		lo, hi := float64(p.spec.Action.Low[i]), float64(p.spec.Action.High[i])
		u := p.src.Float64()
		switch {
		case !math.IsInf(lo, 0) && !math.IsInf(hi, 0):
			// Rounding to float32 must not leave the box.
			p.a.Cont[i] = min(max(float32(lo+u*(hi-lo)), p.spec.Action.Low[i]), p.spec.Action.High[i])
		case !math.IsInf(lo, 0):
			p.a.Cont[i] = float32(lo + u)
		case !math.IsInf(hi, 0):
			p.a.Cont[i] = float32(hi - u)
		default:
			p.a.Cont[i] = float32(2*u - 1)
		}
	}
	return p.a
}

// litter fills ts with values that no environment would write, so that elements left unwritten are noticed.
func litter(ts *env.TimeStep) {
	ts.Kind, ts.Reward, ts.Elapsed = 77, -7e77, -77
	for i := range ts.Obs {
		ts.Obs[i] = float32(math.NaN())
	}
	for i := range ts.Mask {
		ts.Mask[i] = i%2 == 0
	}
	for i := range ts.Info {
		ts.Info[i] = -7e77
	}
}

// play resets e to ep and plays at random until the episode ends or the cap is reached, and passes every time step to
// see before it chooses the next action. It litters the time step's buffers before every call.
func (s *suite) play(e env.Env, ep env.Episode, see func(*env.TimeStep) error) error {
	ts, p := env.NewTimeStep(s.spec), s.player(ep.Seed)
	litter(ts)
	if err := e.Reset(context.Background(), ep, ts); err != nil {
		return fmt.Errorf("Reset: %w", err)
	}
	return s.playOn(e, ts, p, see)
}

// playOn is play starting from the current time step.
func (s *suite) playOn(e env.Env, ts *env.TimeStep, p *player, see func(*env.TimeStep) error) error {
	for step := 0; ; step++ {
		if err := see(ts); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if ts.Kind.Last() || step == s.cap {
			return nil
		}
		a := p.choose(ts)
		litter(ts)
		if err := e.Step(context.Background(), a, ts); err != nil {
			return fmt.Errorf("step %d: legal action %v: %w", step+1, a, err)
		}
	}
}

// digest is a time step reduced enough to keep whole episodes. Two digests are equal when all bits of the time steps
// are.
type digest struct {
	kind            env.Kind
	reward          uint64
	elapsed         int64
	obs, mask, info uint64
}

func digestOf(ts *env.TimeStep) digest {
	d := digest{kind: ts.Kind, reward: math.Float64bits(ts.Reward), elapsed: int64(ts.Elapsed)}
	for _, x := range ts.Obs {
		d.obs = rng.Mix(d.obs ^ uint64(math.Float32bits(x)))
	}
	for _, x := range ts.Mask {
		b := uint64(0)
		if x {
			b = 1
		}
		d.mask = rng.Mix(d.mask ^ b)
	}
	for _, x := range ts.Info {
		d.info = rng.Mix(d.info ^ math.Float64bits(x))
	}
	return d
}

// differs names the first column in which two time steps differ; it returns nil if there is none.
func (d digest) differs(other digest) error {
	switch {
	case d.kind != other.kind:
		return fmt.Errorf("kind is %d, was %d", d.kind, other.kind)
	case d.reward != other.reward:
		return fmt.Errorf("reward is %v, was %v", math.Float64frombits(d.reward), math.Float64frombits(other.reward))
	case d.elapsed != other.elapsed:
		return fmt.Errorf("elapsed is %d ns, was %d ns", d.elapsed, other.elapsed)
	case d.obs != other.obs:
		return fmt.Errorf("observation differs")
	case d.mask != other.mask:
		return fmt.Errorf("mask differs")
	case d.info != other.info:
		return fmt.Errorf("info differs")
	}
	return nil
}

// record plays episode ep and returns its time steps as digests.
func (s *suite) record(e env.Env, ep env.Episode) ([]digest, error) {
	var all []digest
	err := s.play(e, ep, func(ts *env.TimeStep) error {
		all = append(all, digestOf(ts))
		return nil
	})
	return all, err
}

// follow returns a see function that compares time steps with want, starting at want[from].
func follow(want []digest, from int) func(*env.TimeStep) error {
	i := from
	return func(ts *env.TimeStep) error {
		if i >= len(want) {
			return fmt.Errorf("goes on after %d steps", len(want)-1)
		}
		i++
		return digestOf(ts).differs(want[i-1])
	}
}

// repeat plays ep on e and compares it with want.
func (s *suite) repeat(e env.Env, ep env.Episode, want []digest) error {
	return s.play(e, ep, follow(want, 0))
}

// advance resets e to ep and plays n steps. It returns the time step, and the player that continues from there.
func (s *suite) advance(e env.Env, ep env.Episode, n int) (*env.TimeStep, *player, error) {
	ts, p := env.NewTimeStep(s.spec), s.player(ep.Seed)
	if err := e.Reset(context.Background(), ep, ts); err != nil {
		return nil, nil, fmt.Errorf("Reset: %w", err)
	}
	for i := range n {
		if ts.Kind.Last() {
			return nil, nil, fmt.Errorf("episode ended after %d steps, and did not the first time", i)
		}
		if err := e.Step(context.Background(), p.choose(ts), ts); err != nil {
			return nil, nil, fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return ts, p, nil
}

// clone returns a copy with its own buffers.
func clone(ts *env.TimeStep) *env.TimeStep {
	c := *ts
	c.Obs, c.Mask, c.Info = slices.Clone(ts.Obs), slices.Clone(ts.Mask), slices.Clone(ts.Info)
	return &c
}
