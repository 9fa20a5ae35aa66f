package place

import (
	"slices"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// leastInterference puts a job where it and its neighbours keep most of their speed: of the nodes that hold the gang,
// the one with the greatest product, over the jobs there, of the speed that each pair keeps (the pairwise measure by
// which interference-aware schedulers such as Gandiva, OSDI 2018, and Harmony, INFOCOM 2019, pack). With scope gpu
// only jobs that share a GPU count: a share goes to the GPU with the greatest product, a gang of shares to the best
// GPUs of the node where their product is greatest, and whole GPUs, which are never shared, are placed by best-fit.
// Ties go to the node (for shares, the GPU) with the least left that suffices, then to the lowest number. A gang that
// no single node holds takes all that the best node has room for (ties: most room), and so on until the rest fits on
// one node.
//
// The product compares one placement with another; it is not the resulting rate. On a planning copy only jobs that
// already run are neighbours, and only while the copy has not freed their GPUs.
type leastInterference struct {
	with Given
	wide bool
	fit  cluster.Placement
	room []int
	node []float64 // product by node
	gpu  []float64 // product by GPU
	best []scored  // scratch: GPUs of one node
}

// scored is a GPU and the criteria it is chosen by.
type scored struct {
	product float64
	free    int
	gpu     cluster.GPU
}

func newLeastInterference(with Given) *leastInterference {
	p := &leastInterference{with: with, wide: with.InterferenceScope == "node"}
	p.fit, _ = cluster.NewPlacement("best-fit")
	return p
}

func (*leastInterference) Reset() {}

func (p *leastInterference) Place(v *sim.View, j sim.Job, r *cluster.Request, c *cluster.Cluster,
	dst []cluster.GPU) ([]cluster.GPU, bool) {
	dst = dst[:0]
	if p.with.Interference == nil || c.Pool() || !p.wide && (r.GPUs == 0 || r.Milli == 1000) {
		return p.fit.Place(c, r, dst)
	}
	if !c.Fits(r) {
		return dst, false
	}
	if len(p.room) != c.Nodes() || len(p.gpu) != c.GPUs() {
		p.room, p.node, p.gpu = make([]int, c.Nodes()), make([]float64, c.Nodes()), make([]float64, c.GPUs())
	}
	for n := range p.room {
		if p.room[n] = c.Room(n, r); p.room[n] > 0 {
			p.weigh(v, j, c, n)
		}
	}
	if !p.wide && r.GPUs == 1 {
		return p.share(c, r, dst), true
	}
	for {
		need := max(1, r.GPUs) - len(dst)
		fit, most := -1, -1
		score := 0.0
		for n, k := range p.room {
			switch {
			case k >= need:
				if s := p.product(c, r, n, need); fit < 0 || s > score || s == score && k < p.room[fit] {
					fit, score = n, s
				}
			case k > 0 && fit < 0:
				// Nodes differ in how many members they take, and a mean over members would hide a bad one.
				if s := p.product(c, r, n, k); most < 0 || s > p.node[most] || s == p.node[most] && k > p.room[most] {
					most = n
				}
			}
		}
		if fit >= 0 {
			return p.take(c, r, fit, need, dst), true
		}
		dst = p.take(c, r, most, p.room[most], dst)
		p.room[most] = 0
	}
}

// weigh computes the products of node and its GPUs for j.
func (p *leastInterference) weigh(v *sim.View, j sim.Job, c *cluster.Cluster, node int) {
	from, to := c.NodeGPUs(node)
	p.node[node] = 1
	for g := from; g < to; g++ {
		p.gpu[g] = 1
	}
	me := v.Trace(j)
	for _, i := range v.OnNode(node) {
		if i == j {
			continue
		}
		other := v.Trace(i)
		kept, here := 0.0, false
		for _, g := range v.GPUs(i) {
			if c.NodeOf(g) != node || g >= 0 && c.GPUFree(g) == 1000 {
				continue
			}
			if !here {
				kept, here = p.with.Interference.Kept(me, other)*p.with.Interference.Kept(other, me), true
				p.node[node] *= kept
			}
			if g >= 0 {
				p.gpu[g] *= kept
			}
		}
	}
}

// share places one share with scope gpu.
func (p *leastInterference) share(c *cluster.Cluster, r *cluster.Request, dst []cluster.GPU) []cluster.GPU {
	best := scored{gpu: -1}
	for n, k := range p.room {
		if k == 0 {
			continue
		}
		p.rank(c, r, n)
		if best.gpu < 0 || p.best[0].compare(best) < 0 {
			best = p.best[0]
		}
	}
	return append(dst, best.gpu)
}

// rank sorts the GPUs of node that have room for one share of r, the best first.
func (p *leastInterference) rank(c *cluster.Cluster, r *cluster.Request, node int) {
	p.best = p.best[:0]
	from, to := c.NodeGPUs(node)
	for g := from; g < to; g++ {
		if f := c.GPUFree(g); f >= r.Milli {
			s := scored{1, f, g}
			if !p.wide {
				s.product = p.gpu[g]
			}
			p.best = append(p.best, s)
		}
	}
	slices.SortFunc(p.best, scored.compare)
}

func (a scored) compare(b scored) int {
	switch {
	case a.product != b.product:
		if a.product > b.product {
			return -1
		}
		return 1
	case a.free != b.free:
		return a.free - b.free
	}
	return int(a.gpu) - int(b.gpu)
}

// product returns the product that decides for node when it takes n members. With scope gpu it computes, and notes,
// the product over the GPUs that they would get; a neighbour on two of them counts twice.
func (p *leastInterference) product(c *cluster.Cluster, r *cluster.Request, node, n int) float64 {
	if !p.wide {
		p.rank(c, r, node)
		p.node[node] = 1
		for _, s := range p.best[:n] {
			p.node[node] *= s.product
		}
	}
	return p.node[node]
}

// take appends the n best GPUs of node, or the node's slot for a job without GPUs.
func (p *leastInterference) take(c *cluster.Cluster, r *cluster.Request, node, n int, dst []cluster.GPU) []cluster.GPU {
	if r.GPUs == 0 {
		return append(dst, cluster.Slot(node))
	}
	p.rank(c, r, node)
	for _, s := range p.best[:n] {
		dst = append(dst, s.gpu)
	}
	return dst
}
