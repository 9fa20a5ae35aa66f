package heuristic

import "clustergym/env/sim"

// lcfs serves the job that arrived last first, without preemption. It shows how bad an order can be.
var lcfs = rule{name: "lcfs", key: func(_ *Scheduler, v *sim.View, j sim.Job) float64 {
	return -float64(v.Pos(j))
}}
