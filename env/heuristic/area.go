package heuristic

import "clustergym/env/sim"

// area serves the job with the least estimated run time × GPUs first, without preemption: what SRSF (Gu et al.,
// NSDI 2019) does to jobs that have not started.
var area = rule{name: "area", estimates: true, key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
	r := v.Request(j)
	return float64(s.est.Of(v.Trace(j))) * float64(r.GPUs*r.Milli)
}}
