package schedulers

import (
	"clustergym/simulator/schedulers/fairshare"
	"clustergym/simulator/sim"
)

// fairShare is Slurm's multi-factor priority of three factors (its documentation, "Multifactor Priority Plugin" and
// "Classic Fairshare Algorithm"), highest first:
//
//	age·min(1, wait/max_age) + size·(GPUs asked for/all GPUs) + fair·2^(−U/S)
//
// where U is the part that an account has of the decayed usage of all and S its part of all shares. Slurm computes usage
// every five minutes (PriorityCalcPeriod) and in whole numbers, and knows accounts without jobs; here usage is exact at
// every point, and accounts count from their first job on. A policy that takes over in the middle of a run knows what the
// jobs that run have used, not what others have.
var fairShare = rule{name: "fairshare", dynamic: true,
	state: func(in *inputs) stateful {
		if u, ok := in.state.(*fairshare.Usage); ok {
			u.Reset()
			return u
		}
		return fairshare.New(in.cfg.Priority)
	},
	prepare: func(in *inputs, v *sim.View) { in.state.(*fairshare.Usage).Prepare(v) },
	key: func(in *inputs, v *sim.View, j sim.Job) float64 {
		return -in.state.(*fairshare.Usage).Of(v, j, v.Cluster())
	}}
