package steer

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/live"
)

// overdue notes that the cluster has not carried out a start within Grace, and reports whether the job is left to the
// cluster now. Why a cluster starts nothing on a node it does not always tell, so the next start names no nodes. If
// that does not help either, it is the job: it waits for something that is not seen, such as a licence, and must not
// keep GPUs free.
func (l *loop) overdue(j *live.Job, p *promise) bool {
	if l.late[j.ID]++; l.late[j.ID] == 1 && len(p.places) > 0 {
		l.remark(fmt.Sprintf("%s has not started on %s within %v; the cluster is to choose", j.ID,
			strings.Join(names(p.places), ","), l.Grace))
		return false
	}
	l.refused[j.ID] = &refusal{tries: max(0, l.late[j.ID]-2)}
	l.remark(fmt.Sprintf("%s has not started within %v, wherever; %s", j.ID, l.Grace,
		l.refuse(live.Action{Op: live.StartJob, Job: j.ID})))
	delete(l.promised, j.ID)
	return true
}

// divisions says what follows from divided, by mode.
var divisions = map[string]string{
	Shadow: ": a start that the log has may be on nodes which the job's partition does not have",
	Rank:   ": ranks order the jobs of each partition",
	Gate:   ": the cluster chooses the nodes of a job that the policy would start outside its partition",
}

// divided says that partitions have different nodes, which policies do not know; "" = they have not.
func divided(s *live.Snapshot) string {
	all, of := 0, map[string]int{} // nodes with GPUs
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.GPUs == 0 {
			continue
		}
		all++
		if n.VCs == nil {
			return ""
		}
		for _, v := range n.VCs {
			of[v]++
		}
	}
	var list []string
	for v, n := range of {
		if n < all {
			list = append(list, fmt.Sprintf("%s has %d", v, n))
		}
	}
	if list == nil {
		return ""
	}
	slices.Sort(list)
	return fmt.Sprintf("not every partition has all %d nodes with GPUs (%s), and policies see one cluster", all,
		strings.Join(list, ", "))
}
