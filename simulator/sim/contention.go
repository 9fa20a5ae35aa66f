package sim

import (
	"slices"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// contention is a fluid version of the model of Wang, Shi, Wang and Chu (arXiv 2002.10105). A gang on more than one
// node communicates over the NICs of its nodes, and over the uplinks of its racks if it has more than one. If k gangs
// share its busiest link, the exchange of its M·10^6 bytes of gradients takes
//
//	T(k) = a + k·b·M + (k−1)·eta·M
//
// with b and eta as on a link of 10 Gbps, scaled to the slowest link that the gang uses. An iteration is compute and
// exchange, so the gang keeps the share (compute + best)/(compute + T(k)) of its rate. best is the exchange included
// in the job's measured work: none if a node of the cluster could hold the gang, else T(1) over the fastest links that
// could. The authors' simulator follows single transfers; here a gang on several nodes communicates all the time.
type contention struct {
	c         *cluster.Cluster
	a, b, eta float64 // ns
	// By node and by rack: how much slower its link is than 10 Gbps, and how many gangs use it.
	nic, up     []float64
	onNIC, onUp []int32
	spanning    [][]Job // by rack: the gangs that use its uplink, in order of number

	best   []float64 // scale of the fastest links that hold a gang of this size; 0 = not yet known
	scales []float64 // all distinct scales, fastest first

	// Links that the current gang already uses: those marked with epoch.
	markNode, markRack []uint32
	epoch              uint32
}

func newContention(c *cluster.Cluster, cfg Contention) *contention {
	l := &contention{
		c: c, a: float64(cfg.A), b: float64(cfg.B), eta: float64(cfg.Eta),
		onNIC: make([]int32, c.Nodes()), onUp: make([]int32, c.Racks()), spanning: make([][]Job, c.Racks()),
		markNode: make([]uint32, c.Nodes()), markRack: make([]uint32, c.Racks()),
	}
	for n := range c.Nodes() {
		l.nic = append(l.nic, 10/c.NIC(n).Gbps)
	}
	for r := range c.Racks() {
		l.up = append(l.up, 10/c.Uplink(r).Gbps)
	}
	l.scales = append(append(l.scales, l.nic...), l.up...)
	slices.Sort(l.scales)
	l.scales = slices.Compact(l.scales)
	return l
}

func (l *contention) reset() {
	clear(l.onNIC)
	clear(l.onUp)
	for i := range l.spanning {
		l.spanning[i] = l.spanning[i][:0]
	}
}

// apart reports whether gpus are on several nodes, and whether they are in several racks.
func apart(c *cluster.Cluster, gpus []cluster.GPU) (nodes, racks bool) {
	if len(gpus) < 2 {
		return false, false
	}
	node := c.NodeOf(gpus[0])
	rack := c.RackOf(node)
	for _, g := range gpus[1:] {
		if n := c.NodeOf(g); n != node {
			nodes = true
			if c.RackOf(n) != rack {
				return true, true
			}
		}
	}
	return nodes, false
}

// mark marks the links that a gang on gpus uses.
func (l *contention) mark(gpus []cluster.GPU, spans bool) {
	if l.epoch++; l.epoch == 0 { // wrapped round: old marks could look new
		clear(l.markNode)
		clear(l.markRack)
		l.epoch = 1
	}
	for _, g := range gpus {
		n := l.c.NodeOf(g)
		l.markNode[n] = l.epoch
		if spans {
			l.markRack[l.c.RackOf(n)] = l.epoch
		}
	}
}

// count adds d to the number of gangs on the links that st's gang uses.
func (l *contention) count(j Job, st *jobState, d int32) {
	l.mark(nil, false) // a new epoch, so that each link is counted once
	for _, g := range st.gpus {
		n := l.c.NodeOf(g)
		if l.markNode[n] == l.epoch {
			continue
		}
		l.markNode[n] = l.epoch
		l.onNIC[n] += d
		if r := l.c.RackOf(n); st.spans && l.markRack[r] != l.epoch {
			l.markRack[r] = l.epoch
			l.onUp[r] += d
			if d > 0 {
				l.spanning[r] = insert(l.spanning[r], j)
			} else {
				l.spanning[r] = remove(l.spanning[r], j)
			}
		}
	}
}

// contended returns the share of its rate that j keeps on gpus beside the other gangs that now communicate.
func (s *Simulator) contended(j Job, gpus []cluster.GPU) float64 {
	l, st := s.links, &s.jobs[j]
	talks, spans := apart(l.c, gpus)
	if !talks {
		return 1
	}
	if st.talks {
		l.mark(st.gpus, st.spans)
	} else {
		l.mark(nil, false)
	}
	k, scale := int32(0), 0.0
	for _, g := range gpus {
		n := l.c.NodeOf(g)
		others := l.onNIC[n]
		if l.markNode[n] == l.epoch {
			others--
		}
		k, scale = max(k, others), max(scale, l.nic[n])
		if spans {
			r := l.c.RackOf(n)
			others := l.onUp[r]
			if l.markRack[r] == l.epoch {
				others--
			}
			k, scale = max(k, others), max(scale, l.up[r])
		}
	}
	p := s.traced[j].Profile
	compute, best := float64(p.Compute), 0.0
	if n := len(gpus); n > l.c.MaxNode() {
		best = l.exchange(p, 1, l.bestScale(n))
	}
	return (compute + best) / (compute + l.exchange(p, k+1, scale))
}

// exchange returns T(k) over links that are scale times as slow as 10 Gbps.
func (l *contention) exchange(p *traces.Profile, k int32, scale float64) float64 {
	m := float64(p.GradientBytes) / 1e6
	return l.a + scale*m*(float64(k)*l.b+float64(k-1)*l.eta)
}

// bestScale returns the lowest scale of the slowest link of n GPUs on the empty cluster; n must exceed the largest
// node.
func (l *contention) bestScale(n int) float64 {
	for len(l.best) <= n {
		l.best = append(l.best, 0)
	}
	if l.best[n] == 0 {
		at, _ := slices.BinarySearchFunc(l.scales, n, func(scale float64, n int) int {
			if l.holds(n, scale) {
				return 1
			}
			return -1
		})
		l.best[n] = l.scales[min(at, len(l.scales)-1)]
	}
	return l.best[n]
}

// holds reports whether n GPUs of the empty cluster can communicate over links no slower than scale.
func (l *contention) holds(n int, scale float64) bool {
	all := 0
	for r := range l.c.Racks() {
		rack := 0
		first, end := l.c.RackNodes(r)
		for node := first; node < end; node++ {
			if l.nic[node] <= scale {
				from, to := l.c.NodeGPUs(node)
				rack += int(to - from)
			}
		}
		if rack >= n {
			return true
		}
		if l.up[r] <= scale {
			all += rack
		}
	}
	return all >= n
}
