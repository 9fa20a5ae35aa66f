package cluster

import (
	"slices"
	"strings"

	"clustergym/traces"
)

// Request is what a gang needs. Create it with Cluster.Request.
type Request struct {
	GPUs  int    // gang size; 0 = a job without GPUs, which takes cores and memory of one node
	Milli int    // share of each GPU, 1000 = whole; 0 for a job without GPUs
	Types uint64 // bit i: GPU type i is acceptable; 0 = any
	VC    int32  // virtual cluster: its position in Spec.VCs, from 1; 0 if the cluster has none
	// Apart says that its virtual cluster names its hosts and may not use all GPUs, so that those which are free do not
	// tell whether the gang fits.
	Apart bool
	// Each is how many GPUs the gang takes on each of its nodes, which are GPUs/Each different ones; 0 = any number on
	// any nodes. A gang that asks for one GPU, or for GPUs that its nodes do not share equally, has 0.
	Each int
	// CPUMilli and MemBytes are per GPU of the gang: the job's total divided by its GPUs and rounded up. For a job
	// without GPUs they are the total. They are 0 if the cluster or the job states none.
	CPUMilli, MemBytes int64
}

// Request returns what j needs of this cluster. ok is false if j can never fit, even on an empty cluster with every
// node up: it is too large, wants something that no node has, or belongs to no virtual cluster of a divided cluster.
//
// A job that names types of GPU takes GPUs of these types, in whatever letters, and those of nodes that name none. A job
// without GPUs runs on one node of any type. On a counter, which has no cores, it always fits.
func (c *Cluster) Request(j *traces.Job) (r Request, ok bool) {
	r = Request{GPUs: j.GPUs, Milli: j.GPUMilli}
	if r.GPUs == 0 {
		r.Milli = 0
	} else if r.GPUs < 0 || r.Milli < 1 || r.Milli > 1000 || r.GPUs > c.total {
		return r, false
	}
	if c.vcs.index != nil {
		if r.VC = c.vcs.index[j.VC]; r.VC == 0 || r.GPUs*r.Milli > c.vcs.quota[r.VC] {
			return r, false
		}
	}
	if c.pool {
		return r, true
	}
	r.Apart = r.VC != 0 && c.vcs.apart>>(r.VC-1)&1 != 0
	if len(j.GPUTypes) > 0 && r.GPUs > 0 {
		if r.Types = c.kinds(j.GPUTypes); r.Types == 0 {
			return r, false
		}
	}
	if c.limits {
		n := int64(max(1, r.GPUs))
		r.CPUMilli = ceilDiv(max(0, j.CPUMilli), n)
		r.MemBytes = ceilDiv(max(0, j.MemBytes), n)
	}
	if !c.spec.Literal {
		r.Each = each(j)
	}
	return r, c.everFits(&r)
}

// kinds returns which of the cluster's types a job takes that names types: those that it names, in any mixture of small
// and capital letters, and GPUs without a type, which may be of any.
func (c *Cluster) kinds(named []string) (types uint64) {
	for i, t := range c.types {
		if slices.Contains(named, t) || !c.spec.Literal && (1<<i&c.untyped != 0 ||
			slices.ContainsFunc(named, func(n string) bool { return strings.EqualFold(n, t) })) {
			types |= 1 << i
		}
	}
	return types
}

// each returns how many GPUs j takes on each of its nodes, 0 = any number. An elastic job, whose size changes, takes
// what it gets; so does one whose GPUs are no multiple of its nodes, as sums over components of a job can be.
func each(j *traces.Job) int {
	if j.Nodes < 1 || j.GPUs < 2 || j.GPUs%j.Nodes != 0 || j.MinGPUs > 0 || j.MaxGPUs > 0 {
		return 0
	}
	return j.GPUs / j.Nodes
}

// everFits reports whether r fits the empty cluster.
func (c *Cluster) everFits(r *Request) bool {
	if r.plain() {
		return r.GPUs <= c.total
	}
	left := max(1, r.GPUs)
	from, to := c.VCNodes(r.VC)
	for i := from >> blockShift; i<<blockShift < to; i++ {
		if !c.empty[i].may(r) {
			continue
		}
		for n := max(from, i<<blockShift); n < min(to, (i+1)<<blockShift); n++ {
			room := 1 // for a job without GPUs
			if !c.Serves(n, r.VC) {
				room = 0
			} else if r.GPUs > 0 {
				room = r.whole(c.limit(n, int(c.gpu0[n+1]-c.gpu0[n]), c.nodeCPU[n], c.nodeMem[n], r))
			} else if c.nodeCPU[n] < r.CPUMilli || c.nodeMem[n] < r.MemBytes {
				room = 0
			}
			if left -= room; left <= 0 {
				return true
			}
		}
	}
	return false
}

// Resized returns the gang r with n GPUs instead; the share, cores and memory per GPU stay the same. If n is no multiple
// of r.Each, it may be on any nodes.
func (c *Cluster) Resized(r Request, n int) Request {
	if r.GPUs = n; r.Each > 0 && n%r.Each != 0 {
		r.Each = 0
	}
	return r
}

// ceilDiv returns ⌈a/b⌉ for a ≥ 0 and b > 0; it cannot overflow.
func ceilDiv(a, b int64) int64 {
	if a%b == 0 {
		return a / b
	}
	return a/b + 1
}

// plain reports whether r is for whole GPUs of any type and node, without cores or memory.
func (r *Request) plain() bool {
	return r.Milli == 1000 && r.Types == 0 && r.VC == 0 && r.CPUMilli == 0 && r.MemBytes == 0 && r.Each == 0
}

// Chunks reports whether r takes its GPUs in equal parts on several nodes.
func (r *Request) Chunks() bool { return r.Each > 0 && r.Each < r.GPUs }

// OneNode returns how many of the gang's GPUs are on one node if it is on as few nodes as it may be.
func (r *Request) OneNode() int {
	if r.Each > 0 {
		return r.Each
	}
	return r.GPUs
}

// whole returns how many of room, the members of the gang for which a node has room, the gang may use there: all or
// none of Each. If the gang is on one node, which has room for it, the rest of the room stays visible, so that
// placements can tell a full node from an empty one.
func (r *Request) whole(room int) int {
	switch {
	case r.Each == 0:
		return room
	case room < r.Each:
		return 0
	case r.Each == r.GPUs:
		return room
	}
	return r.Each
}

// Plain reports whether r is for whole GPUs of any type and node, without cores or memory, of a cluster without virtual
// clusters. It fits wherever enough GPUs are free.
func (r *Request) Plain() bool { return r.plain() }

// limit reduces room to what the node's type, cores and memory allow.
func (c *Cluster) limit(node, room int, cpu, mem int64, r *Request) int {
	if room == 0 || r.Types != 0 && r.Types>>c.nodeType[node]&1 == 0 {
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

// Shaped reports whether gpus, which may name no GPU of the cluster, are Each on every node that they are on. It must not
// be called on a counter.
func (c *Cluster) Shaped(r *Request, gpus []GPU) bool {
	if len(c.members) == 0 {
		c.members = make([]int32, len(c.rackOf))
	}
	ok := true
	for _, g := range gpus {
		if g < 0 || int(g) >= c.total {
			return true // it cannot be allocated
		}
	}
	for _, g := range gpus {
		c.members[c.nodeOf[g]]++
	}
	for _, g := range gpus {
		k := &c.members[c.nodeOf[g]]
		ok = ok && (*k == 0 || *k == int32(r.Each))
		*k = 0
	}
	return ok
}

// Room returns how many members of the gang could run on node now; for a job without GPUs, 1 or 0. A node that is down
// or belongs to another virtual cluster has no room, and no node has more than the quota still allows. A node with too
// little room for Each members has none, and a gang on several nodes finds no more than Each on any.
func (c *Cluster) Room(node int, r *Request) int {
	room := int(c.nodeFree[node])
	if r.plain() {
		return room
	}
	if r.VC != 0 {
		if !c.Serves(node, r.VC) {
			return 0
		}
		if r.GPUs > 0 {
			room = min(room, c.VCRoom(r.VC)/r.Milli)
		}
	}
	if r.Milli < 1000 {
		if r.GPUs == 0 {
			return c.slotRoom(node, r)
		}
		room = c.shareRoom(node, r)
	}
	return r.whole(c.limit(node, room, c.freeCPU[node], c.freeMem[node], r))
}

// shareRoom counts the GPUs of node with enough left for a share of r.
func (c *Cluster) shareRoom(node int, r *Request) int {
	room := 0
	for _, f := range c.gpuFree[c.gpu0[node]:c.gpu0[node+1]] {
		if int(f) >= r.Milli {
			room++
		}
	}
	if r.VC != 0 {
		room = min(room, c.VCRoom(r.VC)/r.Milli)
	}
	return room
}

// slotRoom returns 1 if a job without GPUs could run on node now, else 0.
func (c *Cluster) slotRoom(node int, r *Request) int {
	if c.freeCPU[node] >= r.CPUMilli && c.freeMem[node] >= r.MemBytes {
		return 1
	}
	return 0
}

// Fits reports whether the whole gang could run now, wherever its GPUs are.
func (c *Cluster) Fits(r *Request) bool {
	if c.pool {
		need := r.GPUs * r.Milli
		return c.milli >= need && (r.VC == 0 || need <= c.VCRoom(r.VC))
	}
	if r.plain() {
		return c.free >= r.GPUs
	}
	return c.fits(r)
}

// fits looks for room block by block; see block.
func (c *Cluster) fits(r *Request) bool {
	from, to := 0, len(c.rackOf)
	if r.VC != 0 {
		if r.GPUs*r.Milli > c.VCRoom(r.VC) {
			return false
		}
		from, to = c.VCNodes(r.VC)
	}
	if r.Milli == 1000 {
		free := c.free
		if r.VC != 0 {
			free = int(c.vcs.free[c.vcs.domain[r.VC]])
		}
		if free < r.GPUs || r.Types == 0 && r.CPUMilli == 0 && r.MemBytes == 0 && r.Each == 0 {
			return free >= r.GPUs
		}
	}
	left := max(1, r.GPUs)
	for i := from >> blockShift; i<<blockShift < to; i++ {
		b := &c.blocks[i]
		if b.stale {
			c.refresh(i)
		}
		if !b.may(r) {
			continue
		}
		for n := max(from, i<<blockShift); n < min(to, (i+1)<<blockShift); n++ {
			if left -= c.Room(n, r); left <= 0 {
				return true
			}
		}
	}
	return false
}
