package place

import (
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// Shadow returns when head can start at the earliest if the running jobs end as expected, queue.Never if it does not
// fit even then. It leaves ahead as the cluster will be at that time.
func Shadow(p Placement, v *sim.View, running *queue.Ends, list *[]sim.Job, ahead *cluster.Cluster, head sim.Job,
	dst *[]cluster.GPU) (shadow int64) {
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
		if *dst, ok = p.Place(v, head, v.Request(head), ahead, *dst); ok {
			return end
		}
	}
	return queue.Never
}
