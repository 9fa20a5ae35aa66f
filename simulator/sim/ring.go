package sim

import (
	"math"
	"slices"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// ring is the α–β model of all-reduce in rings. A ring of m members exchanges B bytes over a link in
//
//	2(m−1)/m · B/bandwidth + 2(m−1) · latency
//
// (Patarasuk and Yuan, JPDC 2009). A gang reduces tier by tier: among the GPUs of a node over its link, among the
// nodes of a rack over their NICs, among racks over their uplinks. The times add up, the slowest link of a tier
// counts, and a tier of one member costs nothing. With Ring.PerGPU a tier of m members passes on an m-th of the bytes.
// Reducing by tiers needs the same number of GPUs on every node of the gang and the same number of nodes in every rack
// of it; any other gang is one ring of all its members over the slowest link it touches, as in Dally's simulator
// (Sharma et al., arXiv 2401.16492).
//
// An iteration takes T = compute + max(0, exchange − overlap · compute), and the gang keeps the share T(best)/T(its
// own) of its rate, where best is the cheapest placement of this many GPUs on the empty cluster; with Ring.Ideal the
// share is compute/T(its own).
type ring struct {
	c       *cluster.Cluster
	overlap float64
	ideal   bool // compare with no exchange at all
	perGPU  bool // tiers pass on only a part of the bytes

	links         []cluster.Link // the distinct links
	link, nic, up []int32        // into links, by node, node and rack
	cost          []float64      // of links, for the current ring
	order         []float64      // cost, sorted

	// The current gang: members by node and nodes by rack, and which of them are not 0.
	members, inRack []int32
	nodes, racks    []int32
	uplinks         []float64 // scratch of tiers

	best map[ringKey]float64 // exchange over the best placement
}

type ringKey struct {
	bytes int64
	gpus  int
}

// maxRings bounds the table of best placements, for streams in which every job has a different size.
const maxRings = 1 << 14

func newRing(c *cluster.Cluster, cfg Ring) *ring {
	r := &ring{c: c, overlap: cfg.Overlap, ideal: cfg.Ideal, perGPU: cfg.PerGPU, members: make([]int32, c.Nodes()),
		inRack: make([]int32, c.Racks()),
		best:   map[ringKey]float64{}}
	index := func(k cluster.Link) int32 {
		k.Class = "" // the class does not matter here
		i := slices.Index(r.links, k)
		if i < 0 {
			i = len(r.links)
			r.links = append(r.links, k)
		}
		return int32(i)
	}
	for n := range c.Nodes() {
		r.link = append(r.link, index(c.Link(n)))
		r.nic = append(r.nic, index(c.NIC(n)))
	}
	for k := range c.Racks() {
		r.up = append(r.up, index(c.Uplink(k)))
	}
	r.cost = make([]float64, len(r.links))
	return r
}

// price sets cost to the time in nanoseconds of a ring of m members that exchanges bytes bytes over each link. A Gbps
// is a bit per nanosecond.
func (r *ring) price(m int, bytes int64) []float64 {
	steps := 2 * float64(m-1)
	for i, k := range r.links {
		r.cost[i] = steps/float64(m)*float64(bytes)*8/k.Gbps + steps*float64(k.Latency)
	}
	return r.cost
}

// factor returns the share of its rate that a gang of at least two GPUs keeps on gpus.
func (r *ring) factor(p *traces.Profile, gpus []cluster.GPU) float64 {
	if p.GradientBytes == 0 {
		return 1
	}
	key := ringKey{p.GradientBytes, len(gpus)}
	best, ok := r.best[key]
	if !ok && !r.ideal {
		if len(r.best) == maxRings {
			clear(r.best)
		}
		best = min(r.bestTiers(key.gpus, key.bytes), r.bestFlat(key.gpus, key.bytes))
		r.best[key] = best
	}
	compute := float64(p.Compute)
	hidden := r.overlap * compute
	return (compute + max(0, best-hidden)) / (compute + max(0, r.exchange(p.GradientBytes, gpus)-hidden))
}

// exchange returns the time of one all-reduce among gpus.
func (r *ring) exchange(bytes int64, gpus []cluster.GPU) float64 {
	r.nodes, r.racks = r.nodes[:0], r.racks[:0]
	for _, g := range gpus {
		n := int32(r.c.NodeOf(g))
		if r.members[n] == 0 {
			r.nodes = append(r.nodes, n)
			k := int32(r.c.RackOf(int(n)))
			if r.inRack[k] == 0 {
				r.racks = append(r.racks, k)
			}
			r.inRack[k]++
		}
		r.members[n]++
	}
	t := r.gang(bytes, len(gpus))
	for _, n := range r.nodes {
		r.members[n] = 0
	}
	for _, k := range r.racks {
		r.inRack[k] = 0
	}
	return t
}

// gang returns the exchange time of the gang of n GPUs that nodes and racks describe.
func (r *ring) gang(bytes int64, n int) float64 {
	m, k := r.members[r.nodes[0]], r.inRack[r.racks[0]]
	even := true
	for _, node := range r.nodes {
		even = even && r.members[node] == m
	}
	for _, rack := range r.racks {
		even = even && r.inRack[rack] == k
	}
	if !even {
		return r.slowest(r.price(n, bytes), true, true, true)
	}
	t := 0.0
	if m > 1 {
		t += r.slowest(r.price(int(m), bytes), true, false, false)
	}
	bytes = r.passed(bytes, int(m))
	if k > 1 {
		t += r.slowest(r.price(int(k), bytes), false, true, false)
	}
	if len(r.racks) > 1 {
		t += r.slowest(r.price(len(r.racks), r.passed(bytes, int(k))), false, false, true)
	}
	return t
}

// passed returns how many of its bytes a tier of m members passes on.
func (r *ring) passed(bytes int64, m int) int64 {
	if r.perGPU {
		return bytes / int64(m)
	}
	return bytes
}

// slowest returns the greatest cost among the gang's links in the tiers given.
func (r *ring) slowest(cost []float64, link, nic, up bool) float64 {
	t := 0.0
	for _, n := range r.nodes {
		if link && r.members[n] > 1 {
			t = max(t, cost[r.link[n]])
		}
		if nic && len(r.nodes) > 1 {
			t = max(t, cost[r.nic[n]])
		}
	}
	for _, k := range r.racks {
		if up && len(r.racks) > 1 {
			t = max(t, cost[r.up[k]])
		}
	}
	return t
}

// bestTiers returns the shortest exchange of n GPUs in tiers on the empty cluster: over every way to write n as GPUs
// of a node × nodes of a rack × racks, and over every bound on the slowest link and NIC used.
func (r *ring) bestTiers(n int, bytes int64) float64 {
	best := math.Inf(1)
	for m := 1; m <= min(n, r.c.MaxNode()); m++ {
		if n%m != 0 {
			continue
		}
		for k := 1; k <= n/m; k++ {
			if n/m%k != 0 || n/m/k > r.c.Racks() {
				continue
			}
			links := slices.Clone(r.price(m, bytes))
			nics := slices.Clone(r.price(k, r.passed(bytes, m)))
			uplinks := slices.Clone(r.price(n/m/k, r.passed(r.passed(bytes, m), k)))
			for _, a := range links {
				for _, b := range nics {
					if a+b < best {
						best = min(best, a+b+r.tiers(m, k, n/m/k, a, b, links, nics, uplinks))
					}
				}
			}
		}
	}
	return best
}

// tiers returns what the uplinks add to a gang of m GPUs on each of k nodes in each of racks racks, over links that
// cost at most a and NICs that cost at most b; infinite if there is no such placement. The costs of a tier with one
// member are 0, so they exclude nothing.
func (r *ring) tiers(m, k, racks int, a, b float64, links, nics, uplinks []float64) float64 {
	r.uplinks = r.uplinks[:0]
	for rack := range r.c.Racks() {
		fit := 0
		first, end := r.c.RackNodes(rack)
		for node := first; node < end; node++ {
			from, to := r.c.NodeGPUs(node)
			if int(to-from) >= m && links[r.link[node]] <= a && nics[r.nic[node]] <= b {
				fit++
			}
		}
		if fit >= k {
			r.uplinks = append(r.uplinks, uplinks[r.up[rack]])
		}
	}
	if len(r.uplinks) < racks {
		return math.Inf(1)
	}
	slices.Sort(r.uplinks)
	return r.uplinks[racks-1]
}

// bestFlat returns the shortest exchange of n GPUs in one ring on the empty cluster.
func (r *ring) bestFlat(n int, bytes int64) float64 {
	if n < 3 {
		return math.Inf(1) // they are on one node, or evenly spread
	}
	cost := r.price(n, bytes)
	r.order = append(r.order[:0], cost...)
	slices.Sort(r.order)
	for _, t := range r.order {
		if r.uneven(n, t, cost) {
			return t
		}
	}
	return math.Inf(1)
}

// uneven reports whether n GPUs, at least three, can be unevenly spread over several nodes without a link that costs
// more than t. A node with a more expensive link can contribute one GPU, which does not use the link.
func (r *ring) uneven(n int, t float64, cost []float64) bool {
	all := part{even: true}
	for rack := range r.c.Racks() {
		one := part{even: true}
		first, end := r.c.RackNodes(rack)
		for node := first; node < end; node++ {
			from, to := r.c.NodeGPUs(node)
			holds := int(to - from)
			if cost[r.nic[node]] > t {
				holds = 0
			} else if cost[r.link[node]] > t {
				holds = min(holds, 1)
			}
			if holds > 0 {
				one.add(holds, 1, holds)
			}
		}
		if one.uneven(n) {
			return true
		}
		if one.places > 0 && cost[r.up[rack]] <= t {
			all.even = all.even && one.even
			all.add(one.holds, one.places, one.first)
		}
	}
	return all.uneven(n)
}

// part summarises places where GPUs may be: the nodes of a rack, or the racks.
type part struct {
	places, holds, most int
	even                bool // all places are equal
	first, nodes, each  int  // GPUs and nodes of the first place, and GPUs of each of its nodes
}

func (p *part) add(holds, nodes, each int) {
	if p.places == 0 {
		p.first, p.nodes, p.each = holds, nodes, each
	}
	p.even = p.even && p.first == holds && p.nodes == nodes && p.each == each
	p.places++
	p.holds += holds
	p.most = max(p.most, holds)
}

// uneven reports whether n GPUs, at least three, can be unevenly spread over several of the places. If the places hold
// more than n GPUs and one place holds at least two, some uneven gang exists: take an even one and move a member to a
// free GPU.
func (p *part) uneven(n int) bool {
	return p.places > 1 && p.holds >= n && p.most > 1 && (p.holds > n || !p.even)
}
