package heuristic

import "clustergym/env/sim"

// lpf is longest pending first as in Tiresias' simulator ("lpjf"). Without preemption the job that has waited longest
// is the one that came first, so the order is FIFO's. The pass differs: the list of waiting jobs is shortened while
// it is walked, so the job behind each one that starts is passed over until the next pass. The pass ends at the first
// job that does not fit, under any admission.
var lpf = rule{name: "lpf", passOver: true, key: func(_ *Scheduler, v *sim.View, j sim.Job) float64 {
	return float64(v.Trace(j).Submit)
}}
