package queue

import (
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// Freed is what was given back since a pass found that no more jobs fit. While nothing has been, no job will fit.
type Freed struct {
	Any, All bool    // something was given back; anything may have been
	nodes    []int32 // the nodes that got something back, unless all
	quotas   bool    // there are quotas: what a job gives back on one node helps on all
	free     int     // thousandths at the end of the last pass
}

// maxFreed is the greatest number of nodes looked at one by one.
const maxFreed = 64

// Reset begins a run on c, in which anything may have been given back.
func (f *Freed) Reset(c *cluster.Cluster) {
	f.Any, f.All, f.nodes, f.free = true, true, f.nodes[:0], -1
	f.quotas = c.Pool()
	for _, vc := range c.Spec().VCs {
		f.quotas = f.quotas || vc.Quota > 0
	}
}

// Event notes what e gave back.
func (f *Freed) Event(c *cluster.Cluster, e *sim.Event) {
	switch e.Kind {
	case sim.Finish:
		f.Any = true
		if f.All || f.quotas {
			f.All = true
			return
		}
		for _, g := range e.GPUs {
			if n := int32(c.NodeOf(g)); len(f.nodes) == 0 || f.nodes[len(f.nodes)-1] != n {
				f.nodes = append(f.nodes, n)
			}
		}
		f.All = len(f.nodes) > maxFreed
	case sim.Preempt, sim.Fail, sim.NodeRecover, sim.Migrate, sim.Resize:
		f.Any, f.All = true, true
	}
}

// Open begins a pass. Other code may have given something back at this same time.
func (f *Freed) Open(c *cluster.Cluster) {
	if c.FreeMilli() > f.free && !f.Any {
		f.Any, f.All = true, true
	}
}

// Done ends a pass.
func (f *Freed) Done(c *cluster.Cluster) {
	f.Any, f.All, f.nodes, f.free = false, false, f.nodes[:0], c.FreeMilli()
}

// mayFit reports whether a request that had no room at the end of the last pass may have room now: only if a member
// of its gang fits on a node where something was freed.
func (f *Freed) mayFit(c *cluster.Cluster, r *cluster.Request) bool {
	if !f.Any || f.All {
		return f.Any
	}
	for _, n := range f.nodes {
		if c.Room(int(n), r) > 0 {
			return true
		}
	}
	return false
}
