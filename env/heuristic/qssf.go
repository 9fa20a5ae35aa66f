package heuristic

import (
	"clustergym/env/heuristic/queue"
	"clustergym/env/sim"
)

// qssf is quasi-shortest-service-first, the order of Helios (Hu et al., "Characterization and prediction of
// deep-learning workloads in large-scale GPU datacenters", SC 2021): the job with the least expected GPU time first,
// without preemption. The expectation is the forecast's mean; with any other estimate qssf is area.
var qssf = rule{name: "qssf", estimates: true, key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
	if s.est.Causal() {
		return float64(v.Forecast(j).Mean()) * float64(queue.Milli(v, j))
	}
	return s.area(v, j)
}}
