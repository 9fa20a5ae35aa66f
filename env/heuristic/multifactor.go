package heuristic

import (
	"clustergym/env/heuristic/place"
	"clustergym/env/sim"
)

// multifactor is Slurm's multi-factor priority with the two factors and weights of RLTune's baseline (Slurm's
// documentation, priority/multifactor): 1000·wait/12 h + 1000·(1 − n/N), highest first, where the job asks for n of
// the cluster's N GPUs. It has none of Slurm's other factors: no fair share and so no half-life of usage, no QOS, partition, TRES
// or association, and age grows without end. All waits grow at the same rate, so the order between two jobs never changes.
var multifactor = rule{name: "multifactor", key: func(_ *Scheduler, v *sim.View, j sim.Job) float64 {
	return 1000*v.Trace(j).Submit.Hours()/12 + 1000*processors(v, j)/float64(place.OwnGPUs(v.Cluster()))
}}
