package replay

import (
	"errors"
	"fmt"
	"math"
)

// ErrUnfinished is returned by Rollout.Advantages before the rollout is full.
var ErrUnfinished = errors.New("replay: the rollout is not full yet")

// Advantages fills Advantage and Return by generalised advantage estimation (Schulman et al. 2016, "High-Dimensional
// Continuous Control Using Generalized Advantage Estimation", equations 11 and 16), with the step's own discount d_t in
// place of gamma, and lambda applied once per decision or, with LambdaTau, once per that much simulated time, as the
// power Elapsed/LambdaTau:
//
//	δ_t = scale·r_t + d_t·V(o_t+1) − V(o_t)
//	A_t = δ_t + d_t·lambda·A_t+1, where the sum stops at the end of an episode
//
// V(o_t+1) is the next step's Value. If the episode was truncated it is Final; if it terminated, d_t is 0. last is
// [Rows], the value of the observation after the last step; it is not read for rows whose episode ended there. scale
// multiplies the rewards (ReturnScale), 1 leaves them unchanged; RewardClip then bounds them. Sums are in float64.
func (r *Rollout) Advantages(last []float32, lambda, scale float32) error {
	if !r.Full() {
		return ErrUnfinished
	}
	if len(last) != r.Rows {
		return fmt.Errorf("replay: %d last values, want %d", len(last), r.Rows)
	}
	for i := 0; i < r.Rows; i++ {
		sum := 0.0 // A_t+1
		value := float64(last[i])
		for t := r.t - 1; t >= 0; t-- {
			k := t*r.Rows + i
			if !r.Live[k] {
				// An episode ended before this step. Nothing is carried across. If the end came from outside,
				// unannounced, Value is that of the old episode's last observation.
				r.Advantage[k], r.Return[k] = 0, r.Value[k]
				sum, value = 0, float64(r.Value[k])
				continue
			}
			if r.End[k] {
				sum, value = 0, float64(r.Final[k])
			}
			v, d := float64(r.Value[k]), float64(r.Discount[k])
			reward := float64(scale) * float64(r.Reward[k])
			if c := r.RewardClip; c > 0 {
				reward = min(max(reward, -c), c)
			}
			decay := float64(lambda)
			if r.LambdaTau > 0 && r.Elapsed != nil {
				decay = math.Pow(decay, float64(r.Elapsed[k])/r.LambdaTau.Seconds())
			}
			sum = reward + d*value - v + d*decay*sum
			r.Advantage[k], r.Return[k] = float32(sum), float32(sum+v)
			value = v
		}
	}
	return nil
}

// ExplainedVariance returns 1 − Var(Return − Value)/Var(Return) over live steps: 1 for a perfect critic, 0 for one
// that predicts a constant, negative for a worse one. If returns do not vary, it is 1 for a perfect critic and 0 for
// any other.
func (r *Rollout) ExplainedVariance() float64 {
	var all, rest moments
	for k, live := range r.Live[:r.t*r.Rows] {
		if live {
			all.add(float64(r.Return[k]))
			rest.add(float64(r.Return[k]) - float64(r.Value[k]))
		}
	}
	if all.variance() == 0 {
		if rest.variance() == 0 && rest.Mean == 0 {
			return 1
		}
		return 0
	}
	return 1 - rest.variance()/all.variance()
}
