package heuristic

import "clustergym/env/sim"

// largest serves the job with the most GPUs first, without preemption.
var largest = rule{name: "largest", key: func(_ *Scheduler, v *sim.View, j sim.Job) float64 {
	return -float64(milli(v, j))
}}

// largestArea serves the job with the most estimated run time × GPUs first, without preemption (LAF).
var largestArea = rule{name: "largest-area", estimates: true, key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
	return -s.area(v, j)
}}

// milli returns the thousandths of a GPU that j asks for.
func milli(v *sim.View, j sim.Job) int {
	r := v.Request(j)
	return r.GPUs * r.Milli
}
