package heuristic

import (
	"math"

	"clustergym/env/heuristic/queue"
	"clustergym/env/sim"
)

// drf is dominant resource fairness (Ghodsi et al., NSDI 2011, algorithm 1). A user's dominant share is the greatest
// of the shares of GPUs, cores and memory that the user's running jobs hold. Next is the earliest job of the user
// with the least dominant share. Every start changes a share, so users are ranked anew after each. Between users with
// equal shares the earlier job goes first. All jobs without a user count as one user's.
//
// The algorithm stops when the next user's job does not fit: admission strict. With skip it goes on to the next.
var drf = rule{name: "drf", dynamic: true, everyStart: true,
	classes: func(s *Scheduler) queue.Classifier { return queue.NewByUser(&s.use) },
	prepare: func(s *Scheduler, v *sim.View) { s.use.CountUsers(v) },
	key:     func(s *Scheduler, v *sim.View, j sim.Job) float64 { return s.use.Dominant(s.use.UserOf(v, j)) }}

// packer serves the job first that is best aligned with what is free: the greatest dot product of demand and free
// capacity over GPUs, cores and memory, each as a share of what the cluster has ("Packer" in the evaluation of
// DeepRM: Mao et al., HotNets 2016). Every start changes what is free, so all demands are ranked anew after each. The
// source chooses among the jobs that fit, which is admission skip.
var packer = rule{name: "packer", dynamic: true, everyStart: true,
	classes: func(s *Scheduler) queue.Classifier { return queue.NewByDemand(&s.use) },
	prepare: func(s *Scheduler, v *sim.View) { s.use.Count(v) },
	key:     func(s *Scheduler, v *sim.View, j sim.Job) float64 { return -s.use.Aligned(v, j) }}

// tetris weighs packer's alignment against shortness, the inverse of the estimated run time. With w = Config.Align,
// the greatest w·alignment + (1 − w)·shortness goes first (Grandl et al., SIGCOMM 2014, in the form of DeepRM's
// evaluation). Both are in units of the greatest value among the waiting jobs; the paper divides by means over them,
// and DeepRM's machine has its own units. Like packer's, the source's admission is skip.
var tetris = rule{name: "tetris", estimates: true, dynamic: true, everyStart: true,
	prepare: func(s *Scheduler, v *sim.View) {
		s.use.Count(v)
		s.use.Best, s.use.Shortest, s.use.Outdone = 0, math.Inf(1), false
		for _, j := range v.Waiting() {
			x := s.use.Alignment(v, j)
			s.use.Best = max(s.use.Best, x)
			s.use.Shortest = min(s.use.Shortest, s.requested(v, j))
		}
	},
	key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
		x, lasts := s.use.Alignment(v, j), s.requested(v, j)
		s.use.Outdone = s.use.Outdone || x > s.use.Best || lasts < s.use.Shortest
		score := (1 - s.cfg.Align) * s.use.Shortest / lasts
		if s.use.Best > 0 {
			score += s.cfg.Align * x / s.use.Best
		}
		return -score
	}}
