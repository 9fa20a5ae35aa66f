package heuristic

import "clustergym/env/sim"

// sjf serves the job with the shortest estimated run time first, without preemption.
var sjf = rule{name: "sjf", estimates: true, key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
	return float64(s.est.Of(v, j))
}}
