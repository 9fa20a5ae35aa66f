package cluster

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrNoCapacity is returned by Allocate when a GPU, core or byte in the request is not free.
var ErrNoCapacity = errors.New("cluster: not enough free capacity")

// Allocate takes gpus for the gang r. gpus must be distinct; it is one Slot for a job without GPUs, and empty on a
// counter. An error changes nothing.
func (c *Cluster) Allocate(r *Request, gpus []GPU) error {
	if r.VC != 0 && r.GPUs*r.Milli > c.VCRoom(r.VC) {
		return fmt.Errorf("%w: %d GPU thousandths asked, the quota of virtual cluster %q has %d left",
			ErrNoCapacity, r.GPUs*r.Milli, c.vcs.names[r.VC-1], c.VCRoom(r.VC))
	}
	if c.pool {
		if len(gpus) != 0 {
			return fmt.Errorf("cluster: %d GPUs named on a counter, want none", len(gpus))
		}
		if need := r.GPUs * r.Milli; c.milli < need {
			return fmt.Errorf("%w: %d GPU thousandths asked, %d free", ErrNoCapacity, need, c.milli)
		}
		c.milli -= r.GPUs * r.Milli
		if r.VC != 0 {
			c.addUsed(r.VC, r.GPUs*r.Milli)
		}
		c.version++
		return nil
	}
	if r.GPUs == 0 {
		return c.takeSlot(r, gpus)
	}
	if len(gpus) != r.GPUs {
		return fmt.Errorf("cluster: gang of %d GPUs placed on %d", r.GPUs, len(gpus))
	}
	if r.plain() && len(c.vcs.owner) == 0 {
		return c.takeWhole(r, gpus)
	}
	for i, g := range gpus {
		err := c.take(r, g)
		// A whole GPU cannot be taken twice, but two members of a gang could share one if each needs at most half.
		if err == nil && r.Milli <= 500 && slices.Contains(gpus[:i], g) {
			c.give(r, g)
			err = fmt.Errorf("cluster: GPU %d is named twice for one gang", g)
		}
		if err != nil {
			for k := i - 1; k >= 0; k-- {
				c.give(r, gpus[k])
			}
			return err
		}
	}
	if r.VC != 0 {
		c.addUsed(r.VC, r.GPUs*r.Milli)
	}
	c.version++
	return nil
}

// takeWhole is the fast path for whole GPUs of any type and node, by far the most frequent gangs.
func (c *Cluster) takeWhole(r *Request, gpus []GPU) error {
	for i, g := range gpus {
		if g < 0 || int(g) >= c.total || c.gpuFree[g] != 1000 {
			err := c.take(r, g) // returns the reason
			c.giveWhole(gpus[:i])
			c.free, c.milli = c.free-i, c.milli-1000*i // giveWhole has added them, but they were not subtracted yet
			return err
		}
		node := c.nodeOf[g]
		c.gpuFree[g] = 0
		c.nodeFree[node]--
		c.rackFree[c.rackOf[node]]--
		c.blocks[node>>blockShift].stale = true
	}
	c.free -= len(gpus)
	c.milli -= 1000 * len(gpus)
	c.version++
	return nil
}

func (c *Cluster) giveWhole(gpus []GPU) {
	for _, g := range gpus {
		if c.gpuFree[g] != 0 {
			panic(fmt.Sprintf("cluster: GPU %d released twice: %d thousandths free", g, c.gpuFree[g]+1000))
		}
		node := c.nodeOf[g]
		c.gpuFree[g] = 1000
		c.nodeFree[node]++
		c.rackFree[c.rackOf[node]]++
		c.blocks[node>>blockShift].stale = true
	}
	c.free += len(gpus)
	c.milli += 1000 * len(gpus)
}

func (c *Cluster) take(r *Request, g GPU) error {
	if g < 0 || int(g) >= c.total {
		return fmt.Errorf("cluster: GPU %d does not exist, want 0 to %d", g, c.total-1)
	}
	node := c.nodeOf[g]
	f := c.gpuFree[g]
	switch {
	case int(f) < r.Milli && c.down[node]:
		return fmt.Errorf("%w: node %d of GPU %d is down", ErrNoCapacity, node, g)
	case int(f) < r.Milli:
		return fmt.Errorf("%w: GPU %d has %d thousandths free, %d asked", ErrNoCapacity, g, f, r.Milli)
	case r.Types != 0 && r.Types>>c.nodeType[node]&1 == 0:
		return fmt.Errorf("%w: GPU %d is of type %q", ErrNoCapacity, g, c.types[c.nodeType[node]])
	case c.freeCPU[node] < r.CPUMilli || c.freeMem[node] < r.MemBytes:
		return fmt.Errorf("%w: node %d has too few cores or too little memory", ErrNoCapacity, node)
	case !c.Serves(int(node), r.VC):
		return c.notIts(r, node)
	}
	if f == 1000 {
		c.nodeFree[node]--
		c.rackFree[c.rackOf[node]]--
		c.free--
		if len(c.vcs.owner) > 0 {
			c.addFree(int(node), -1)
		}
	}
	c.gpuFree[g] = f - int32(r.Milli)
	c.blocks[node>>blockShift].stale = true
	c.milli -= r.Milli
	if c.limits {
		c.addLimits(node, -r.CPUMilli, -r.MemBytes)
	}
	return nil
}

// notIts returns the error that node is not for jobs of r's virtual cluster.
func (c *Cluster) notIts(r *Request, node int32) error {
	return fmt.Errorf("%w: node %d is not for jobs of virtual cluster %q", ErrNoCapacity, node, c.vcs.names[r.VC-1])
}

func (c *Cluster) give(r *Request, g GPU) {
	node := c.nodeOf[g]
	c.gpuFree[g] += int32(r.Milli)
	if c.gpuFree[g] > 1000 {
		panic(fmt.Sprintf("cluster: GPU %d released twice: %d thousandths free", g, c.gpuFree[g]))
	}
	if c.gpuFree[g] == 1000 {
		c.nodeFree[node]++
		c.rackFree[c.rackOf[node]]++
		c.free++
		if len(c.vcs.owner) > 0 {
			c.addFree(int(node), 1)
		}
	}
	c.blocks[node>>blockShift].stale = true
	c.milli += r.Milli
	if c.limits {
		c.addLimits(node, r.CPUMilli, r.MemBytes)
	}
}

// addLimits adds to node's free cores and memory, and leaves unlimited ones unlimited.
func (c *Cluster) addLimits(node int32, cpu, mem int64) {
	if c.nodeCPU[node] != math.MaxInt64 {
		c.freeCPU[node] += cpu
	}
	if c.nodeMem[node] != math.MaxInt64 {
		c.freeMem[node] += mem
	}
}

// takeSlot allocates cores and memory to a job without GPUs.
func (c *Cluster) takeSlot(r *Request, gpus []GPU) error {
	if len(gpus) != 1 || gpus[0] >= 0 {
		return fmt.Errorf("cluster: a job without GPUs placed on %d GPUs, want the slot of one node", len(gpus))
	}
	node := int32(c.NodeOf(gpus[0]))
	switch {
	case int(node) >= len(c.rackOf):
		return fmt.Errorf("cluster: node %d does not exist, want 0 to %d", node, len(c.rackOf)-1)
	case c.down[node]:
		return fmt.Errorf("%w: node %d is down", ErrNoCapacity, node)
	case c.freeCPU[node] < r.CPUMilli || c.freeMem[node] < r.MemBytes:
		return fmt.Errorf("%w: node %d has too few cores or too little memory", ErrNoCapacity, node)
	case !c.Serves(int(node), r.VC):
		return c.notIts(r, node)
	}
	c.addSlot(r, node, 1)
	c.version++
	return nil
}

func (c *Cluster) addSlot(r *Request, node, n int32) {
	c.slots[node] += n
	c.addLimits(node, -int64(n)*r.CPUMilli, -int64(n)*r.MemBytes)
	c.blocks[node>>blockShift].stale = true
}

// Release returns what Allocate took for the same arguments. It panics if more is returned than was taken.
func (c *Cluster) Release(r *Request, gpus []GPU) {
	switch {
	case c.pool:
		if c.milli += r.GPUs * r.Milli; c.milli > c.total*1000 {
			panic(fmt.Sprintf("cluster: counter of %d GPUs has %d thousandths free", c.total, c.milli))
		}
	case r.GPUs == 0:
		node := int32(c.NodeOf(gpus[0]))
		if c.addSlot(r, node, -1); c.slots[node] < 0 {
			panic(fmt.Sprintf("cluster: node %d gives back a job without GPUs that it did not have", node))
		}
	case r.plain() && len(c.vcs.owner) == 0:
		c.giveWhole(gpus)
	default:
		for _, g := range gpus {
			c.give(r, g)
		}
	}
	if r.VC != 0 {
		c.addUsed(r.VC, -r.GPUs*r.Milli)
	}
	c.version++
}
