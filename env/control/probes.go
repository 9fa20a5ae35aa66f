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

// define makes a definition around p; the caller fills in the texts.
func define(id string, actions, maxSteps int, solved float64, p probe) definition {
	return definition{
		spec: env.Spec{
			ID:     id,
			Obs:    []env.Field{{Name: "signal", Shape: []int{1}, Low: -1, High: 1, Unit: "none", Doc: "what the description says"}},
			Action: env.ActionSpec{Sizes: []int{actions}}, MaxSteps: maxSteps, Solved: solved, NoOp: -1,
		},
		make:   func() problem { q := p; return &q },
		source: "Probe environments as a debugging ladder are folklore of deep reinforcement learning (A. Jones, \"Debugging RL, without the agonizing pain\", 2021).",
	}
}

// probes lists the probes from the simplest on: the first one that fails names the fault.
func probes() []definition {
	none := math.NaN()

	constant := define("ProbeConstant-v1", 1, 0, 1, probe{
		starts: 1, length: 1, obs: nothing,
		pay: func(_, _, _ int) (float64, bool) { return 1, true },
	})
	constant.about = "One action, one step, one reward. If the value of the only observation is not learnt, the value loss or the optimiser is wrong."
	constant.actions = "No choice."
	constant.rewards = "1."
	constant.start = "Signal 0."
	constant.end = "Terminated after the first step."
	constant.answer = "V(0) = 1."

	observation := define("ProbeObservation-v1", 1, 0, none, probe{
		starts: 2, length: 1, obs: func(d, _ int) float32 { return sign(d) },
		pay: func(d, _, _ int) (float64, bool) { return float64(sign(d)), true },
	})
	observation.about = "One action and one step, paying what is shown. If ProbeConstant-v1 passes and this does not, values do not depend on observations: gradients do not reach the network's input, or rows are mixed up."
	observation.actions = "No choice."
	observation.rewards = "The signal."
	observation.start = "Signal -1 or 1, equally likely."
	observation.end = "Terminated after the first step."
	observation.answer = "V(1) = 1, V(-1) = -1."

	discount := define("ProbeDiscount-v1", 1, 0, 1, probe{
		starts: 1, length: 2, obs: func(_, t int) float32 { return float32(t & 1) },
		pay: func(_, t, _ int) (float64, bool) { return float64(t), t == 1 },
	})
	discount.about = "Two steps, the second of which pays. The first value is the discount; the last observation looks like the first, so that a value bootstrapped past the end shows."
	discount.actions = "No choice."
	discount.rewards = "0, then 1."
	discount.start = "Signal 0; then 1; at the end 0 again."
	discount.end = "Terminated after the second step."
	discount.answer = "V(1) = 1, V(0) = gamma."

	action := define("ProbeAction-v1", 2, 0, 0.95, probe{
		starts: 1, length: 1, obs: nothing,
		pay: func(_, _, a int) (float64, bool) { return float64(2*a - 1), true },
	})
	action.about = "One step, two actions, one of which is right. If values are learnt and this fails, the policy loss, its sign or the advantage is wrong."
	action.actions = "0 is wrong, 1 is right."
	action.rewards = "1 for action 1, -1 for action 0."
	action.start = "Signal 0."
	action.end = "Terminated after the first step."
	action.answer = "Always action 1; Q = (-1, 1)."

	context := define("ProbeContext-v1", 2, 0, 0.95, probe{
		starts: 2, length: 1, obs: func(d, _ int) float32 { return sign(d) },
		pay: func(d, _, a int) (float64, bool) {
			if a == d&1 {
				return 1, true
			}
			return -1, true
		},
	})
	context.about = "One step, and the signal says which of two actions is right. If ProbeAction-v1 passes and this does not, actions and observations of different rows or times are put together."
	context.actions = "1 is right where the signal is 1, 0 where it is -1."
	context.rewards = "1 if right, else -1."
	context.start = "Signal -1 or 1, equally likely."
	context.end = "Terminated after the first step."
	context.answer = "The right action everywhere; V = 1 under it."

	maskedAction := define("ProbeMaskedAction-v1", len(maskedPays), 0, 0.65, probe{
		starts: 15, length: 1, obs: nothing,
		legal: func(d, _, a int) bool { return (d+1)>>a&1 == 1 },
		pay:   func(_, _, a int) (float64, bool) { return maskedPays[a], true },
	})
	maskedAction.about = "Four actions of known worth, of which each episode allows a drawn set that only the mask shows. The best that is allowed must be taken; an agent that ignores masks ends in an error."
	maskedAction.actions = "The higher the better, as far as the mask allows."
	maskedAction.rewards = "0, 0.25, 0.5, 1 for actions 0, 1, 2, 3."
	maskedAction.start = "Signal 0; one of the 15 sets of legal actions, uniformly."
	maskedAction.end = "Terminated after the first step."
	maskedAction.answer = "Q = (0, 0.25, 0.5, 1); the best mean return is 10.5/15 = 0.7, uniform legal play returns 0.4375."

	maskedContext := define("ProbeMaskedContext-v1", 4, 0, 0.95, probe{
		starts: 4, length: 1, obs: func(d, _ int) float32 { return sign(d) },
		legal: func(d, _, a int) bool { return a == 1 || a == 2 || a == 3*(d>>1) },
		pay: func(d, _, a int) (float64, bool) {
			if a == 1+d&1 {
				return 1, true
			}
			return -1, true
		},
	})
	maskedContext.about = "ProbeContext-v1 with a mask that changes independently of the signal. An agent that takes the mask of another row or time ends in an error, sooner or later."
	maskedContext.actions = "2 is right where the signal is 1, 1 where it is -1. Of the wrong actions 0 and 3 exactly one is legal."
	maskedContext.rewards = "1 if right, else -1."
	maskedContext.start = "Signal -1 or 1 and legal 0 or 3, all four equally likely."
	maskedContext.end = "Terminated after the first step."
	maskedContext.answer = "The right action everywhere; V = 1 under it."

	maskedTarget := define("ProbeMaskedTarget-v1", 2, 0, 0.95, probe{
		starts: 1, length: 2, obs: func(_, t int) float32 { return float32(t & 1) },
		legal: func(_, t, a int) bool { return t == 0 || a == 0 },
		pay: func(_, t, a int) (float64, bool) {
			if t == 0 {
				return float64(a), false
			}
			return 0, true
		},
	})
	maskedTarget.about = "Two steps. In the second the only good-looking action is illegal and its value is never trained: a target that maximises over all actions instead of the legal ones bootstraps from it."
	maskedTarget.actions = "In the first step 1 pays and 0 does not; in the second only 0 is legal."
	maskedTarget.rewards = "The action's number in the first step, 0 in the second."
	maskedTarget.start = "Signal 0; then 1; at the end 0 again."
	maskedTarget.end = "Terminated after the second step."
	maskedTarget.answer = "Q(0) = (0, 1), Q(1, action 0) = 0, whatever gamma is."

	truncation := define("ProbeTruncation-v1", 1, 10, none, probe{
		starts: 1, length: 10, obs: nothing,
		pay: func(_, _, _ int) (float64, bool) { return 1, false },
	})
	truncation.about = "A constant reward that never ends, cut off from outside after ten steps. An agent that treats the cut as an end learns a smaller value."
	truncation.actions = "No choice."
	truncation.rewards = "1 per step."
	truncation.start = "Signal 0, always."
	truncation.end = "Truncated after 10 steps; never terminated."
	truncation.answer = "V(0) = 1/(1-gamma), as without the cut."

	dead := define("ProbeDeadStep-v1", 2, 0, 0.45, probe{
		starts: 1, length: 2,
		obs: func(_, t int) float32 { return float32(min(t, 1)) },
		pay: func(_, t, a int) (float64, bool) {
			switch {
			case t == 1:
				return 1.5, true
			case a == 1:
				return -1, false
			default:
				return 0, true
			}
		},
	})
	dead.about = "A trap for learners under NextStep autoreset, where the step after an episode's end is no transition: its action is ignored and it pays nothing. Here the " +
		"last observation looks like the middle one, so that a learner that stores those dead steps undervalues the middle and stops at once."
	dead.actions = "At first, 0 stops and 1 goes on; in the middle both do the same."
	dead.rewards = "0 for stopping; -1 for going on, then 1.5."
	dead.start = "Signal 0; after the first step 1."
	dead.end = "Terminated by stopping, or after the second step."
	dead.answer = "V(1) = 1.5; Q(0, go on) = -1 + 1.5·gamma and Q(0, stop) = 0: with gamma above 2/3, go on, for a return of 0.5. " +
		"A learner of dead steps sees at most V(1) = 0.75 and stops, for a return of 0."

	return []definition{constant, observation, discount, action, context, maskedAction, maskedContext, maskedTarget, truncation, dead}
}
