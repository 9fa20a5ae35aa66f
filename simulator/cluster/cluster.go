package cluster

import (
	"fmt"
	"math"
	"slices"
)

// GPU is the dense number of a GPU: by rack, node and index within the node. A negative number is the Slot of a job
// without GPUs.
type GPU int32

// Slot returns the only entry of the placement of a job without GPUs that runs on node.
func Slot(node int) GPU { return GPU(-1 - node) }

// Cluster is the hardware that a Spec describes, and how much of it is free. It is not safe for concurrent use.
type Cluster struct {
	// What most calls read comes first, so that it is on few cache lines.
	pool     bool
	oneSpeed bool   // every type has speed 1
	limits   bool   // some node limits cores or memory
	epoch    uint32 // of seenNode and seenRack
	total    int    // GPUs
	free     int    // wholly free GPUs
	milli    int    // total free thousandths
	version  uint64 // increases with every change
	maxNode  int    // GPUs of the largest node
	cost     costTable

	// Free capacity. A node that is down has 0 free thousandths, and -1 cores and bytes.
	gpuFree  []int32 // thousandths, by GPU
	nodeFree []int32 // wholly free GPUs, by node
	rackFree []int32 // wholly free GPUs, by rack
	blocks   []block // of the nodes, in order; see block

	// The tree, which never changes.
	nodeOf []int32 // by GPU
	rackOf []int32 // by node
	gpu0   []int32 // by node, first GPU; one more at the end
	node0  []int32 // by rack, first node; one more at the end

	// Scratch of Cost: the nodes and racks seen, marked by epoch.
	seenNode, seenRack []uint32

	members []int32 // scratch of Shaped, by node: 0 between calls

	vcs      vcs
	nodeType []uint8 // by node
	nodeCPU  []int64 // by node, thousandths of a core; MaxInt64 = unlimited
	nodeMem  []int64
	freeCPU  []int64
	freeMem  []int64
	slots    []int32 // jobs without GPUs, by node
	down     []bool  // by node
	downGPUs int
	types    []string
	untyped  uint64    // bit of type "" if there are GPUs without a type
	speed    []float64 // by type
	wires    wires
	part     bool  // it has the nodes of one domain only; see Part
	domain   int32 // which, if it is a part
	outside  int   // GPUs of the other nodes

	empty []block // blocks of the empty cluster
	spec  Spec
}

// New builds the cluster that spec describes, with everything free.
func New(spec Spec) (*Cluster, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	c := &Cluster{spec: spec, oneSpeed: true}
	if spec.Pool > 0 {
		c.pool, c.total, c.maxNode = true, spec.Pool, spec.Pool
		c.types, c.speed = []string{""}, []float64{1}
		c.addVCs()
		c.Reset()
		return c, nil
	}
	for i, r := range spec.Racks {
		for range r.Count.N() {
			c.node0 = append(c.node0, int32(len(c.rackOf)))
			c.wires.rack = append(c.wires.rack, int32(i))
			for k, n := range r.Nodes {
				for range n.Count.N() {
					c.addNode(n)
					c.wires.node = append(c.wires.node, int32(len(c.wires.kinds)+k))
				}
			}
		}
		c.addWires(r)
	}
	c.node0 = append(c.node0, int32(len(c.rackOf)))
	c.gpu0 = append(c.gpu0, int32(c.total))
	c.gpuFree = make([]int32, c.total)
	c.nodeFree = make([]int32, c.Nodes())
	c.rackFree = make([]int32, c.Racks())
	c.freeCPU = make([]int64, c.Nodes())
	c.freeMem = make([]int64, c.Nodes())
	c.slots = make([]int32, c.Nodes())
	c.down = make([]bool, c.Nodes())
	c.seenNode = make([]uint32, c.Nodes())
	c.seenRack = make([]uint32, c.Racks())
	c.addVCs()
	c.addBlocks()
	together(&c.gpuFree, &c.nodeFree, &c.rackFree, &c.nodeOf, &c.rackOf, &c.gpu0, &c.node0)
	together(&c.seenNode, &c.seenRack)
	c.Reset()
	c.keepEmpty()
	return c, nil
}

// together moves lists, none of which grows any more, next to each other in memory. They are used together, and where
// many small clusters are used in turn, the fewer cache lines and pages they are on, the better.
func together[T any](lists ...*[]T) {
	all := slices.Concat(deref(lists)...)
	for _, l := range lists {
		n := len(*l)
		*l, all = all[:n:n], all[n:]
	}
}

func deref[T any](lists []*[]T) [][]T {
	out := make([][]T, len(lists))
	for i, l := range lists {
		out[i] = *l
	}
	return out
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
	if n.GPUs > 0 && n.GPUType == "" && !c.spec.Literal {
		c.untyped = 1 << t
	}
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

// Reset frees everything and brings every node up.
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
	clear(c.slots)
	clear(c.down)
	c.downGPUs = 0
	c.resetVCs()
	for b := range c.blocks {
		c.blocks[b].stale = true
	}
	if c.part {
		c.leave()
	}
	c.version++
}

// CopyFrom copies the free state of src to c: what is allocated, and which nodes are down. Both must have been built
// from the same Spec; src must be whole, or a part like c. It does not allocate, so a copy can be used for planning.
func (c *Cluster) CopyFrom(src *Cluster) {
	if c.pool != src.pool || c.total != src.total || len(c.rackOf) != len(src.rackOf) ||
		len(c.vcs.used) != len(src.vcs.used) {
		panic(fmt.Sprintf("cluster: a copy of %d GPUs on %d nodes was asked of %d on %d", src.total, src.Nodes(), c.total,
			c.Nodes()))
	}
	if src.part && (!c.part || c.domain != src.domain) {
		panic(fmt.Sprintf("cluster: a copy of part %d was asked of another part, or of the whole cluster", src.domain))
	}
	if c.part {
		c.copyPart(src)
		return
	}
	copy(c.gpuFree, src.gpuFree)
	copy(c.nodeFree, src.nodeFree)
	copy(c.rackFree, src.rackFree)
	c.free, c.milli = src.free, src.milli
	copy(c.freeCPU, src.freeCPU)
	copy(c.freeMem, src.freeMem)
	copy(c.slots, src.slots)
	copy(c.down, src.down)
	c.downGPUs = src.downGPUs
	copy(c.vcs.used, src.vcs.used)
	copy(c.vcs.free, src.vcs.free)
	copy(c.blocks, src.blocks)
	c.version++
}

// Spec returns the Spec that the cluster was built from.
func (c *Cluster) Spec() Spec { return c.spec }

// Pool reports whether the cluster is a plain counter, whose GPUs have no identity. Placements on it are empty lists.
func (c *Cluster) Pool() bool { return c.pool }

// GPUs returns the number of GPUs.
func (c *Cluster) GPUs() int { return c.total }

// Nodes returns the number of nodes; each processor of a counter counts as one.
func (c *Cluster) Nodes() int {
	if c.pool {
		return c.total
	}
	return len(c.rackOf)
}

// Racks returns the number of racks; a counter has one.
func (c *Cluster) Racks() int {
	if c.pool {
		return 1
	}
	return len(c.node0) - 1
}

// NodeGPUs returns the range [from, to) of the GPUs of node.
func (c *Cluster) NodeGPUs(node int) (from, to GPU) { return GPU(c.gpu0[node]), GPU(c.gpu0[node+1]) }

// NodeOf returns the node of g, which may be a Slot. It must not be called on a counter.
func (c *Cluster) NodeOf(g GPU) int {
	if g < 0 {
		return int(-1 - g)
	}
	return int(c.nodeOf[g])
}

// RackOf returns the rack of node.
func (c *Cluster) RackOf(node int) int { return int(c.rackOf[node]) }

// RackNodes returns the range [from, to) of the nodes of rack.
func (c *Cluster) RackNodes(rack int) (from, to int) { return int(c.node0[rack]), int(c.node0[rack+1]) }

// MaxNode returns the number of GPUs of the largest node.
func (c *Cluster) MaxNode() int { return c.maxNode }

// Free returns the number of wholly free GPUs on nodes that are up; on a counter, the free thousandths divided by
// 1000, rounded down.
func (c *Cluster) Free() int {
	if c.pool {
		return c.milli / 1000
	}
	return c.free
}

// FreeMilli returns the free capacity of nodes that are up, in thousandths of a GPU.
func (c *Cluster) FreeMilli() int { return c.milli }

// GPUFree returns the free thousandths of g; 0 while its node is down.
func (c *Cluster) GPUFree(g GPU) int { return int(c.gpuFree[g]) }

// NodeFree returns the number of wholly free GPUs of node; 0 while it is down.
func (c *Cluster) NodeFree(node int) int { return int(c.nodeFree[node]) }

// Version returns a number that changes whenever an allocation changes, or a node goes down or up.
func (c *Cluster) Version() uint64 { return c.version }

// Types returns the GPU types, in order of first appearance.
func (c *Cluster) Types() []string { return c.types }

// TypeOf returns the GPU type of node, an index into Types.
func (c *Cluster) TypeOf(node int) int { return int(c.nodeType[node]) }

// Speed returns the speed of the slowest of gpus; 1 for an empty list and for a job without GPUs.
func (c *Cluster) Speed(gpus []GPU) float64 {
	if c.oneSpeed || len(gpus) == 0 || gpus[0] < 0 {
		return 1
	}
	v := math.Inf(1)
	for _, g := range gpus {
		v = min(v, c.speed[c.nodeType[c.nodeOf[g]]])
	}
	return v
}

// SpeedOf is Speed for a job with its own speeds: own[t] is its speed on GPUs of type t (an index into Types), 0 = the
// cluster's speed. On a counter, and for a job without GPUs, it is 1.
func (c *Cluster) SpeedOf(gpus []GPU, own []float64) float64 {
	if len(gpus) == 0 || gpus[0] < 0 {
		return 1
	}
	v := math.Inf(1)
	for _, g := range gpus {
		t := c.nodeType[c.nodeOf[g]]
		s := c.speed[t]
		if int(t) < len(own) && own[t] > 0 {
			s = own[t]
		}
		v = min(v, s)
	}
	return v
}
