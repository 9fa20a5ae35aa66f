package heuristic

import (
	"clustergym/env/heuristic/queue"
	"clustergym/env/sim"
)

// largest serves the job with the most GPUs first, without preemption.
var largest = rule{name: "largest", key: func(_ *Scheduler, v *sim.View, j sim.Job) float64 {
	return -float64(queue.Milli(v, j))
}}

// largestArea serves the job with the most estimated run time × GPUs first, without preemption (LAF).
var largestArea = rule{name: "largest-area", estimates: true, key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
	return -s.area(v, j)
}}
