package heuristic

import (
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
