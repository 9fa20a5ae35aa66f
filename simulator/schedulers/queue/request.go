package queue

import (
	"math"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// Plain requests are for whole GPUs and nothing else.
func Plain(r *cluster.Request) bool {
	return r.Milli == 1000 && r.Types == 0 && r.CPUMilli == 0 && r.MemBytes == 0 && r.Each == 0 &&
		!r.Apart
}

// Remaining returns what is left of j by est, in nanoseconds.
func Remaining(est sim.Estimates, v *sim.View, j sim.Job) float64 {
	if est.Mode == sim.EstimateExact {
		return v.Left(j)
	}
	return float64(est.Left(v, j))
}

// Lasts returns how long est expects j, which waits, to run once it starts: at least 1 ns. Requested times
// are wall-clock times, so a job that its placement slows down outlives them.
func Lasts(est *sim.Estimates, v *sim.View, j sim.Job) int64 {
	d := est.Of(v, j)
	if v.FirstStart(j) >= 0 {
		if est.Mode == sim.EstimateExact {
			return int64(min(max(1, math.Ceil(v.Left(j))), MaxLasts))
		}
		d = est.Left(v, j)
	}
	return min(max(1, int64(d)), MaxLasts)
}

// MaxLasts bounds estimated run times so that the current time plus an estimate does not overflow.
const MaxLasts = math.MaxInt64 / 4

// Never is the time of an event that does not happen.
const Never = math.MaxInt64

// Milli returns the thousandths of a GPU that j asks for.
func Milli(v *sim.View, j sim.Job) int {
	r := v.Request(j)
	return r.GPUs * r.Milli
}
