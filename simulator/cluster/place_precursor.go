package cluster

// Two rules that TopDRL's precursor (Deng et al., Canadian AI 2024; code: github.com/djjbxxz/Proximity-DRL) compares
// with, besides its own rule and random: its selectors FirstAvl and LoadBalance, generalised to any tree.

// firstAvailable takes the free GPUs with the lowest numbers, wherever they are. (first-fit instead looks first for a
// node that holds the whole gang.)
type firstAvailable struct{}

func (firstAvailable) Name() string { return "first-available" }

func (firstAvailable) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
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
	for n := 0; len(dst) < r.GPUs; n++ {
		dst = c.takeFrom(n, min(c.Room(n, r), r.GPUs-len(dst)), r, dst)
	}
	return dst, true
}

// loadBalance takes GPUs from the rack with most free ones, and in it from the node with most free ones, then from the
// next such node and rack until the gang is complete. Ties go to the lowest number.
type loadBalance struct {
	rooms rooms
	racks []int32 // usable GPUs by rack
}

func (*loadBalance) Name() string { return "load-balance" }

func (p *loadBalance) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
	dst = dst[:0]
	if !c.Fits(r) {
		return dst, false
	}
	if c.pool {
		return dst, true
	}
	if r.GPUs == 0 {
		return c.placeCPU(r, dst, emptiest), true
	}
	room := p.rooms.count(c, r)
	if len(p.racks) != c.Racks() {
		p.racks = make([]int32, c.Racks())
	}
	clear(p.racks)
	for n, k := range room {
		p.racks[c.rackOf[n]] += k
	}
	// The freest rack either holds what is still needed or gives all that it has; likewise for nodes in a rack.
	for len(dst) < r.GPUs {
		k := freest(p.racks)
		own := room[c.node0[k]:c.node0[k+1]]
		for p.racks[k] > 0 && len(dst) < r.GPUs {
			n := freest(own)
			take := min(int(own[n]), r.GPUs-len(dst))
			dst = c.takeFrom(int(c.node0[k])+n, take, r, dst)
			p.racks[k] -= own[n]
			own[n] = 0
		}
		p.racks[k] = 0
	}
	return dst, true
}
