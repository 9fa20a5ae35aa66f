package cluster

import "slices"

// optimal takes the free GPUs with the least tree cost (Cost). The gaps of all other rules are measured against it.
//
// The cost depends on the numbers of racks and nodes used. Within a rack the nodes with most room go first, so only
// the number of nodes of each rack is left to choose. That is a knapsack over the racks, solved exactly in at most
// racks × gang × nodes of a rack steps. If one node holds the gang, the one with the least room takes it. Otherwise
// ties use the racks with the lowest numbers, and the last node in a rack is the one with the least room that
// suffices.
type optimal struct {
	rooms rooms
	most  []int32 // room by node, sorted downwards within each rack
	cost  []int32 // [racks+1][need+1]: least cost, in quarters, of need GPUs on this rack and those after it
	nodes []int32 // [racks][need+1]: how many nodes of the rack attain it
}

func (p *optimal) place(c *Cluster, r *Request, dst []GPU) []GPU {
	room := p.rooms.count(c, r)
	if n := tightest(room, r.GPUs); n >= 0 {
		return c.takeFullest(n, r.GPUs, r, dst)
	}
	p.solve(c, room, r.GPUs)
	for k := 0; len(dst) < r.GPUs; k++ {
		need := r.GPUs - len(dst)
		sum := 0
		for _, m := range p.most[c.node0[k]:][:p.nodes[k*(r.GPUs+1)+need]] {
			sum += int(m)
		}
		if sum > 0 {
			dst = p.rooms.spread(c, r, dst, min(sum, need), int(c.node0[k]), int(c.node0[k+1]), 1)
		}
	}
	return dst
}

// solve fills cost and nodes for a gang of n.
func (p *optimal) solve(c *Cluster, room []int32, n int) {
	const (
		never = 1 << 29
		rackQ = rackWeight * 4 // in quarters: whole numbers, so that ties are exact
		nodeQ = nodeWeight * 4
	)
	racks, w := c.Racks(), n+1
	p.most = append(p.most[:0], room...)
	p.cost = slices.Grow(p.cost[:0], (racks+1)*w)[:(racks+1)*w]
	p.nodes = slices.Grow(p.nodes[:0], racks*w)[:racks*w]
	last := p.cost[racks*w:]
	for need := range last {
		last[need] = never
	}
	last[0] = 0
	for k := racks - 1; k >= 0; k-- {
		most := p.most[c.node0[k]:c.node0[k+1]]
		slices.SortFunc(most, func(a, b int32) int { return int(b - a) })
		after := p.cost[(k+1)*w:][:w]
		for need := range w {
			best, with, sum := after[need], 0, 0
			for m := 0; m < len(most) && most[m] > 0 && sum < need; m++ {
				sum += int(most[m])
				if v := rackQ + int32(m+1)*nodeQ + after[max(0, need-sum)]; v <= best {
					best, with = v, m+1
				}
			}
			p.cost[k*w+need], p.nodes[k*w+need] = best, int32(with)
		}
	}
}
