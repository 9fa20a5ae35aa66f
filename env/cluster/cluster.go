package cluster

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"clustergym/traces"
)

// GPU is the dense number of a GPU: by rack, node and index within the node.
type GPU int32

// ErrNoCapacity is returned by Allocate when a GPU, core or byte that is asked for is not free.
var ErrNoCapacity = errors.New("cluster: not enough free capacity")

// Request is what a gang needs. Make it with Cluster.Request.
type Request struct {
	GPUs  int    // gang size; 0 = a job without GPUs, which takes cores and memory of one node
	Milli int    // share of each GPU, 1000 = whole
	Types uint64 // bit i: GPU type i will do; 0 = any
	VC    int32  // virtual cluster, by its place in Spec.VCs, from 1; 0 where the cluster has none
	// CPUMilli and MemBytes are per GPU of the gang, the job's total divided and rounded up; 0 where the
	// cluster or the job says nothing of them.
	CPUMilli, MemBytes int64
}

// Cluster is the free capacity of the hardware that a Spec describes. Not safe for concurrent use.
type Cluster struct {
	spec  Spec
	pool  bool
	total int // GPUs

	// The tree, which never changes.
	nodeOf   []int32 // by GPU
	gpu0     []int32 // by node, first GPU; one more at the end
	rackOf   []int32 // by node
	node0    []int32 // by rack, first node; one more at the end
	nodeType []uint8 // by node
	nodeCPU  []int64 // by node, milli; MaxInt64 = not limited
	nodeMem  []int64
	types    []string
	speed    []float64 // by type
	maxNode  int       // GPUs of the largest node
	limits   bool      // some node limits cores or memory
	oneSpeed bool      // every type has speed 1

	// What is free.
	gpuFree  []int32 // thousandths, by GPU
	nodeFree []int32 // wholly free GPUs, by node
	rackFree []int32 // wholly free GPUs, by rack
	free     int     // wholly free GPUs
	milli    int     // free thousandths in all
	freeCPU  []int64
	freeMem  []int64
	version  uint64 // grows with every change

	cost costTable
	// Scratch of Cost: marks of the nodes and racks seen, by epoch.
	seenNode, seenRack []uint32
	epoch              uint32
}

// New builds the cluster that spec describes, all of it free.
func New(spec Spec) (*Cluster, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	c := &Cluster{spec: spec, oneSpeed: true}
	if spec.Pool > 0 {
		c.pool, c.total, c.maxNode = true, spec.Pool, spec.Pool
		c.types, c.speed = []string{""}, []float64{1}
		c.Reset()
		return c, nil
	}
	for _, r := range spec.Racks {
		for range r.Count.N() {
			c.node0 = append(c.node0, int32(len(c.rackOf)))
			for _, n := range r.Nodes {
				for range n.Count.N() {
					c.addNode(n)
				}
			}
		}
	}
	c.node0 = append(c.node0, int32(len(c.rackOf)))
	c.gpu0 = append(c.gpu0, int32(c.total))
	c.gpuFree = make([]int32, c.total)
	c.nodeFree = make([]int32, c.Nodes())
	c.rackFree = make([]int32, c.Racks())
	c.freeCPU = make([]int64, c.Nodes())
	c.freeMem = make([]int64, c.Nodes())
	c.seenNode = make([]uint32, c.Nodes())
	c.seenRack = make([]uint32, c.Racks())
	c.Reset()
	return c, nil
}

func (c *Cluster) addNode(n NodeSpec) {
	node := int32(len(c.rackOf))
	c.rackOf = append(c.rackOf, int32(len(c.node0)-1))
	c.gpu0 = append(c.gpu0, int32(c.total))
	for range n.GPUs {
		c.nodeOf = append(c.nodeOf, node)
	}
	c.total += n.GPUs
	c.maxNode = max(c.maxNode, n.GPUs)
	t := slices.Index(c.types, n.GPUType)
	if t < 0 {
		t = len(c.types)
		c.types = append(c.types, n.GPUType)
		v, ok := c.spec.Speeds[n.GPUType]
		if !ok {
			v = 1
		}
		c.speed = append(c.speed, v)
		c.oneSpeed = c.oneSpeed && v == 1
	}
	c.nodeType = append(c.nodeType, uint8(t))
	cpu, mem := int64(math.MaxInt64), int64(math.MaxInt64)
	if n.CPUs > 0 {
		cpu, c.limits = int64(math.Round(n.CPUs*1000)), true
	}
	if n.MemGB > 0 {
		mem, c.limits = int64(n.MemGB*(1<<30)), true
	}
	c.nodeCPU = append(c.nodeCPU, cpu)
	c.nodeMem = append(c.nodeMem, mem)
}

// Reset frees everything.
func (c *Cluster) Reset() {
	c.free, c.milli = c.total, c.total*1000
	for g := range c.gpuFree {
		c.gpuFree[g] = 1000
	}
	for r := range c.rackFree {
		c.rackFree[r] = c.gpu0[c.node0[r+1]] - c.gpu0[c.node0[r]]
	}
	for n := range c.nodeFree {
		c.nodeFree[n] = c.gpu0[n+1] - c.gpu0[n]
	}
	copy(c.freeCPU, c.nodeCPU)
	copy(c.freeMem, c.nodeMem)
	c.version++
}

// Spec is what the cluster was built from.
func (c *Cluster) Spec() Spec { return c.spec }

// Pool says whether the cluster is a plain counter, whose GPUs have no identity: placements are empty lists.
func (c *Cluster) Pool() bool { return c.pool }

// GPUs is the number of GPUs.
func (c *Cluster) GPUs() int { return c.total }

// Nodes is the number of nodes; a counter's processors count as one each.
func (c *Cluster) Nodes() int {
	if c.pool {
		return c.total
	}
	return len(c.rackOf)
}

// Racks is the number of racks; a counter has one.
func (c *Cluster) Racks() int {
	if c.pool {
		return 1
	}
	return len(c.node0) - 1
}

// NodeGPUs is the range [from, to) of the GPUs of node.
func (c *Cluster) NodeGPUs(node int) (from, to GPU) { return GPU(c.gpu0[node]), GPU(c.gpu0[node+1]) }

// NodeOf is the node of g; not for counters.
func (c *Cluster) NodeOf(g GPU) int { return int(c.nodeOf[g]) }

// RackOf is the rack of node.
func (c *Cluster) RackOf(node int) int { return int(c.rackOf[node]) }

// MaxNode is the number of GPUs of the largest node.
func (c *Cluster) MaxNode() int { return c.maxNode }

// Free is the number of wholly free GPUs; of a counter, the free thousandths divided by 1000, rounded down.
func (c *Cluster) Free() int {
	if c.pool {
		return c.milli / 1000
	}
	return c.free
}

// FreeMilli is the free capacity in thousandths of a GPU.
func (c *Cluster) FreeMilli() int { return c.milli }

// GPUFree is what is free of g, in thousandths.
func (c *Cluster) GPUFree(g GPU) int { return int(c.gpuFree[g]) }

// NodeFree is the number of wholly free GPUs of node.
func (c *Cluster) NodeFree(node int) int { return int(c.nodeFree[node]) }

// Version changes whenever an allocation changes.
func (c *Cluster) Version() uint64 { return c.version }

// Types are the GPU types, in order of first appearance.
func (c *Cluster) Types() []string { return c.types }

// Speed is the speed of the slowest of gpus, 1 for an empty list.
func (c *Cluster) Speed(gpus []GPU) float64 {
	if c.oneSpeed || len(gpus) == 0 {
		return 1
	}
	v := math.Inf(1)
	for _, g := range gpus {
		v = min(v, c.speed[c.nodeType[c.nodeOf[g]]])
	}
	return v
}

// Request is what j needs of this cluster. ok is false when it can never fit, even on an empty cluster.
func (c *Cluster) Request(j *traces.Job) (r Request, ok bool) {
	r = Request{GPUs: j.GPUs, Milli: j.GPUMilli}
	if r.GPUs < 1 || r.Milli < 1 || r.Milli > 1000 || r.GPUs > c.total {
		return r, false
	}
	if c.pool {
		return r, true
	}
	if len(j.GPUTypes) > 0 {
		for i, t := range c.types {
			if slices.Contains(j.GPUTypes, t) {
				r.Types |= 1 << i
			}
		}
		if r.Types == 0 {
			return r, false
		}
	}
	if c.limits {
		r.CPUMilli = ceilDiv(max(0, j.CPUMilli), int64(r.GPUs))
		r.MemBytes = ceilDiv(max(0, j.MemBytes), int64(r.GPUs))
	}
	if r.plain() {
		return r, true
	}
	n := 0
	for node := range c.rackOf {
		n += c.limit(node, int(c.gpu0[node+1]-c.gpu0[node]), c.nodeCPU[node], c.nodeMem[node], &r)
	}
	return r, n >= r.GPUs
}

// ceilDiv is ⌈a/b⌉ for a of 0 or more and b above 0; it cannot overflow.
func ceilDiv(a, b int64) int64 {
	if a%b == 0 {
		return a / b
	}
	return a/b + 1
}

// plain requests are for whole GPUs of any type, without cores or memory.
func (r *Request) plain() bool {
	return r.Milli == 1000 && r.Types == 0 && r.CPUMilli == 0 && r.MemBytes == 0
}

// limit cuts room to what the node's type, cores and memory allow.
func (c *Cluster) limit(node, room int, cpu, mem int64, r *Request) int {
	if r.Types != 0 && r.Types>>c.nodeType[node]&1 == 0 {
		return 0
	}
	if r.CPUMilli > 0 {
		room = int(min(int64(room), cpu/r.CPUMilli))
	}
	if r.MemBytes > 0 {
		room = int(min(int64(room), mem/r.MemBytes))
	}
	return room
}

// Room is how many members of the gang could run on node now.
func (c *Cluster) Room(node int, r *Request) int {
	room := int(c.nodeFree[node])
	if r.plain() {
		return room
	}
	if r.Milli < 1000 {
		room = 0
		for _, f := range c.gpuFree[c.gpu0[node]:c.gpu0[node+1]] {
			if int(f) >= r.Milli {
				room++
			}
		}
	}
	return c.limit(node, room, c.freeCPU[node], c.freeMem[node], r)
}

// Fits says whether the whole gang could run now, wherever its GPUs lie.
func (c *Cluster) Fits(r *Request) bool {
	if c.pool {
		return c.milli >= r.GPUs*r.Milli
	}
	if r.plain() {
		return c.free >= r.GPUs
	}
	n := 0
	for node := range c.rackOf {
		if n += c.Room(node, r); n >= r.GPUs {
			return true
		}
	}
	return false
}

// Allocate takes gpus (distinct; empty on a counter) for the gang r. An error changes nothing.
func (c *Cluster) Allocate(r *Request, gpus []GPU) error {
	if c.pool {
		if len(gpus) != 0 {
			return fmt.Errorf("cluster: %d GPUs named on a counter, want none", len(gpus))
		}
		if need := r.GPUs * r.Milli; c.milli < need {
			return fmt.Errorf("%w: %d GPU thousandths asked, %d free", ErrNoCapacity, need, c.milli)
		}
		c.milli -= r.GPUs * r.Milli
		c.version++
		return nil
	}
	if len(gpus) != r.GPUs {
		return fmt.Errorf("cluster: gang of %d GPUs placed on %d", r.GPUs, len(gpus))
	}
	for i, g := range gpus {
		err := c.take(r, g)
		// A whole GPU is gone once it is taken; two members of a gang could still share one by halves.
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
	c.version++
	return nil
}

func (c *Cluster) take(r *Request, g GPU) error {
	if g < 0 || int(g) >= c.total {
		return fmt.Errorf("cluster: GPU %d does not exist, want 0 to %d", g, c.total-1)
	}
	node := c.nodeOf[g]
	f := c.gpuFree[g]
	switch {
	case int(f) < r.Milli:
		return fmt.Errorf("%w: GPU %d has %d thousandths free, %d asked", ErrNoCapacity, g, f, r.Milli)
	case r.Types != 0 && r.Types>>c.nodeType[node]&1 == 0:
		return fmt.Errorf("%w: GPU %d is of type %q", ErrNoCapacity, g, c.types[c.nodeType[node]])
	case c.freeCPU[node] < r.CPUMilli || c.freeMem[node] < r.MemBytes:
		return fmt.Errorf("%w: node %d has too few cores or too little memory", ErrNoCapacity, node)
	}
	if f == 1000 {
		c.nodeFree[node]--
		c.rackFree[c.rackOf[node]]--
		c.free--
	}
	c.gpuFree[g] = f - int32(r.Milli)
	c.milli -= r.Milli
	if c.limits {
		c.addLimits(node, -r.CPUMilli, -r.MemBytes)
	}
	return nil
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
	}
	c.milli += r.Milli
	if c.limits {
		c.addLimits(node, r.CPUMilli, r.MemBytes)
	}
}

// addLimits leaves "not limited" as it is.
func (c *Cluster) addLimits(node int32, cpu, mem int64) {
	if c.nodeCPU[node] != math.MaxInt64 {
		c.freeCPU[node] += cpu
	}
	if c.nodeMem[node] != math.MaxInt64 {
		c.freeMem[node] += mem
	}
}

// Release gives back what Allocate took for the same arguments. It panics when more is given back than there is.
func (c *Cluster) Release(r *Request, gpus []GPU) {
	if c.pool {
		if c.milli += r.GPUs * r.Milli; c.milli > c.total*1000 {
			panic(fmt.Sprintf("cluster: counter of %d GPUs has %d thousandths free", c.total, c.milli))
		}
	} else {
		for _, g := range gpus {
			c.give(r, g)
		}
	}
	c.version++
}

// CheckInvariants says what is wrong with the books, nil if nothing: every level's free capacity must be the
// sum of the level below and lie between nothing and everything.
func (c *Cluster) CheckInvariants() error {
	if c.milli < 0 || c.milli > c.total*1000 {
		return fmt.Errorf("cluster: %d of %d thousandths free", c.milli, c.total*1000)
	}
	if c.pool {
		return nil
	}
	free, milli := 0, 0
	for r := range c.Racks() {
		rack := int32(0)
		for n := c.node0[r]; n < c.node0[r+1]; n++ {
			node := int32(0)
			for g := c.gpu0[n]; g < c.gpu0[n+1]; g++ {
				f := c.gpuFree[g]
				if f < 0 || f > 1000 {
					return fmt.Errorf("cluster: GPU %d has %d thousandths free", g, f)
				}
				milli += int(f)
				if f == 1000 {
					node++
				}
			}
			if node != c.nodeFree[n] {
				return fmt.Errorf("cluster: node %d counts %d free GPUs, has %d", n, c.nodeFree[n], node)
			}
			if c.freeCPU[n] < 0 || c.freeCPU[n] > c.nodeCPU[n] || c.freeMem[n] < 0 || c.freeMem[n] > c.nodeMem[n] {
				return fmt.Errorf("cluster: node %d has %d milli-cores and %d bytes free", n, c.freeCPU[n], c.freeMem[n])
			}
			rack += node
		}
		if rack != c.rackFree[r] {
			return fmt.Errorf("cluster: rack %d counts %d free GPUs, has %d", r, c.rackFree[r], rack)
		}
		free += int(rack)
	}
	if free != c.free || milli != c.milli {
		return fmt.Errorf("cluster: counts %d free GPUs and %d thousandths, has %d and %d", c.free, c.milli, free, milli)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
