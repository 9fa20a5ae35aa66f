package heuristic

import (
	"clustergym/env/sim"
)

// srtf serves the job with the shortest remaining run time first and preempts for it (Schrage 1968; Tiresias'
// simulator calls it "shortest").
var srtf = rule{name: "srtf", preemptive: true, estimates: true, key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
	return s.remaining(v, j)
}}

// remaining returns the scheduler's estimate of what is left of j, in nanoseconds.
func (s *Scheduler) remaining(v *sim.View, j sim.Job) float64 { return remaining(s.est, v, j) }

// remaining returns what is left of j by est, in nanoseconds.
func remaining(est sim.Estimates, v *sim.View, j sim.Job) float64 {
	if est.Mode == sim.EstimateExact {
		return v.Left(j)
	}
	return float64(est.Left(v, j))
}
