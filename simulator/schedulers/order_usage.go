package schedulers

import (
	"math"

	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// drf is dominant resource fairness (Ghodsi et al., NSDI 2011, algorithm 1). A user's dominant share is the greatest
// of the shares of GPUs, cores and memory that the user's running jobs hold. Next is the earliest job of the user
// with the least dominant share. Every start changes a share, so users are ranked anew after each. Between users with
// equal shares the earlier job goes first. All jobs without a user count as one user's.
//
// The algorithm stops when the next user's job does not fit: admission strict. With skip it goes on to the next.
var drf = rule{name: "drf", dynamic: true, everyStart: true,
	classes: func(in *inputs) queue.Classifier { return queue.NewByUser(&in.use) },
	prepare: func(in *inputs, v *sim.View) { in.use.CountUsers(v) },
	key:     func(in *inputs, v *sim.View, j sim.Job) float64 { return in.use.Dominant(in.use.UserOf(v, j)) }}

// packer serves the job first that is best aligned with what is free: the greatest dot product of demand and free
// capacity over GPUs, cores and memory, each as a share of what the cluster has ("Packer" in the evaluation of
// DeepRM: Mao et al., HotNets 2016). Every start changes what is free, so all demands are ranked anew after each. The
// source chooses among the jobs that fit, which is admission skip.
var packer = rule{name: "packer", dynamic: true, everyStart: true,
	classes: func(in *inputs) queue.Classifier { return queue.NewByDemand(&in.use) },
	prepare: func(in *inputs, v *sim.View) { in.use.Count(v) },
	key:     func(in *inputs, v *sim.View, j sim.Job) float64 { return -in.use.Aligned(v, j) }}

// tetris weighs packer's alignment against shortness, the inverse of the estimated run time. With w = Config.Align,
// the greatest w·alignment + (1 − w)·shortness goes first (Grandl et al., SIGCOMM 2014, in the form of DeepRM's
// evaluation). Both are in units of the greatest value among the waiting jobs; the paper divides by means over them,
// and DeepRM's machine has its own units. Like packer's, the source's admission is skip.
var tetris = rule{name: "tetris", estimates: true, dynamic: true, everyStart: true,
	prepare: func(in *inputs, v *sim.View) {
		in.use.Count(v)
		in.use.Best, in.use.Shortest, in.use.Outdone = 0, math.Inf(1), false
		for _, j := range v.Waiting() {
			x := in.use.Alignment(v, j)
			in.use.Best = max(in.use.Best, x)
			in.use.Shortest = min(in.use.Shortest, in.requested(v, j))
		}
	},
	key: func(in *inputs, v *sim.View, j sim.Job) float64 {
		x, lasts := in.use.Alignment(v, j), in.requested(v, j)
		in.use.Outdone = in.use.Outdone || x > in.use.Best || lasts < in.use.Shortest
		score := (1 - in.cfg.Align) * in.use.Shortest / lasts
		if in.use.Best > 0 {
			score += in.cfg.Align * x / in.use.Best
		}
		return -score
	}}
