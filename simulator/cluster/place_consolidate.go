package cluster

// consolidate keeps a gang together, and refuses it rather than spread it out.
//
// A gang that the largest node could hold when idle gets one node: the first with room (consolidate-first), or the one
// with the fewest usable GPUs that suffice (consolidate-best). A larger gang gets wholly idle nodes, lowest number
// first, and one node with the remainder: the first with room (consolidate-first) or the one with most
// (consolidate-best). If that is impossible, the gang has to wait.
//
// consolidate-first is "yarn" of Tiresias' simulator (Gu et al., NSDI 2019), which does the same within one switch at
// a time and reserves cores and memory by its own rule. consolidate-best is "consolidate" of the simulators of Helios
// (Hu et al., SC 2021) and Lucid (Hu et al., ASPLOS 2023). They sort the nodes by free GPUs, most first, and the
// remainder goes to the next of them, so it opens an idle node while there is one.
//
// Both were written for equal nodes. If nodes differ, the largest idle ones that the gang fills go first, lowest
// number on ties, until a single node has room for the rest; so an idle cluster places every gang that it can hold.
// "Largest" is among the nodes that the gang may use (of its types and virtual cluster), by the number of members for
// which an idle node has cores and memory. A gang that says how many GPUs it takes on each node (Request.Each) is never
// refused.
type consolidate struct {
	best  bool
	rooms rooms
}

func (p *consolidate) place(c *Cluster, r *Request, dst []GPU) []GPU {
	room := p.rooms.count(c, r)
	if r.Chunks() {
		return p.chunks(c, r, dst)
	}
	if r.GPUs <= c.largest(r) {
		n := first(room, r.GPUs)
		if p.best {
			n = tightest(room, r.GPUs)
		}
		if n < 0 {
			return dst
		}
		return c.takeFullest(n, r.GPUs, r, dst)
	}
	for {
		need := r.GPUs - len(dst)
		n := first(room, need)
		if p.best && n >= 0 {
			n = freest(room)
		}
		if n >= 0 {
			return c.takeFullest(n, need, r, dst)
		}
		if n = c.largestIdle(room, r); n < 0 {
			return dst[:0]
		}
		dst = c.takeFrom(n, int(room[n]), r, dst)
		room[n] = 0
	}
}

// chunks places a gang that asks for a part of its GPUs on each of several nodes: it is as consolidated as it asks to be
// on any nodes with room, the first ones or those with the fewest free GPUs.
func (p *consolidate) chunks(c *Cluster, r *Request, dst []GPU) []GPU {
	if p.best {
		return p.rooms.spread(c, r, dst, r.GPUs, 0, len(p.rooms), 1)
	}
	for n := 0; len(dst) < r.GPUs; n++ {
		dst = c.takeFrom(n, int(p.rooms[n]), r, dst)
	}
	return dst
}

// largest returns how many members of the gang the largest node could hold when idle.
func (c *Cluster) largest(r *Request) int {
	if r.plain() {
		return c.maxNode
	}
	most := 0
	for n := range c.rackOf {
		most = max(most, c.roomIdle(n, r))
	}
	return most
}

// largestIdle returns the wholly idle node with most room, lowest number on ties, -1 if there is none.
func (c *Cluster) largestIdle(room []int32, r *Request) int {
	best := -1
	for n, k := range room {
		if k == 0 || best >= 0 && k <= room[best] || c.nodeFree[n] < c.gpu0[n+1]-c.gpu0[n] {
			continue
		}
		if int(k) == c.roomIdle(n, r) {
			best = n
		}
	}
	return best
}
