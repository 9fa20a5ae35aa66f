package sim

import (
	"fmt"
	"slices"

	"clustergym/simulator/cluster"
)

// neighbours records which jobs are on each node. The lists are kept only in runs that need them: from the start if
// rates depend on neighbours or nodes fail, else from the first query.
type neighbours struct {
	always bool
	on     bool
	byNode [][]Job // sorted by number, so that the lists depend only on which jobs are there

	// Scratch: marks by epoch, and lists of jobs.
	node, gpu, job []uint32
	epoch          uint32
	peers, shared  []Job
}

// insert and remove keep lists sorted.
func insert(list []Job, j Job) []Job {
	list = append(list, j)
	i := len(list) - 1
	for ; i > 0 && list[i-1] > j; i-- {
		list[i] = list[i-1]
	}
	list[i] = j
	return list
}

func remove(list []Job, j Job) []Job {
	i, ok := slices.BinarySearch(list, j)
	if !ok {
		panic(fmt.Sprintf("sim: job %d is not in the list it leaves: %v", j, list))
	}
	return append(list[:i], list[i+1:]...)
}

func (s *Simulator) resetNeighbours() {
	n := &s.near
	n.on = false
	if s.links != nil {
		s.links.reset()
	}
	if n.always {
		s.watchNodes()
	}
}

// makeNeighbours makes room for the lists.
func (s *Simulator) makeNeighbours() {
	n := &s.near
	if n.byNode == nil {
		n.byNode = make([][]Job, s.cluster.Nodes())
		n.node = make([]uint32, s.cluster.Nodes())
		n.gpu = make([]uint32, s.cluster.GPUs())
	}
}

// watchNodes starts keeping the lists.
func (s *Simulator) watchNodes() {
	n := &s.near
	n.on = true
	s.makeNeighbours()
	for i := range n.byNode {
		n.byNode[i] = n.byNode[i][:0]
	}
	for _, j := range s.running {
		s.enter(j)
	}
}

// next starts a new epoch, in which nothing is marked.
func (n *neighbours) next(jobs int) {
	if n.epoch++; n.epoch == 0 { // wrapped around: old marks could look new
		clear(n.node)
		clear(n.gpu)
		clear(n.job)
		n.epoch = 1
	}
	for len(n.job) < jobs {
		n.job = append(n.job, 0)
	}
}

// enter adds j to the lists of its nodes.
func (s *Simulator) enter(j Job) {
	n, st := &s.near, &s.jobs[j]
	n.next(len(s.jobs))
	for _, g := range st.gpus {
		if k := s.cluster.NodeOf(g); n.node[k] != n.epoch {
			n.node[k] = n.epoch
			n.byNode[k] = insert(n.byNode[k], j)
		}
	}
	if s.links != nil {
		if st.talks, st.spans = apart(s.cluster, st.gpus); st.talks {
			s.links.count(j, st, 1)
		}
	}
}

// exit removes j from the lists of its nodes.
func (s *Simulator) exit(j Job) {
	n, st := &s.near, &s.jobs[j]
	n.next(len(s.jobs))
	for _, g := range st.gpus {
		if k := s.cluster.NodeOf(g); n.node[k] != n.epoch {
			n.node[k] = n.epoch
			n.byNode[k] = remove(n.byNode[k], j)
		}
	}
	if st.talks {
		s.links.count(j, st, -1)
		st.talks, st.spans = false, false
	}
}

// arriveAt and departFrom are enter and exit, and also update the jobs whose rates depend on j.
func (s *Simulator) arriveAt(j Job) {
	s.enter(j)
	if s.dynamic {
		s.findPeers(j)
		s.updatePeers()
	}
}

func (s *Simulator) departFrom(j Job) {
	if !s.dynamic {
		s.exit(j)
		return
	}
	s.findPeers(j)
	s.exit(j)
	s.updatePeers()
}

// findPeers lists, once each, the jobs whose rates may depend on whether j is on its GPUs.
func (s *Simulator) findPeers(j Job) {
	n, st := &s.near, &s.jobs[j]
	n.next(len(s.jobs))
	n.peers = n.peers[:0]
	n.job[j] = n.epoch
	add := func(list []Job) {
		for _, i := range list {
			if n.job[i] != n.epoch && (s.cfg.Interference != nil || st.talks && s.jobs[i].talks) {
				n.job[i] = n.epoch
				n.peers = append(n.peers, i)
			}
		}
	}
	for _, g := range st.gpus {
		k := s.cluster.NodeOf(g)
		if n.node[k] == n.epoch {
			continue
		}
		n.node[k] = n.epoch
		add(n.byNode[k])
		if st.spans {
			add(s.links.spanning[s.cluster.RackOf(k)])
		}
	}
}

func (s *Simulator) updatePeers() {
	for _, i := range s.near.peers {
		s.update(i)
	}
}

// disturbed returns the share of its rate that interference leaves to j on gpus: the product over the jobs that share
// a node or a GPU with it, in the order of their numbers, so that the result depends only on which jobs are there.
func (s *Simulator) disturbed(j Job, gpus []cluster.GPU) float64 {
	n := &s.near
	wide := s.cfg.InterferenceScope == "node"
	if !wide && s.jobs[j].req.Milli == 1000 {
		return 1 // it shares no GPU
	}
	n.next(len(s.jobs))
	n.shared = n.shared[:0]
	n.job[j] = n.epoch
	if !wide {
		for _, g := range gpus {
			if g >= 0 {
				n.gpu[g] = n.epoch
			}
		}
	}
	for _, g := range gpus {
		k := s.cluster.NodeOf(g)
		if n.node[k] == n.epoch {
			continue
		}
		n.node[k] = n.epoch
		for _, i := range n.byNode[k] {
			if n.job[i] != n.epoch && (wide || n.sharesGPU(&s.jobs[i])) {
				n.job[i] = n.epoch
				n.shared = append(n.shared, i)
			}
		}
	}
	slices.Sort(n.shared)
	rate := 1.0
	for _, i := range n.shared {
		kept := s.cfg.Interference.Kept(s.traced[j], s.traced[i])
		if !(kept > 0 && kept <= 1) {
			panic(fmt.Sprintf("sim: job %s keeps %v of its speed beside %s, want a share above 0 and up to 1", s.traced[j].ID,
				kept, s.traced[i].ID))
		}
		rate *= kept
	}
	return rate
}

// sharesGPU reports whether one of st's GPUs is marked.
func (n *neighbours) sharesGPU(st *jobState) bool {
	if st.req.Milli == 1000 {
		return false
	}
	for _, g := range st.gpus {
		if g >= 0 && n.gpu[g] == n.epoch {
			return true
		}
	}
	return false
}
