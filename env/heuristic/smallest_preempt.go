package heuristic

import (
	"clustergym/env/heuristic/queue"
	"clustergym/env/sim"
)

// smallestPreempt serves the job with the fewest GPUs first and preempts for it (Tiresias' simulator calls it
// "sjf").
var smallestPreempt = rule{name: "smallest-preempt", preemptive: true, key: func(_ *Scheduler, v *sim.View, j sim.Job) float64 {
	return float64(queue.Milli(v, j))
}}
