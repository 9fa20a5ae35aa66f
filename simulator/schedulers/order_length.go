package schedulers

import (
	"math"

	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// sjf serves the job with the shortest estimated run time first, without preemption.
var sjf = rule{name: "sjf", estimates: true, key: func(in *inputs, v *sim.View, j sim.Job) float64 {
	return float64(in.est.Of(v, j))
}}

// ljf serves the job with the longest estimated run time first, without preemption (LPT in scheduling theory:
// Graham 1969; "LPF" in RLTune's list of base policies).
var ljf = rule{name: "ljf", estimates: true, key: func(in *inputs, v *sim.View, j sim.Job) float64 {
	return -float64(in.est.Of(v, j))
}}

// srtf serves the job with the shortest remaining run time first and preempts for it (Schrage 1968; Tiresias'
// simulator calls it "shortest").
var srtf = rule{name: "srtf", preemptive: true, estimates: true, key: func(in *inputs, v *sim.View, j sim.Job) float64 {
	return in.remaining(v, j)
}}

// gittins serves the job with the greatest Gittins index for each GPU first and preempts for it: the best chance to
// finish for the GPU-time that is spent, given for how long the job has run and the distribution of its forecast
// (predict.Forecast.Gittins). An estimate that is one number gives the index 1/(time left), so the order of srsf. Ranks
// are computed anew at every point.
var gittins = rule{name: "gittins", preemptive: true, estimates: true,
	key: func(in *inputs, v *sim.View, j sim.Job) float64 {
		gpus := float64(queue.Milli(v, j)) / 1000
		if !in.est.Causal() {
			return in.remaining(v, j) * gpus
		}
		x := v.Forecast(j).Gittins(v.Ran(j))
		if x <= 0 {
			return math.Inf(1)
		}
		return gpus / x
	}}

// remaining returns the scheduler's estimate of what is left of j, in nanoseconds.
func (in *inputs) remaining(v *sim.View, j sim.Job) float64 { return queue.Remaining(in.est, v, j) }
