package cluster

import "fmt"

// SetDown takes node out of service, or brings it back. A node must be idle to go down. If the node already is in the
// requested state, SetDown does nothing and returns nil.
func (c *Cluster) SetDown(node int, down bool) error {
	switch {
	case c.pool:
		return fmt.Errorf("cluster: node %d cannot go down: a counter has no nodes", node)
	case node < 0 || node >= len(c.rackOf):
		return fmt.Errorf("cluster: node %d does not exist, want 0 to %d", node, len(c.rackOf)-1)
	case c.down[node] == down:
		return nil
	case !c.Has(node):
		if !down {
			return fmt.Errorf("cluster: node %d cannot come up: it belongs to another part of the cluster", node)
		}
	}
	n := c.gpu0[node+1] - c.gpu0[node]
	if down {
		if c.nodeFree[node] != n || c.slots[node] > 0 {
			return fmt.Errorf(
				"cluster: node %d cannot go down: jobs run on it (%d of %d GPUs are wholly free, %d jobs have no GPU)",
				node, c.nodeFree[node], n, c.slots[node])
		}
		c.freeCPU[node], c.freeMem[node] = -1, -1
	} else {
		n = -n
		c.freeCPU[node], c.freeMem[node] = c.nodeCPU[node], c.nodeMem[node]
	}
	share := int32(1000)
	if down {
		share = 0
	}
	for g := c.gpu0[node]; g < c.gpu0[node+1]; g++ {
		c.gpuFree[g] = share
	}
	c.down[node] = down
	c.downGPUs += int(n)
	c.milli -= 1000 * int(n)
	c.nodeFree[node] -= n
	c.rackFree[c.rackOf[node]] -= n
	c.free -= int(n)
	if len(c.vcs.owner) > 0 {
		c.addFree(node, -n)
	}
	c.blocks[node>>blockShift].stale = true
	c.version++
	return nil
}

// Down reports whether node is out of service.
func (c *Cluster) Down(node int) bool { return !c.pool && c.down[node] }

// DownGPUs returns the number of GPUs on nodes that are down.
func (c *Cluster) DownGPUs() int { return c.downGPUs }
