package heuristic

import (
	"clustergym/env/heuristic/queue"
	"clustergym/env/sim"
)

// area serves the job with the least estimated run time × GPUs first, without preemption: what SRSF (Gu et al.,
// NSDI 2019) does to jobs that have not started.
var area = rule{name: "area", estimates: true, key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
	return s.area(v, j)
}}

// area returns the estimated run time of j times the thousandths of a GPU that it asks for. Jobs without work have none,
// whatever their GPUs; their estimate of 1 ns (sim.Estimates.Of) would order them by these.
func (s *Scheduler) area(v *sim.View, j sim.Job) float64 {
	e := s.est.Of(v, j)
	if e == 1 {
		return 0
	}
	return float64(e) * float64(queue.Milli(v, j))
}
