package heuristic

import (
	"clustergym/env/heuristic/queue"
	"clustergym/env/sim"
)

// smallest serves the job that asks for the fewest GPUs first, without preemption.
var smallest = rule{name: "smallest", key: func(_ *Scheduler, v *sim.View, j sim.Job) float64 {
	return float64(queue.Milli(v, j))
}}
