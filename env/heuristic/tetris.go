package heuristic

import (
	"math"

	"clustergym/env/sim"
)

// packer serves the job first that is best aligned with what is free: the greatest dot product of demand and free
// capacity over GPUs, cores and memory, each as a share of what the cluster has ("Packer" in the evaluation of
// DeepRM: Mao et al., HotNets 2016). Every start changes what is free, so all demands are ranked anew after each. The
// source chooses among the jobs that fit, which is admission skip.
var packer = rule{name: "packer", dynamic: true, everyStart: true,
	classes: func(s *Scheduler) classes { return &shapes{usage: &s.use} },
	prepare: func(s *Scheduler, v *sim.View) { s.use.count(v) },
	key:     func(s *Scheduler, v *sim.View, j sim.Job) float64 { return -s.use.aligned(v, j) }}

// tetris weighs packer's alignment against shortness, the inverse of the estimated run time. With w = Config.Align,
// the greatest w·alignment + (1 − w)·shortness goes first (Grandl et al., SIGCOMM 2014, in the form of DeepRM's
// evaluation). Both are in units of the greatest value among the waiting jobs; the paper divides by means over them,
// and DeepRM's machine has its own units. Like packer's, the source's admission is skip.
var tetris = rule{name: "tetris", estimates: true, dynamic: true, everyStart: true,
	prepare: func(s *Scheduler, v *sim.View) {
		s.use.count(v)
		s.use.best, s.use.shortest, s.use.outdone = 0, math.Inf(1), false
		for _, j := range v.Waiting() {
			x := s.use.alignment(v, j)
			s.use.best = max(s.use.best, x)
			s.use.shortest = min(s.use.shortest, s.requested(v, j))
		}
	},
	key: func(s *Scheduler, v *sim.View, j sim.Job) float64 {
		x, lasts := s.use.alignment(v, j), s.requested(v, j)
		s.use.outdone = s.use.outdone || x > s.use.best || lasts < s.use.shortest
		score := (1 - s.cfg.Align) * s.use.shortest / lasts
		if s.use.best > 0 {
			score += s.cfg.Align * x / s.use.best
		}
		return -score
	}}

// alignment is aligned, with the demand of j, which waits, computed once.
func (u *usage) alignment(v *sim.View, j sim.Job) float64 {
	u.measure(v.Cluster())
	for int(j) >= len(u.wants) {
		u.wants = append(u.wants, want{pos: -1})
	}
	w := &u.wants[j]
	if w.pos != v.Pos(j) {
		*w = want{v.Pos(j), u.demand(v.Request(j))}
	}
	return u.align(w.demand)
}

// aligned returns the dot product of j's demand and what is free.
func (u *usage) aligned(v *sim.View, j sim.Job) float64 {
	u.measure(v.Cluster())
	return u.align(u.demand(v.Request(j)))
}

// align returns the dot product of d and what is free.
func (u *usage) align(d demand) float64 {
	sum := 0.0
	for i, x := range d {
		sum += x * u.free[i]
	}
	return sum
}

// shapes are the classes of packer: jobs with the same demand.
type shapes struct {
	*usage
	index map[demand]int32
	list  []demand // by class
}

func (a *shapes) reset() {
	if a.index == nil {
		a.index = map[demand]int32{}
	}
	clear(a.index)
	a.list = a.list[:0]
}

func (a *shapes) of(v *sim.View, j sim.Job) int32 {
	a.measure(v.Cluster())
	x := a.demand(v.Request(j))
	i, ok := a.index[x]
	if !ok {
		i = int32(len(a.list))
		a.index[x] = i
		a.list = append(a.list, x)
	}
	return i
}

func (a *shapes) update(v *sim.View, dst []int32) []int32 {
	if a.count(v) {
		for i := range a.list {
			dst = append(dst, int32(i))
		}
	}
	return dst
}

func (a *shapes) key(class int32) float64 { return -a.align(a.list[class]) }
