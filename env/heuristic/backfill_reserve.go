package heuristic

import (
	"clustergym/env/cluster"
	"clustergym/env/heuristic/queue"
	"clustergym/env/sim"
)

// reserve returns the head's shadow time: when the head can start if running jobs end as expected. It returns never
// if the head does not fit even then. It leaves ahead as the cluster will be at that time.
func reserve(s *Scheduler, v *sim.View, running *queue.Ends, list *[]sim.Job, ahead *cluster.Cluster, head sim.Job, dst *[]cluster.GPU) (shadow int64) {
	ahead.CopyFrom(v.Cluster())
	*list = running.List((*list)[:0])
	now := int64(v.Now())
	r := v.Request(head)
	need := r.GPUs * r.Milli
	for i := 0; i < len(*list); {
		end := max(now, running.Of((*list)[i]))
		for ; i < len(*list) && max(now, running.Of((*list)[i])) == end; i++ {
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
	return queue.Never
}

// within returns the time from now until t, at least 0; never if t is never.
func within(now, t int64) int64 {
	if t == queue.Never {
		return queue.Never
	}
	return max(0, t-now)
}
