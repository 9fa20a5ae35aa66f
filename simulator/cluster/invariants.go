package cluster

import "fmt"

// CheckInvariants returns what is wrong with the books, or nil. Every level's free capacity must be the sum of the
// level below and between nothing and everything; nodes that are down have none; no quota is exceeded.
func (c *Cluster) CheckInvariants() error {
	if c.milli < 0 || c.milli > c.total*1000 {
		return fmt.Errorf("cluster: %d of %d thousandths free", c.milli, c.total*1000)
	}
	for i, used := range c.vcs.used {
		if used < 0 || used > c.vcs.quota[i] {
			return fmt.Errorf("cluster: virtual cluster %d holds %d thousandths, its quota is %d", i, used, c.vcs.quota[i])
		}
	}
	if c.pool {
		return nil
	}
	free, milli, down := 0, 0, 0
	domains := make([]int32, len(c.vcs.free))
	for r := range c.Racks() {
		rack := int32(0)
		for n := c.node0[r]; n < c.node0[r+1]; n++ {
			if err := c.checkNode(int(n)); err != nil {
				return err
			}
			for _, f := range c.gpuFree[c.gpu0[n]:c.gpu0[n+1]] {
				milli += int(f)
			}
			if c.down[n] {
				down += int(c.gpu0[n+1] - c.gpu0[n])
			}
			switch {
			case c.vcs.mask != nil:
				for d := 1; d < len(domains); d++ {
					if c.Serves(int(n), int32(d)) {
						domains[d] += c.nodeFree[n]
					}
				}
			case len(c.vcs.owner) > 0:
				domains[c.vcs.owner[n]] += c.nodeFree[n]
			}
			rack += c.nodeFree[n]
		}
		if rack != c.rackFree[r] {
			return fmt.Errorf("cluster: rack %d counts %d free GPUs, has %d", r, c.rackFree[r], rack)
		}
		free += int(rack)
	}
	if free != c.free || milli != c.milli || down != c.downGPUs {
		return fmt.Errorf("cluster: counts %d free GPUs, %d thousandths and %d GPUs down, has %d, %d and %d",
			c.free, c.milli, c.downGPUs, free, milli, down)
	}
	for d, n := range domains {
		if n != c.vcs.free[d] {
			return fmt.Errorf("cluster: the nodes of virtual cluster %d (0 = of none) count %d free GPUs, have %d", d,
				c.vcs.free[d], n)
		}
	}
	return c.checkBlocks()
}

// checkNode compares the books of node n with those of its GPUs.
func (c *Cluster) checkNode(n int) error {
	node := int32(0)
	for g := c.gpu0[n]; g < c.gpu0[n+1]; g++ {
		f := c.gpuFree[g]
		if f < 0 || f > 1000 || c.down[n] && f != 0 {
			return fmt.Errorf("cluster: GPU %d has %d thousandths free (node down: %v)", g, f, c.down[n])
		}
		if f == 1000 {
			node++
		}
	}
	if node != c.nodeFree[n] {
		return fmt.Errorf("cluster: node %d counts %d free GPUs, has %d", n, c.nodeFree[n], node)
	}
	if c.slots[n] < 0 || c.down[n] && c.slots[n] != 0 {
		return fmt.Errorf("cluster: node %d has %d jobs without GPUs (down: %v)", n, c.slots[n], c.down[n])
	}
	if c.down[n] {
		if c.freeCPU[n] != -1 || c.freeMem[n] != -1 {
			return fmt.Errorf("cluster: node %d is down with %d milli-cores and %d bytes free", n, c.freeCPU[n], c.freeMem[n])
		}
		return nil
	}
	if c.freeCPU[n] < 0 || c.freeCPU[n] > c.nodeCPU[n] || c.freeMem[n] < 0 || c.freeMem[n] > c.nodeMem[n] {
		return fmt.Errorf("cluster: node %d has %d milli-cores and %d bytes free", n, c.freeCPU[n], c.freeMem[n])
	}
	return nil
}

// checkBlocks recounts the blocks that are marked as up to date.
func (c *Cluster) checkBlocks() error {
	for i := range c.blocks {
		if was := c.blocks[i]; !was.stale {
			if c.refresh(i); c.blocks[i] != was {
				return fmt.Errorf("cluster: block %d says %+v, is %+v", i, was, c.blocks[i])
			}
		}
	}
	return nil
}
