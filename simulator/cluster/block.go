package cluster

import "slices"

// block is the maximum that any node of 1<<blockShift neighbours has free, so that Fits can skip nodes without room;
// for a cluster without any room it looks only at the blocks. Allocating only marks a block as stale; it is updated
// when it is read.
type block struct {
	types    uint64 // of its GPUs; never changes
	cpu, mem int64  // most free on one node
	share    int32  // most free thousandths of one GPU
	stale    bool
}

const blockShift = 5

func (c *Cluster) addBlocks() {
	c.blocks = make([]block, (len(c.rackOf)+1<<blockShift-1)>>blockShift)
	for n, t := range c.nodeType {
		if c.gpu0[n+1] > c.gpu0[n] {
			c.blocks[n>>blockShift].types |= 1 << t
		}
	}
}

// keepEmpty saves a copy of the blocks as they are now, all of them up to date.
func (c *Cluster) keepEmpty() {
	for i := range c.blocks {
		c.refresh(i)
	}
	c.empty = slices.Clone(c.blocks)
}

// may reports whether some node of the block may have room for a member of r.
func (b *block) may(r *Request) bool {
	return int(b.share) >= r.Milli && b.cpu >= r.CPUMilli && b.mem >= r.MemBytes && (r.Types == 0 || r.Types&b.types != 0)
}

func (c *Cluster) refresh(i int) {
	b := &c.blocks[i]
	b.cpu, b.mem, b.share, b.stale = -1, -1, 0, false
	from, to := i<<blockShift, min((i+1)<<blockShift, len(c.rackOf))
	for n := from; n < to; n++ {
		b.cpu, b.mem = max(b.cpu, c.freeCPU[n]), max(b.mem, c.freeMem[n])
		if c.nodeFree[n] > 0 {
			b.share = 1000
		}
	}
	if b.share == 0 {
		for _, f := range c.gpuFree[c.gpu0[from]:c.gpu0[to]] {
			b.share = max(b.share, f)
		}
	}
}
