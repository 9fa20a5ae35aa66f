package cluster

// byRack counts the usable GPUs of each node and of each rack.
type byRack struct {
	rooms rooms
	racks []int32
}

// count returns the usable GPUs by node, and sets racks.
func (p *byRack) count(c *Cluster, r *Request) []int32 {
	if nodes, racks := len(c.rackOf), c.Racks(); len(p.rooms) != nodes || len(p.racks) != racks {
		all := make([]int32, nodes+racks) // next to each other in memory; see together
		p.rooms, p.racks = all[:nodes:nodes], all[nodes:]
	}
	room, racks := p.rooms.count(c, r), p.racks
	clear(racks)
	for n, k := range c.rackOf {
		racks[k] += room[n]
	}
	return room
}

// of returns the usable GPUs of the nodes of rack.
func (p *byRack) of(c *Cluster, rack int) []int32 { return p.rooms[c.node0[rack]:c.node0[rack+1]] }

// rack keeps a gang within one node, else within one rack, else within few racks, and places every gang that fits.
//
// One node: the one with the fewest usable GPUs that holds the gang; ties go to the rack with the fewest usable GPUs.
// One rack: the one with the fewest usable GPUs that holds the gang, and in it the nodes that best-fit chooses.
// Otherwise: everything in the rack with most usable GPUs, and so on until the rest fits one rack. All other ties go
// to the lowest number.
type rack struct{ byRack }

func (p *rack) place(c *Cluster, r *Request, dst []GPU) []GPU {
	room, racks := p.count(c, r), p.racks
	one := -1
	for n, k := range room {
		if int(k) >= r.GPUs && (one < 0 || k < room[one] || k == room[one] && racks[c.rackOf[n]] < racks[c.rackOf[one]]) {
			one = n
		}
	}
	if one >= 0 {
		return c.takeFullest(one, r.GPUs, r, dst)
	}
	for {
		need := r.GPUs - len(dst)
		k := tightest(p.racks, need)
		if k >= 0 {
			return p.rooms.spread(c, r, dst, need, int(c.node0[k]), int(c.node0[k+1]), 1)
		}
		k = freest(p.racks)
		dst = p.rooms.spread(c, r, dst, int(p.racks[k]), int(c.node0[k]), int(c.node0[k+1]), 1)
		p.racks[k] = 0
	}
}

// Two rules that TopDRL's precursor (Deng et al., Canadian AI 2024; code: github.com/djjbxxz/Proximity-DRL) compares
// with, besides its own rule and random: its selectors FirstAvl and LoadBalance, generalised to any tree.

// firstAvailable takes the free GPUs with the lowest numbers, wherever they are. (first-fit instead looks first for a
// node that holds the whole gang.)
func firstAvailable(c *Cluster, r *Request, dst []GPU) []GPU {
	for n := 0; len(dst) < r.GPUs; n++ {
		dst = c.takeFrom(n, min(c.Room(n, r), r.GPUs-len(dst)), r, dst)
	}
	return dst
}

// loadBalance takes GPUs from the rack with most free ones, and in it from the node with most free ones, then from the
// next such node and rack until the gang is complete. Ties go to the lowest number.
type loadBalance struct{ byRack }

func (p *loadBalance) place(c *Cluster, r *Request, dst []GPU) []GPU {
	p.count(c, r)
	// The freest rack either holds what is still needed or gives all that it has; likewise for nodes in a rack.
	for len(dst) < r.GPUs {
		k := freest(p.racks)
		own := p.of(c, k)
		for p.racks[k] > 0 && len(dst) < r.GPUs {
			n := freest(own)
			take := min(int(own[n]), r.GPUs-len(dst))
			dst = c.takeFrom(int(c.node0[k])+n, take, r, dst)
			p.racks[k] -= own[n]
			own[n] = 0
		}
		p.racks[k] = 0
	}
	return dst
}
