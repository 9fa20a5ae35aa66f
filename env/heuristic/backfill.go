package heuristic

import (
	"math"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// never is a time that does not come.
const never = math.MaxInt64

// reserve finds when the first in line can start by the expected ends of the running jobs (its shadow time), never if
// not even then, and makes ahead the cluster as it will be at that time.
func reserve(s *Scheduler, v *sim.View, running *ends, list *[]sim.Job, ahead *cluster.Cluster, head sim.Job, dst *[]cluster.GPU) (shadow int64) {
	ahead.CopyFrom(v.Cluster())
	*list = running.tree.list(running.root, (*list)[:0])
	now := int64(v.Now())
	r := v.Request(head)
	need := r.GPUs * r.Milli
	for i := 0; i < len(*list); {
		end := max(now, running.of((*list)[i]))
		for ; i < len(*list) && max(now, running.of((*list)[i])) == end; i++ {
			j := (*list)[i]
			ahead.Release(v.Request(j), v.GPUs(j))
		}
		if ahead.FreeMilli() < need {
			continue
		}
		var ok bool
		if *dst, ok = s.place.Place(v, head, ahead, *dst); ok {
			return end
		}
	}
	return never
}

// within is a time until t, at least 0; without end if t is never.
func within(now, t int64) int64 {
	if t == never {
		return never
	}
	return max(0, t-now)
}
