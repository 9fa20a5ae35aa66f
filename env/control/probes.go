package control

import (
	"math"
	"math/rand/v2"

	"clustergym/env"
	"clustergym/internal/snap"
)

// probe is a problem so small that its values are known. Its state is what reset drew and the number of steps since.
// The observation is one number.
type probe struct {
	starts int // reset draws one of 0 … starts-1
	length int // of the longest episode
	obs    func(drawn, t int) float32
	legal  func(drawn, t, a int) bool // nil = every action
	pay    func(drawn, t, a int) (reward float64, done bool)

	drawn, t int
	done     bool
}

func (p *probe) reset(src *rand.Rand) {
	p.drawn, p.t, p.done = src.IntN(p.starts), 0, false
}

func (p *probe) step(a env.Action, _ *rand.Rand) (float64, env.Kind) {
	reward, done := p.pay(p.drawn, p.t, int(a.Disc[0]))
	p.t++
	p.done = done
	if done {
		return reward, env.Terminated
	}
	return reward, env.Mid
}

func (p *probe) observe(obs []float32, mask []bool) {
	obs[0] = p.obs(p.drawn, p.t)
	for a := range mask {
		mask[a] = p.done || p.legal == nil || p.legal(p.drawn, p.t, a)
	}
}

// Env saves the number of steps and the end.
func (p *probe) save(dst []byte) []byte { return snap.Int(dst, p.drawn) }

func (p *probe) load(r *snap.Reader, steps int, kind env.Kind) bool {
	p.drawn, p.t, p.done = r.Int(), steps, kind == env.Terminated
	return p.drawn >= 0 && p.drawn < p.starts && (p.t < p.length || p.t == p.length && kind.Last())
}

// sign returns the observation of a drawn bit.
func sign(drawn int) float32 { return float32(2*(drawn&1) - 1) }

func nothing(_, _ int) float32 { return 0 }

// maskedPays is the reward of each action of ProbeMaskedAction-v1.
var maskedPays = [4]float64{0, 0.25, 0.5, 1}

// define makes the definition of p, which has one number to observe.
func define(id string, actions, maxSteps int, solved float64, p probe) definition {
	return definition{
		spec: env.Spec{
			ID: id,
			Obs: []env.Field{{Name: "signal", Shape: []int{1}, Low: -1, High: 1, Unit: "none",
				Doc: "what the description says"}},
			Action: env.ActionSpec{Sizes: []int{actions}}, MaxSteps: maxSteps, Solved: solved, NoOp: -1,
		},
		make: func() problem { q := p; return &q },
	}
}

// probes lists the probes from the simplest on: the first one that fails names the fault.
func probes() []definition {
	none := math.NaN()
	right := func(is bool) (float64, bool) { // of two actions
		if is {
			return 1, true
		}
		return -1, true
	}
	shown := func(d, _ int) float32 { return sign(d) }
	second := func(_, t int) float32 { return float32(t & 1) } // shows the second of two steps
	return []definition{
		define("ProbeConstant-v1", 1, 0, 1, probe{
			starts: 1, length: 1, obs: nothing,
			pay: func(_, _, _ int) (float64, bool) { return 1, true },
		}),
		define("ProbeObservation-v1", 1, 0, none, probe{
			starts: 2, length: 1, obs: shown,
			pay: func(d, _, _ int) (float64, bool) { return float64(sign(d)), true },
		}),
		define("ProbeDiscount-v1", 1, 0, 1, probe{
			starts: 1, length: 2, obs: second,
			pay: func(_, t, _ int) (float64, bool) { return float64(t), t == 1 },
		}),
		define("ProbeAction-v1", 2, 0, 0.95, probe{
			starts: 1, length: 1, obs: nothing,
			pay: func(_, _, a int) (float64, bool) { return right(a == 1) },
		}),
		define("ProbeContext-v1", 2, 0, 0.95, probe{
			starts: 2, length: 1, obs: shown,
			pay: func(d, _, a int) (float64, bool) { return right(a == d&1) },
		}),
		define("ProbeMaskedAction-v1", len(maskedPays), 0, 0.65, probe{
			starts: 15, length: 1, obs: nothing,
			legal: func(d, _, a int) bool { return (d+1)>>a&1 == 1 },
			pay:   func(_, _, a int) (float64, bool) { return maskedPays[a], true },
		}),
		define("ProbeMaskedContext-v1", 4, 0, 0.95, probe{
			starts: 4, length: 1, obs: shown,
			legal: func(d, _, a int) bool { return a == 1 || a == 2 || a == 3*(d>>1) },
			pay:   func(d, _, a int) (float64, bool) { return right(a == 1+d&1) },
		}),
		define("ProbeMaskedTarget-v1", 2, 0, 0.95, probe{
			starts: 1, length: 2, obs: second,
			legal: func(_, t, a int) bool { return t == 0 || a == 0 },
			pay:   func(_, t, a int) (float64, bool) { return float64((1 - t) * a), t == 1 },
		}),
		define("ProbeTruncation-v1", 1, 10, none, probe{
			starts: 1, length: 10, obs: nothing,
			pay: func(_, _, _ int) (float64, bool) { return 1, false },
		}),
		define("ProbeDeadStep-v1", 2, 0, 0.45, probe{
			starts: 1, length: 2,
			obs: func(_, t int) float32 { return float32(min(t, 1)) },
			pay: func(_, t, a int) (float64, bool) {
				switch {
				case t == 1:
					return 1.5, true
				case a == 1:
					return -1, false
				}
				return 0, true
			},
		}),
	}
}
