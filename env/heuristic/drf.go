package heuristic

import "clustergym/env/sim"

// drf is dominant resource fairness (Ghodsi et al., NSDI 2011, algorithm 1): next is the user whose dominant share, the
// greatest of the shares of GPUs, cores and memory that the user's running jobs hold, is least, and of that user the
// job that arrived first. Every start changes a share, so those that wait are ranked anew after each. Between users
// with equal shares the job goes first that arrived first; jobs without a user belong to one user together.
//
// The algorithm stops when the next user's job does not fit: admission strict. With skip it goes on to the next.
var drf = rule{name: "drf", dynamic: true, everyStart: true,
	prepare: func(s *Scheduler, v *sim.View) { s.use.countUsers(v) },
	key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
		h := &s.use.held[s.use.userOf(v, j)]
		return max(h[0], h[1], h[2])
	}}
