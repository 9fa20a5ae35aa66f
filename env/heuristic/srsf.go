package heuristic

import (
	"clustergym/env/heuristic/queue"
	"clustergym/env/sim"
)

// srsf serves the job with the least remaining service, remaining run time × GPUs, first and preempts for it
// (Gu et al., NSDI 2019; Tiresias' simulator calls it "shortest-gpu").
var srsf = rule{name: "srsf", preemptive: true, estimates: true, key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
	return s.remaining(v, j) * float64(queue.Milli(v, j))
}}
