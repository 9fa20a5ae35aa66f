package schedulers

import (
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// smallest serves the job that asks for the fewest GPUs first, without preemption.
var smallest = rule{name: "smallest", key: func(_ *inputs, v *sim.View, j sim.Job) float64 {
	return float64(queue.Milli(v, j))
}}

// smallestPreempt serves the job with the fewest GPUs first and preempts for it (Tiresias' simulator calls it
// "sjf").
var smallestPreempt = rule{name: "smallest-preempt", preemptive: true,
	key: func(_ *inputs, v *sim.View, j sim.Job) float64 {
		return float64(queue.Milli(v, j))
	}}

// largest serves the job with the most GPUs first, without preemption.
var largest = rule{name: "largest", key: func(_ *inputs, v *sim.View, j sim.Job) float64 {
	return -float64(queue.Milli(v, j))
}}

// area serves the job with the least estimated run time × GPUs first, without preemption: what SRSF (Gu et al.,
// NSDI 2019) does to jobs that have not started.
var area = rule{name: "area", estimates: true, key: func(in *inputs, v *sim.View, j sim.Job) float64 {
	return in.area(v, j)
}}

// largestArea serves the job with the most estimated run time × GPUs first, without preemption (LAF).
var largestArea = rule{name: "largest-area", estimates: true, key: func(in *inputs, v *sim.View, j sim.Job) float64 {
	return -in.area(v, j)
}}

// srsf serves the job with the least remaining service, remaining run time × GPUs, first and preempts for it
// (Gu et al., NSDI 2019; Tiresias' simulator calls it "shortest-gpu").
var srsf = rule{name: "srsf", preemptive: true, estimates: true, key: func(in *inputs, v *sim.View, j sim.Job) float64 {
	return in.remaining(v, j) * float64(queue.Milli(v, j))
}}

// qssf is quasi-shortest-service-first, the order of Helios (Hu et al., "Characterization and prediction of
// deep-learning workloads in large-scale GPU datacenters", SC 2021): the job with the least expected GPU time first,
// without preemption. The expectation is the forecast's mean; with any other estimate qssf is area.
var qssf = rule{name: "qssf", estimates: true, key: func(in *inputs, v *sim.View, j sim.Job) float64 {
	if in.est.Causal() {
		return float64(v.Forecast(j).Mean()) * float64(queue.Milli(v, j))
	}
	return in.area(v, j)
}}

// area returns the estimated run time of j times the thousandths of a GPU that it asks for. Jobs without work have
// none, whatever their GPUs; their estimate of 1 ns (sim.Estimates.Of) would order them by these.
func (in *inputs) area(v *sim.View, j sim.Job) float64 {
	e := in.est.Of(v, j)
	if e == 1 {
		return 0
	}
	return float64(e) * float64(queue.Milli(v, j))
}
