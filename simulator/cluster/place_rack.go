package cluster

// rack keeps a gang within one node, else within one rack, else within few racks, and places every gang that fits.
//
// One node: the one with the fewest usable GPUs that holds the gang; ties go to the rack with the fewest usable GPUs.
// One rack: the one with the fewest usable GPUs that holds the gang, and in it the nodes that best-fit chooses.
// Otherwise: everything in the rack with most usable GPUs, and so on until the rest fits one rack. All other ties go
// to the lowest number.
type rack struct {
	rooms rooms
	racks []int32 // usable GPUs by rack
}

func (*rack) Name() string { return "rack" }

func (p *rack) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
	dst = dst[:0]
	if !c.Fits(r) {
		return dst, false
	}
	if c.pool {
		return dst, true
	}
	if r.GPUs == 0 {
		return c.placeCPU(r, dst, fullest), true
	}
	room := p.rooms.count(c, r)
	if len(p.racks) != c.Racks() {
		p.racks = make([]int32, c.Racks())
	}
	clear(p.racks)
	for n, k := range room {
		p.racks[c.rackOf[n]] += k
	}
	one := -1
	for n, k := range room {
		if int(k) < r.GPUs {
			continue
		}
		if one < 0 || k < room[one] || k == room[one] && p.racks[c.rackOf[n]] < p.racks[c.rackOf[one]] {
			one = n
		}
	}
	if one >= 0 {
		return c.takeFullest(one, r.GPUs, r, dst), true
	}
	for {
		need := r.GPUs - len(dst)
		k := tightest(p.racks, need)
		if k >= 0 {
			return p.rooms.spread(c, r, dst, need, int(c.node0[k]), int(c.node0[k+1]), 1), true
		}
		k = freest(p.racks)
		dst = p.rooms.spread(c, r, dst, int(p.racks[k]), int(c.node0[k]), int(c.node0[k+1]), 1)
		p.racks[k] = 0
	}
}
