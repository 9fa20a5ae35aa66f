package cluster

import "fmt"

// Left returns the cores, in thousandths, and the bytes of memory that are free on node: math.MaxInt64 for what the
// node does not limit, -1 while it is down. It must not be called on a counter.
func (c *Cluster) Left(node int) (cpu, mem int64) { return c.freeCPU[node], c.freeMem[node] }

// SetFree says what is free on node, which must be up: thousandths of each of its GPUs, cores and memory (see Left). It
// is for a copy that shows a time for which something is planned: what jobs hold on such a copy cannot be given back.
func (c *Cluster) SetFree(node int, gpus []int64, cpu, mem int64) {
	g0, g1 := c.gpu0[node], c.gpu0[node+1]
	if c.down[node] || len(gpus) != int(g1-g0) {
		panic(fmt.Sprintf("cluster: what is free of %d GPUs was set on node %d, which has %d (down: %v)", len(gpus), node,
			g1-g0, c.down[node]))
	}
	whole := int32(0)
	for i, f := range gpus {
		g := g0 + int32(i)
		c.milli += int(f) - int(c.gpuFree[g])
		c.gpuFree[g] = int32(f)
		if f == 1000 {
			whole++
		}
	}
	more := whole - c.nodeFree[node]
	c.nodeFree[node] = whole
	c.rackFree[c.rackOf[node]] += more
	c.free += int(more)
	if len(c.vcs.owner) > 0 {
		c.addFree(node, more)
	}
	c.freeCPU[node], c.freeMem[node] = cpu, mem
	c.blocks[node>>blockShift].stale = true
	c.version++
}

// LiftQuotas makes all quotas as large as if no job held anything: for a copy on which the caller watches over them.
func (c *Cluster) LiftQuotas() { clear(c.vcs.used) }
