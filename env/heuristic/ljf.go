package heuristic

import "clustergym/env/sim"

// ljf serves the job with the longest estimated run time first, without preemption (LPT in scheduling theory:
// Graham 1969; "LPF" in RLTune's list of base policies).
var ljf = rule{name: "ljf", estimates: true, key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
	return -float64(s.est.Of(v, j))
}}
