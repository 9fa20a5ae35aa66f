package heuristic

import "clustergym/env/sim"

// drf is dominant resource fairness (Ghodsi et al., NSDI 2011, algorithm 1). A user's dominant share is the greatest
// of the shares of GPUs, cores and memory that the user's running jobs hold. Next is the earliest job of the user
// with the least dominant share. Every start changes a share, so users are ranked anew after each. Between users with
// equal shares the earlier job goes first. All jobs without a user count as one user's.
//
// The algorithm stops when the next user's job does not fit: admission strict. With skip it goes on to the next.
var drf = rule{name: "drf", dynamic: true, everyStart: true,
	classes: func(s *Scheduler) classes { return users{&s.use} },
	prepare: func(s *Scheduler, v *sim.View) { s.use.countUsers(v) },
	key:     func(s *Scheduler, v *sim.View, j sim.Job) float64 { return s.use.dominant(s.use.userOf(v, j)) }}

// dominant returns the dominant share of user.
func (u *usage) dominant(user int32) float64 {
	h := &u.held[user]
	return max(h[0], h[1], h[2])
}

// users are the classes of drf: the jobs of each user.
type users struct{ *usage }

func (users) reset() {} // users keep their numbers

func (u users) of(v *sim.View, j sim.Job) int32 { return u.userOf(v, j) }

func (u users) update(v *sim.View, dst []int32) []int32 {
	u.countUsers(v)
	return append(dst, u.changed...)
}

func (u users) key(class int32) float64 { return u.dominant(class) }
