package heuristic

import (
	"clustergym/env/heuristic/queue"
	"clustergym/env/sim"
)

// srtf serves the job with the shortest remaining run time first and preempts for it (Schrage 1968; Tiresias'
// simulator calls it "shortest").
var srtf = rule{name: "srtf", preemptive: true, estimates: true, key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
	return s.remaining(v, j)
}}

// remaining returns the scheduler's estimate of what is left of j, in nanoseconds.
func (s *Scheduler) remaining(v *sim.View, j sim.Job) float64 { return queue.Remaining(s.est, v, j) }
