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
	byRack
	variant byte
}

func (p *closest) place(c *Cluster, r *Request, dst []GPU) []GPU {
	room := p.count(c, r)
	a := p.anchor(c, r)
	rack := c.RackOf(a)
	dst = c.takeFrom(a, min(int(room[a]), r.GPUs), r, dst)
	for n := int(c.node0[rack]); n < int(c.node0[rack+1]) && len(dst) < r.GPUs; n++ {
		if n != a {
			dst = c.takeFrom(n, min(int(room[n]), r.GPUs-len(dst)), r, dst)
		}
	}
	for n := 0; len(dst) < r.GPUs; n++ {
		if c.RackOf(n) != rack {
			dst = c.takeFrom(n, min(int(room[n]), r.GPUs-len(dst)), r, dst)
		}
	}
	return dst
}

// anchor returns a node with at least one usable GPU. The caller has checked that there is one.
func (p *closest) anchor(c *Cluster, r *Request) int {
	switch {
	case p.variant == 'a':
		return first(p.rooms, 1)
	case p.variant == 'c' || r.GPUs > c.maxNode:
		return p.freestOf(c, freest(p.racks))
	}
	few := tightest(p.racks, 1)
	if r.GPUs == 1 {
		return p.freestOf(c, few)
	}
	most := freest(p.racks)
	for _, k := range [...]int{few, most} {
		if n := tightest(p.of(c, k), r.GPUs); n >= 0 {
			return int(c.node0[k]) + n
		}
	}
	return p.freestOf(c, most)
}

// freestOf returns the node of rack with most usable GPUs.
func (p *closest) freestOf(c *Cluster, rack int) int {
	return int(c.node0[rack]) + freest(p.of(c, rack))
}
