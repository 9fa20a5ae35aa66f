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
		about: "The state, one of 80, is shown, and the action of the same number pays. 60 of the 80 actions are illegal at every " +
			"step, never the one that pays, and which ones changes with every step. An agent that masks both when it samples and " +
			"when it learns solves this within a few thousand steps; one that masks only when it samples, or that uses the mask " +
			"of another step, does not.",
		actions: "The number of a state. A masked one is an error; over the bridge, in Python too, it becomes the lowest legal one by default, and `invalid: error` refuses it.",
		rewards: "1 if the action equals the state, else 0.",
		start:   "A state and its 60 illegal actions, uniformly.",
		end:     "Truncated after 100 steps.",
		answer:  "100 is the best return. Uniform play over the legal actions returns 5 on average. Masked PPO with a discount of 0.4 reaches 90 within 5,000 steps.",
		source:  "The test problem of sb3-contrib's MaskablePPO; on masks: Huang and Ontañón, arXiv 2006.14171.",
	}
}
