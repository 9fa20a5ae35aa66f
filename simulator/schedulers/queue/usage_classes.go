package queue

import (
	"clustergym/internal/grow"
	"clustergym/simulator/sim"
)

// Dominant returns the dominant share of user.
func (u *Usage) Dominant(user int32) float64 {
	h := &u.held[user]
	return max(h[0], h[1], h[2])
}

// byUser are the classes of drf: the jobs of each user.
type byUser struct{ *Usage }

func (byUser) Reset() {} // users keep their numbers

func (u byUser) Of(v *sim.View, j sim.Job) int32 { return u.UserOf(v, j) }

func (u byUser) Update(v *sim.View, dst []int32) []int32 {
	u.CountUsers(v)
	return append(dst, u.changed...)
}

func (u byUser) Key(class int32) float64 { return u.Dominant(class) }

// byDemand are the classes of packer: jobs with the same demand.
type byDemand struct {
	*Usage
	index map[demand]int32
	list  []demand // by class
}

func (a *byDemand) Reset() {
	if a.index == nil {
		a.index = map[demand]int32{}
	}
	clear(a.index)
	a.list = a.list[:0]
}

func (a *byDemand) Of(v *sim.View, j sim.Job) int32 {
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

func (a *byDemand) Update(v *sim.View, dst []int32) []int32 {
	if a.Count(v) {
		for i := range a.list {
			dst = append(dst, int32(i))
		}
	}
	return dst
}

func (a *byDemand) Key(class int32) float64 { return -a.align(a.list[class]) }

// Alignment is aligned, with the demand of j, which waits, computed once.
func (u *Usage) Alignment(v *sim.View, j sim.Job) float64 {
	u.measure(v.Cluster())
	w := grow.Or(&u.wants, j, want{pos: -1})
	if w.pos != v.Pos(j) {
		*w = want{v.Pos(j), u.demand(v.Request(j))}
	}
	return u.align(w.demand)
}

// Aligned returns the dot product of j's demand and what is free.
func (u *Usage) Aligned(v *sim.View, j sim.Job) float64 {
	u.measure(v.Cluster())
	return u.align(u.demand(v.Request(j)))
}

// align returns the dot product of d and what is free.
func (u *Usage) align(d demand) float64 {
	sum := 0.0
	for i, x := range d {
		sum += x * u.free[i]
	}
	return sum
}

// NewByUser returns the classes of drf: the jobs of each user share a key, which is the dominant share of what u says
// they hold.
func NewByUser(u *Usage) Classifier { return byUser{u} }

// NewByDemand returns the classes of packer: jobs with the same demand share a key, which is how badly it aligns with
// what u says is free.
func NewByDemand(u *Usage) Classifier { return &byDemand{Usage: u} }
