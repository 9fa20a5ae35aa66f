package heuristic

import "clustergym/env/sim"

// drf is dominant resource fairness (Ghodsi et al., NSDI 2011, algorithm 1). A user's dominant share is the greatest
// of the shares of GPUs, cores and memory that the user's running jobs hold. Next is the earliest job of the user
// with the least dominant share. Every start changes a share, so waiting jobs are ranked anew after each. Between
// users with equal shares the earlier job goes first. All jobs without a user count as one user's.
//
// The algorithm stops when the next user's job does not fit: admission strict. With skip it goes on to the next.
var drf = rule{name: "drf", dynamic: true, everyStart: true,
	prepare: func(s *Scheduler, v *sim.View) { s.use.countUsers(v) },
	key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
		h := &s.use.held[s.use.userOf(v, j)]
		return max(h[0], h[1], h[2])
	}}
