package schedulers

import (
	"clustergym/internal/rng"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/sim"
)

// fifo serves jobs in the order in which they were submitted (FCFS).
var fifo = rule{name: "fifo", key: func(_ *inputs, v *sim.View, j sim.Job) float64 { return float64(v.Pos(j)) }}

// lcfs serves the job that arrived last first, without preemption. It shows how bad an order can be.
var lcfs = rule{name: "lcfs", key: func(_ *inputs, v *sim.View, j sim.Job) float64 {
	return -float64(v.Pos(j))
}}

// lpf is longest pending first as in Tiresias' simulator ("lpjf"). Without preemption the job that has waited longest
// is the one that came first, so the order is FIFO's. The pass differs: the list of waiting jobs is shortened while
// it is walked, so the job behind each one that starts is passed over until the next pass. The pass ends at the first
// job that does not fit, under any admission.
var lpf = rule{name: "lpf", passOver: true, key: func(_ *inputs, v *sim.View, j sim.Job) float64 {
	return float64(v.Trace(j).Submit)
}}

// random ranks jobs by a number drawn once for each job from the seed and its position. Any order should beat this
// baseline.
var random = rule{name: "random", key: func(in *inputs, v *sim.View, j sim.Job) float64 {
	return rng.Uniform(rng.At(in.cfg.Seed, rng.Hash("random order"), uint64(v.Pos(j))))
}}

// multifactor is Slurm's multi-factor priority with the two factors and weights of RLTune's baseline (Slurm's
// documentation, priority/multifactor): 1000·wait/12 h + 1000·(1 − n/N), highest first, where the job asks for n of the
// cluster's N GPUs. It has none of Slurm's other factors: no fair share and so no half-life of usage, no QOS,
// partition, TRES or association, and age grows without end. All waits grow at the same rate, so the order between two
// jobs never changes.
var multifactor = rule{name: "multifactor", key: func(_ *inputs, v *sim.View, j sim.Job) float64 {
	return 1000*v.Trace(j).Submit.Hours()/12 + 1000*processors(v, j)/float64(place.OwnGPUs(v.Cluster()))
}}
