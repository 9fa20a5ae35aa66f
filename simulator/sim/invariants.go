package sim

import (
	"fmt"
	"slices"

	"clustergym/simulator/cluster"
)

// CheckInvariants returns what is wrong with the run's state, or nil: no GPU is used beyond its capacity, gangs are
// whole, free + used = total, no event is before now, and every job is in exactly one list. It takes time in
// proportion to the cluster and the queue; builds with the tag invariants call it after every event.
func (s *Simulator) CheckInvariants() error {
	if err := s.cluster.CheckInvariants(); err != nil {
		return err
	}
	used := 0
	byGPU := map[cluster.GPU]int{}
	for i, j := range s.running {
		st := &s.jobs[j]
		if st.state != Running || int(st.list) != i {
			return fmt.Errorf("sim: job %d stands among the running and is %v", j, st.state)
		}
		if h := s.finishes[st.heap]; h.job != j || h.at != st.finish || h.at < s.now && !s.role.facts() {
			return fmt.Errorf("sim: job %d finishes at %d, its event says job %d at %d, now is %d", j, st.finish, h.job, h.at,
				s.now)
		}
		if !s.cluster.Pool() && len(st.gpus) != max(1, st.req.GPUs) {
			return fmt.Errorf("sim: job %d wants %d GPUs and has %d", j, st.req.GPUs, len(st.gpus))
		}
		if st.rate <= 0 || st.left < 0 || st.start > s.now || st.first < 0 {
			return fmt.Errorf("sim: job %d runs at rate %v since %d with %v left, now is %d", j, st.rate, st.start, st.left,
				s.now)
		}
		used += st.req.GPUs * st.req.Milli
		for _, g := range st.gpus {
			if g >= 0 {
				byGPU[g] += st.req.Milli
			}
		}
		if err := s.checkProgress(j, st); err != nil {
			return err
		}
	}
	used += s.follow.blocked
	for i := range s.follow.drains {
		for k, g := range s.follow.drains[i].gpus {
			byGPU[g] += s.follow.drains[i].held[k]
		}
	}
	for g, m := range byGPU {
		if m > 1000 || m+s.cluster.GPUFree(g) != 1000 {
			return fmt.Errorf("sim: GPU %d has %d thousandths used and %d free", g, m, s.cluster.GPUFree(g))
		}
	}
	if total := (s.cluster.GPUs() - s.cluster.DownGPUs()) * 1000; used+s.cluster.FreeMilli() != total {
		return fmt.Errorf("sim: %d thousandths used and %d free of %d", used, s.cluster.FreeMilli(), total)
	}
	if len(s.finishes) != len(s.running) {
		return fmt.Errorf("sim: %d jobs run, %d will finish", len(s.running), len(s.finishes))
	}
	for i := 1; i < len(s.finishes); i++ {
		if s.finishes[i].less(&s.finishes[(i-1)/2]) {
			return fmt.Errorf("sim: the finish at place %d comes before its parent", i)
		}
	}
	for i, j := range s.waiting {
		st := &s.jobs[j]
		if st.state != Waiting || int(st.list) != i || st.left < 0 || st.req.GPUs != int(st.asked) {
			return fmt.Errorf("sim: job %d stands among the waiting and is %v with %v left", j, st.state, st.left)
		}
	}
	if live := int64(len(s.waiting) + len(s.running)); s.arrived != s.ended+live {
		return fmt.Errorf("sim: %d jobs arrived, %d finished, %d wait or run", s.arrived, s.ended, live)
	}
	if all := len(s.waiting) + len(s.running) + len(s.spare) + len(s.dead); all != len(s.jobs) {
		return fmt.Errorf("sim: %d of %d numbers are accounted for", all, len(s.jobs))
	}
	if s.coming && int64(s.next.Submit) < s.now && !s.role.facts() {
		return fmt.Errorf("sim: the next job arrives at %v, now is %d", s.next.Submit, s.now)
	}
	if err := s.checkNeighbours(); err != nil {
		return err
	}
	return s.checkFailures()
}

// checkProgress compares a running job's rate with the rate that its placement and neighbours give, and its checkpoint
// with its remaining work.
func (s *Simulator) checkProgress(j Job, st *jobState) error {
	if rate := s.factor(j, st.gpus); rate != st.rate {
		return fmt.Errorf("sim: job %d runs at rate %v, its place and neighbours make it %v", j, st.rate, rate)
	}
	if st.finish != finishAt(st.since, st.left, st.rate) {
		return fmt.Errorf("sim: job %d has %v left since %d at rate %v and finishes at %d", j, st.left, st.since, st.rate,
			st.finish)
	}
	if m := s.peek(j); s.stints && m.begun > st.since || s.cfg.Checkpoint > 0 && m.saved < st.left || m.lost < 0 ||
		st.sized && (m.held < st.start || m.held > s.now) {
		return fmt.Errorf("sim: job %d has %v left since %d: %+v", j, st.left, st.since, m)
	}
	if !st.sized && st.req.GPUs != int(st.asked) {
		return fmt.Errorf("sim: job %d has %d GPUs, asked for %d and was never resized", j, st.req.GPUs, st.asked)
	}
	if n := st.req.GPUs; n != int(st.asked) {
		return s.elastic(j, n, "run")
	}
	return nil
}

// checkNeighbours recounts which jobs are on which node.
func (s *Simulator) checkNeighbours() error {
	if !s.near.on {
		return nil
	}
	byNode := make([][]Job, s.cluster.Nodes())
	nic, up := make([]int32, s.cluster.Nodes()), make([]int32, s.cluster.Racks())
	for _, j := range s.running {
		nodes, racks := map[int]bool{}, map[int]bool{}
		for _, g := range s.jobs[j].gpus {
			n := s.cluster.NodeOf(g)
			nodes[n], racks[s.cluster.RackOf(n)] = true, true
		}
		for n := range nodes {
			byNode[n] = append(byNode[n], j)
			if len(nodes) > 1 {
				nic[n]++
			}
		}
		for r := range racks {
			if len(racks) > 1 {
				up[r]++
			}
		}
	}
	for n, list := range byNode {
		slices.Sort(list)
		if !slices.Equal(list, s.near.byNode[n]) {
			return fmt.Errorf("sim: on node %d are jobs %v, its list says %v", n, list, s.near.byNode[n])
		}
	}
	if l := s.links; l != nil && (!slices.Equal(nic, l.onNIC) || !slices.Equal(up, l.onUp)) {
		return fmt.Errorf("sim: gangs talk over NICs %v and uplinks %v, counted are %v and %v", nic, up, l.onNIC, l.onUp)
	}
	return nil
}

// checkFailures compares the pending events of nodes with the cluster.
func (s *Simulator) checkFailures() error {
	f := &s.nodes
	if !f.on {
		return nil
	}
	down := 0
	for i := range f.pending {
		e := &f.pending[i]
		if e.at < s.now || e.recover != (s.cluster.Down(int(e.node)) || s.draining(int(e.node)) >= 0) ||
			e.recover != (f.draws[e.node]%2 == 0) || i > 0 && e.less(&f.pending[(i-1)/2]) {
			return fmt.Errorf("sim: the event of node %d at %d (recovery: %v, %d draws) does not belong at place %d, now is %d",
				e.node, e.at, e.recover, f.draws[e.node], i, s.now)
		}
		if e.recover {
			down++
		}
	}
	if down != f.down || len(f.pending) != s.cluster.Nodes() {
		return fmt.Errorf("sim: %d of %d nodes are down, counted are %d", down, len(f.pending), f.down)
	}
	return nil
}
