package sim

import (
	"slices"

	"clustergym/env/cluster"
	"clustergym/traces"
)

// contention is the fluid form of the model of Wang, Shi, Wang and Chu (arXiv 2002.10105). A gang on more than
// one node talks over the NICs of its nodes, and over the uplinks of its racks where it has more than one; where
// k gangs talk over its busiest link, the exchange of its M·10^6 bytes of gradients takes
//
//	T(k) = a + k·b·M + (k−1)·eta·M
//
// with b and eta as on a link of 10 Gbps, scaled to the slowest link that the gang uses. An iteration is compute and
// exchange, so the gang's share of its rate is (compute + best)/(compute + T(k)), where best is the exchange that the
// work was measured with: none where a node of the cluster could hold the gang, else T(1) over the fastest links
// that could. The authors' simulator follows single transfers; here a gang that talks does so all the time.
type contention struct {
	c         *cluster.Cluster
	a, b, eta float64 // ns
	// What a gang's links are, by node and by rack: how much slower than 10 Gbps, and how many gangs talk there.
	nic, up     []float64
	onNIC, onUp []int32
	spanning    [][]Job // gangs that talk over a rack's uplink, by number

	best   []float64 // scale of the fastest links that hold a gang of this size, 0 = not known yet
	scales []float64 // all that there are, fastest first

	// Links over which the gang at hand talks already: those marked with epoch.
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

// apart says whether gpus lie on several nodes, and in several racks.
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

// mark marks the links over which a gang on gpus talks.
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

// count adds d to the gangs on the links that st's gang talks over.
func (l *contention) count(j Job, st *jobState, d int32) {
	l.mark(nil, false) // a new epoch: each link is counted once
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

// contended is the share of its rate that j keeps on gpus beside the gangs that talk now, itself left out.
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

// exchange is T(k) over links that are scale times as slow as 10 Gbps.
func (l *contention) exchange(p *traces.Profile, k int32, scale float64) float64 {
	m := float64(p.GradientBytes) / 1e6
	return l.a + scale*m*(float64(k)*l.b+float64(k-1)*l.eta)
}

// bestScale is the least scale of the slowest link of n GPUs on the empty cluster, n being more than a node has.
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

// holds says whether n GPUs of the empty cluster can talk over links no slower than scale.
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
