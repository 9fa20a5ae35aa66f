package cluster

// closest takes the GPUs nearest to an anchor node: first those of that node, then of its rack, then of the site,
// lowest number first. Its three variants differ in the anchor. They are generalised to any tree from the code of the
// group behind TopDRL (djjbxxz/Proximity-DRL and an older version of it):
//
//	a  the node of the first free GPU.
//	b  by size of the gang. Larger than a node: the rack with most free GPUs, in it the node with most free.
//	   From 2 up to a node: in the rack with the fewest free GPUs (but at least one) the fullest node that holds
//	   the gang; else the same in the rack with most free; else that rack's node with most free. One GPU: in the
//	   rack with the fewest free (but at least one) the node with most free.
//	c  the node with most free GPUs in the rack with most free GPUs.
//
// "Free" counts GPUs that the gang could use: of its types, with enough of the GPU, cores and memory left.
type closest struct {
	variant    byte
	node, rack []int // usable GPUs
}

func (p *closest) Name() string { return "closest-" + string(p.variant) }

func (p *closest) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
	dst = dst[:0]
	if !c.Fits(r) {
		return dst, false
	}
	if c.pool {
		return dst, true
	}
	if r.GPUs == 0 {
		return c.placeCPU(r, dst, lowest), true
	}
	p.count(c, r)
	a := p.anchor(c, r)
	rack := c.RackOf(a)
	dst = c.takeFrom(a, min(p.node[a], r.GPUs), r, dst)
	for n := int(c.node0[rack]); n < int(c.node0[rack+1]) && len(dst) < r.GPUs; n++ {
		if n != a {
			dst = c.takeFrom(n, min(p.node[n], r.GPUs-len(dst)), r, dst)
		}
	}
	for n := 0; len(dst) < r.GPUs; n++ {
		if c.RackOf(n) != rack {
			dst = c.takeFrom(n, min(p.node[n], r.GPUs-len(dst)), r, dst)
		}
	}
	return dst, true
}

// count fills in the usable GPUs by node and rack.
func (p *closest) count(c *Cluster, r *Request) {
	if len(p.node) != len(c.rackOf) || len(p.rack) != c.Racks() {
		p.node, p.rack = make([]int, len(c.rackOf)), make([]int, c.Racks())
		together(&p.node, &p.rack)
	}
	clear(p.rack)
	for n, k := range c.rackOf {
		room := c.Room(n, r)
		p.node[n] = room
		p.rack[k] += room
	}
}

// anchor returns a node with at least one usable GPU. The caller has checked that there is one.
func (p *closest) anchor(c *Cluster, r *Request) int {
	switch p.variant {
	case 'a':
		for n, k := range p.node {
			if k > 0 {
				return n
			}
		}
	case 'b':
		if r.GPUs > c.maxNode {
			return p.freest(c, p.most())
		}
		few := p.fewest()
		if r.GPUs == 1 {
			return p.freest(c, few)
		}
		if n := p.tightest(c, few, r.GPUs); n >= 0 {
			return n
		}
		most := p.most()
		if n := p.tightest(c, most, r.GPUs); n >= 0 {
			return n
		}
		return p.freest(c, most)
	}
	return p.freest(c, p.most())
}

// most returns the rack with most usable GPUs.
func (p *closest) most() int {
	best := 0
	for k, n := range p.rack {
		if n > p.rack[best] {
			best = k
		}
	}
	return best
}

// fewest returns the rack with the fewest usable GPUs, of those that have any.
func (p *closest) fewest() int {
	best := -1
	for k, n := range p.rack {
		if n > 0 && (best < 0 || n < p.rack[best]) {
			best = k
		}
	}
	return best
}

// freest returns the node of rack with most usable GPUs.
func (p *closest) freest(c *Cluster, rack int) int {
	best := int(c.node0[rack])
	for n := best; n < int(c.node0[rack+1]); n++ {
		if p.node[n] > p.node[best] {
			best = n
		}
	}
	return best
}

// tightest returns the node of rack with the fewest usable GPUs that holds n of them, -1 if there is none.
func (p *closest) tightest(c *Cluster, rack, n int) int {
	best := -1
	for k := int(c.node0[rack]); k < int(c.node0[rack+1]); k++ {
		if p.node[k] >= n && (best < 0 || p.node[k] < p.node[best]) {
			best = k
		}
	}
	return best
}
