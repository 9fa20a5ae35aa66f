package jobselect

import (
	"fmt"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/sched"
	"clustergym/simulator/sim"
)

// actions is Discrete(K+R+1): i < K starts slot i on the GPUs that the placement picks, K+r stops row r of the running
// gangs, and the last waits. R is 0 where jobs cannot be stopped.
type actions struct {
	k, r  int
	place *encode.Placements
}

var _ sched.Actions = (*actions)(nil)

func (a *actions) Spec() env.ActionSpec { return env.ActionSpec{Sizes: []int{a.k + a.r + 1}} }

func (a *actions) NoOp() int { return a.k + a.r }

func (a *actions) Mask(dst []bool, s *sched.State) (legal int) {
	clear(dst)
	for i, fits := range s.Fits {
		if fits {
			dst[i] = true
			legal++
		}
	}
	if a.r > 0 {
		for i, may := range s.Stops {
			if may {
				dst[a.k+i] = true
				legal++
			}
		}
	}
	if s.View.CanWait() {
		dst[a.k+a.r] = true
		legal++
	}
	return legal
}

func (a *actions) Decode(act env.Action, s *sched.State, d *sim.Decision) (bool, error) {
	i := int(act.Disc[0])
	switch {
	case i == a.k+a.r:
		d.Op = sim.Wait
		return true, nil
	case i >= a.k:
		d.Op, d.Job = sim.PreemptJob, s.Running[i-a.k]
		return true, nil
	}
	j := s.Slots[i]
	gpus, _ := a.place.Of(s.View, j)
	if gpus == nil && !s.View.Cluster().Pool() {
		return false, fmt.Errorf("jobselect: slot %d fits and has no placement", i)
	}
	d.Op, d.Job, d.GPUs = sim.StartJob, j, append(d.GPUs[:0], gpus...)
	return true, nil
}
