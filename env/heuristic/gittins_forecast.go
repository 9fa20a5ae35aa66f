package heuristic

import (
	"math"

	"clustergym/env/heuristic/queue"
	"clustergym/env/sim"
)

// gittins serves the job with the greatest Gittins index for each GPU first and preempts for it: the best chance to finish
// for the GPU-time that is spent, given for how long the job has run and the distribution of its forecast
// (predict.Forecast.Gittins). An estimate that is one number gives the index 1/(time left), so the order of srsf. Ranks
// are computed anew at every point.
var gittins = rule{name: "gittins", preemptive: true, estimates: true, key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
	gpus := float64(queue.Milli(v, j)) / 1000
	if !s.est.Causal() {
		return s.remaining(v, j) * gpus
	}
	x := v.Forecast(j).Gittins(v.Ran(j))
	if x <= 0 {
		return math.Inf(1)
	}
	return gpus / x
}}
