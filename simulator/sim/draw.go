package sim

import (
	"fmt"
	"math"
	"time"

	"clustergym/internal/rng"
)

// drawnTail is the level above which Draw counts run times as the quantile at that level: the tail of a forecast is a
// guess, and single draws from it would outweigh all others.
const drawnTail = 0.95

// Draw returns a sample of the remaining work of j, in nanoseconds at rate 1, as Future.Left has it: what the estimates
// say of a job that has run as long as j. It is 0, for the run's own, where estimates are exact. x are 64 random bits.
// Causal estimates draw from j's forecast. A requested time bounds the run time, which is taken to lie evenly between
// the time run and the request (doubled until it exceeds the time run). Noisy estimates draw the noise, all run times
// taken to be equally likely before. Estimates none know nothing to draw from, and the caller must refuse them.
//
// Run times include what communication and slow GPUs cost, so the time left is multiplied by the current rate of a gang
// that runs.
func (e Estimates) Draw(v *View, j Job, x uint64) (left float64) {
	if e.Mode == EstimateExact {
		return 0
	}
	ran, u := v.Ran(j), min(rng.Uniform(x), drawnTail)
	var t time.Duration
	switch e.Mode {
	case EstimateHistory, EstimateGBDT:
		t = v.Forecast(j).Draw(u, ran)
	case EstimateTrace:
		t = ran + max(1, time.Duration(u*float64(Outlived(e.OfJob(v.Trace(j)), ran)-ran)))
	case EstimateNoisy:
		t = e.denoised(e.OfJob(v.Trace(j)), ran, u)
	default:
		panic(fmt.Sprintf("sim: nothing can be drawn from estimates %v", e))
	}
	left = float64(t - ran)
	if rate := v.Rate(j); rate > 0 {
		left *= rate
	}
	return max(1, left)
}

// denoised returns the quantile at level u of the run times that noise may have turned into estimate, of those above
// ran.
func (e Estimates) denoised(estimate, ran time.Duration, u float64) time.Duration {
	t := float64(estimate)
	if e.Sigma > 0 {
		low := 0.0 // the share of run times up to ran
		if ran > 0 {
			low = (1 + math.Erf(math.Log(float64(ran)/float64(estimate))/e.Sigma/math.Sqrt2)) / 2
		}
		if p := low + u*(1-low); p > 0 && p < 1-1e-12 {
			t *= math.Exp(e.Sigma * math.Sqrt2 * math.Erfinv(2*p-1))
		}
	}
	if t >= math.MaxInt64/4 {
		t = math.MaxInt64 / 4
	}
	if d := time.Duration(t); d > ran {
		return d
	}
	return Outlived(estimate, ran)
}
