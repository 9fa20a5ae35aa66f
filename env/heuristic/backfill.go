package heuristic

import (
	"math"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// never is the time of an event that does not happen.
const never = math.MaxInt64

// reserve returns the head's shadow time: when the head can start if running jobs end as expected. It returns never
// if the head does not fit even then. It leaves ahead as the cluster will be at that time.
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

// within returns the time from now until t, at least 0; never if t is never.
func within(now, t int64) int64 {
	if t == never {
		return never
	}
	return max(0, t-now)
}
