package cluster

import "fmt"

// Part returns a cluster that has only the nodes of one domain: those that virtual cluster vc owns or, with vc = 0,
// those without an owner. Nodes, GPUs, types and requests keep their numbers; the other nodes are down for good.
// Everything else is free in it. CopyFrom takes over the state of a part like it, or of the whole cluster as far as it
// concerns the part.
func (c *Cluster) Part(vc int32) *Cluster {
	if c.pool || len(c.vcs.node0) == 0 || c.vcs.mask != nil || vc < 0 || int(vc) >= len(c.vcs.node0) {
		panic(fmt.Sprintf("cluster: part %d of a cluster with %d virtual clusters", vc, len(c.vcs.names)))
	}
	p := c.rebuilt()
	p.part, p.domain = true, vc
	from, to := p.span()
	p.maxNode = 0
	for n := from; n < to; n++ {
		p.maxNode = max(p.maxNode, int(p.gpu0[n+1]-p.gpu0[n]))
	}
	p.outside = p.total - int(p.gpu0[to]-p.gpu0[from])
	p.Reset()
	return p
}

// Twin returns a cluster that is built like c, with everything free.
func (c *Cluster) Twin() *Cluster {
	if c.part {
		return c.Part(c.domain)
	}
	return c.rebuilt()
}

func (c *Cluster) rebuilt() *Cluster {
	k, err := New(c.spec)
	if err != nil {
		panic(fmt.Sprintf("cluster: a cluster cannot be built twice: %v", err))
	}
	return k
}

// Owner returns the virtual cluster that owns all nodes of c, a part; 0 if c is whole or the part has no owner.
func (c *Cluster) Owner() int32 { return c.domain }

// Own returns the number of GPUs of the nodes that belong to c: all of them unless c is a part.
func (c *Cluster) Own() int { return c.total - c.outside }

// Has reports whether node belongs to c: every node does unless c is a part.
func (c *Cluster) Has(node int) bool { return !c.part || c.vcs.owner[node] == c.domain }

// span returns the range [from, to) of the nodes of a part.
func (c *Cluster) span() (from, to int) {
	return int(c.vcs.node0[c.domain]), int(c.vcs.node1[c.domain])
}

// leave takes the nodes that are not c's out of service, all of which are idle.
func (c *Cluster) leave() {
	for n := range c.rackOf {
		if !c.Has(n) {
			if err := c.SetDown(n, true); err != nil {
				panic(err)
			}
		}
	}
}

// copyPart is CopyFrom for a part, from the whole cluster or from a part like it.
func (c *Cluster) copyPart(src *Cluster) {
	from, to := c.span()
	g0, g1 := c.gpu0[from], c.gpu0[to]
	copy(c.gpuFree[g0:g1], src.gpuFree[g0:g1])
	copy(c.nodeFree[from:to], src.nodeFree[from:to])
	copy(c.freeCPU[from:to], src.freeCPU[from:to])
	copy(c.freeMem[from:to], src.freeMem[from:to])
	copy(c.slots[from:to], src.slots[from:to])
	copy(c.down[from:to], src.down[from:to])
	copy(c.vcs.used, src.vcs.used)
	c.free = int(src.vcs.free[c.domain])
	c.vcs.free[c.domain] = src.vcs.free[c.domain]
	c.milli, c.downGPUs = src.milli, src.downGPUs
	if src.part {
		if from < to {
			r0, r1 := c.rackOf[from], c.rackOf[to-1]+1
			copy(c.rackFree[r0:r1], src.rackFree[r0:r1])
		}
	} else {
		c.sumPart(from, to)
	}
	if from < to {
		for b := from >> blockShift; b <= (to-1)>>blockShift; b++ {
			c.blocks[b].stale = true
		}
	}
	c.version++
}

// sumPart counts what is free on the nodes [from, to), and what is down.
func (c *Cluster) sumPart(from, to int) {
	c.milli, c.downGPUs = 0, c.outside
	for _, f := range c.gpuFree[c.gpu0[from]:c.gpu0[to]] {
		c.milli += int(f)
	}
	for n := from; n < to; n++ {
		r := c.rackOf[n]
		if n == from || r != c.rackOf[n-1] {
			c.rackFree[r] = 0
		}
		c.rackFree[r] += c.nodeFree[n]
		if c.down[n] {
			c.downGPUs += int(c.gpu0[n+1] - c.gpu0[n])
		}
	}
}
