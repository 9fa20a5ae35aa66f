package control

import (
	"math/rand/v2"

	"clustergym/env"
	"clustergym/internal/snap"
)

const (
	invalidDim   = 80  // actions, and states
	invalidCount = 60  // illegal actions at every step
	invalidSteps = 100 // steps of an episode
)

// invalid is sb3-contrib's InvalidActionEnvDiscrete(dim=80, n_invalid_actions=60): choose the action that equals the
// observed state among 20 legal actions. An illegal action is an error here, as the contract requires; there it is a
// lost step.
type invalid struct {
	state int
	mask  [invalidDim]bool
}

func (p *invalid) reset(src *rand.Rand) { p.draw(src) }

func (p *invalid) step(a env.Action, src *rand.Rand) (float64, env.Kind) {
	reward := 0.0
	if int(a.Disc[0]) == p.state {
		reward = 1
	}
	p.draw(src)
	return reward, env.Mid
}

// draw draws a state and, without replacement, the illegal actions among the others.
func (p *invalid) draw(src *rand.Rand) {
	p.state = src.IntN(invalidDim)
	var others [invalidDim - 1]uint8
	for i := range others {
		others[i] = uint8((p.state + 1 + i) % invalidDim)
	}
	for i := range p.mask {
		p.mask[i] = true
	}
	for i := range invalidCount {
		j := i + src.IntN(len(others)-i)
		others[i], others[j] = others[j], others[i]
		p.mask[others[i]] = false
	}
}

func (p *invalid) observe(obs []float32, mask []bool) {
	clear(obs)
	obs[p.state] = 1
	copy(mask, p.mask[:])
}

func (p *invalid) save(dst []byte) []byte {
	dst = snap.Int(dst, p.state)
	for _, ok := range p.mask {
		dst = snap.Bool(dst, ok)
	}
	return dst
}

func (p *invalid) load(r *snap.Reader, _ int, kind env.Kind) bool {
	p.state = r.Int()
	illegal := 0
	for i := range p.mask {
		p.mask[i] = r.Bool()
		if !p.mask[i] {
			illegal++
		}
	}
	return kind != env.Terminated && p.state >= 0 && p.state < invalidDim && p.mask[p.state] && illegal == invalidCount
}

func invalidAction() definition {
	return definition{
		spec: env.Spec{
			ID: "InvalidAction-v1",
			Obs: []env.Field{{
				Name: "state", Shape: []int{invalidDim}, Low: 0, High: 1, Unit: "one-hot", Doc: "the action that pays",
			}},
			Action:   env.ActionSpec{Sizes: []int{invalidDim}},
			MaxSteps: invalidSteps, Solved: 90, NoOp: -1,
		},
		make: func() problem { return new(invalid) },
	}
}
