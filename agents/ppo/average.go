package ppo

import "math"

// average is the reward that the policy earns per second of simulated time, for differential values: with
// Config.Average the return of a step is Σ (r − average·elapsed) over what follows, which is finite in a task without
// an end although nothing is discounted. The critic's values are differential (Das et al. 1999, "Solving semi-Markov
// decision problems using average reward reinforcement learning", Management Science 45(4); Zhang and Ross 2021,
// "On-policy deep reinforcement learning for the average-reward criterion", ICML).
type average struct {
	PerSecond float64 `json:"per_second"`
	Known     bool    `json:"known"` // a rollout has been seen
}

// subtract follows the rewards of a full rollout and subtracts the average from each.
func (a *Agent) subtract() {
	r := a.roll
	reward, seconds := 0.0, 0.0
	for k, live := range r.Live[:r.Len()*a.rows] {
		if live {
			reward += float64(r.Reward[k])
			seconds += float64(r.Elapsed[k])
		}
	}
	if seconds == 0 {
		return
	}
	switch now := reward / seconds; {
	case !a.average.Known:
		a.average.PerSecond, a.average.Known = now, true
	default:
		a.average.PerSecond += a.cfg.Average * (now - a.average.PerSecond)
	}
	for k, live := range r.Live[:r.Len()*a.rows] {
		if live {
			r.Reward[k] -= float32(a.average.PerSecond * float64(r.Elapsed[k]))
		}
	}
}

// sane reports whether an average can be one.
func (v *average) sane() bool { return !math.IsNaN(v.PerSecond) && !math.IsInf(v.PerSecond, 0) }
