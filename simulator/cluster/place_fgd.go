package cluster

import (
	"math"
	"slices"
)

// FGD is fragmentation gradient descent (Weng et al., "Beware of fragmentation: scheduling GPU-sharing workloads with
// fragmentation gradient descent", USENIX ATC 2023): a job goes where it adds least to the expected fragmentation.
//
// A node's fragments for a class of requests are its free thousandths that the class cannot use. These are all of them
// if the node lacks cores or GPUs for the class or has another type, or if the class has no GPUs; otherwise those of
// GPUs with less left than the class wants of one. F(node) is the sum over the classes, weighted by how often each is
// requested. Of the nodes that hold the gang (and of the GPUs, for a share), the one with the least F(after) −
// F(before) takes it. Ties go to the lowest number; the authors' scheduler rounds to 100 grades and draws among the
// best. F is kept in whole numbers, so that equal nodes compare as equal.
//
// As in the paper, memory decides where a gang fits but is not part of F. All classes count, not only those that make
// up 95 % of the requests. The paper has no gangs that exceed a node; here such a gang takes all that the nodes with
// most room have until the rest fits one node, which is then chosen by F; the chunks of a gang with Request.Each are
// chosen by F one by one.
//
// If no classes are given, they are learned from the requests placed so far; they are recounted whenever the number of
// requests has doubled. Only then do placements depend on earlier ones; see Reset.
type FGD struct {
	given   bool
	table   classTable
	learned learner
	rooms   rooms

	// What was last seen of the cluster, by node or GPU, and when it last changed.
	free    []int32
	cpu     []int64
	frag    []int64 // current F
	changed []uint64
	time    uint64

	kinds []kind
	index map[kindKey]int
	next  int // the kind to evict when there are too many

	left, after []int32 // scratch: free thousandths of a node's GPUs
}

// kindKey is what F(after) depends on besides the node.
type kindKey struct {
	gpus, milli int
	types       uint64
	vc          int32
	cpu         int64
	each        int
}

// kind caches the gradients of one kind of request.
type kind struct {
	key   kindKey
	delta []int64 // F(after) − F(before) by node as of seen; impossible if it does not fit
	seen  uint64
}

const (
	impossible = math.MaxInt64
	// Bound on the number of cached gradients, nodes × kinds.
	memory = 1 << 22
)

// NewFGD returns the rule for requests distributed as classes (see Classes); nil means learn them.
func NewFGD(classes []Class) *FGD {
	p := &FGD{index: map[kindKey]int{}}
	p.SetClasses(classes)
	return p
}

// SetClasses sets the distribution of requests; nil means learn it from now on.
func (p *FGD) SetClasses(classes []Class) {
	p.given = len(classes) > 0
	p.learned.reset()
	p.table.build(classes)
	p.forget()
}

// Given reports whether the distribution of requests was given, so that p learns nothing.
func (p *FGD) Given() bool { return p.given }

// Reset forgets what was learned, so that a run does not depend on the one before.
func (p *FGD) Reset() {
	if !p.given {
		p.SetClasses(nil)
	}
}

// Name implements Placement.
func (*FGD) Name() string { return "fgd" }

// Place implements Placement.
func (p *FGD) Place(c *Cluster, r *Request, dst []GPU) ([]GPU, bool) {
	dst = dst[:0]
	if !c.Fits(r) {
		return dst, false
	}
	if c.pool {
		return dst, true
	}
	p.look(c)
	n := p.descend(c, r)
	if n >= 0 {
		dst = p.take(c, n, r, dst)
	} else {
		dst = p.spread(c, r, dst)
	}
	if !p.given && p.learned.add(r) {
		p.table.build(p.learned.classes)
		p.forget()
	}
	return dst, true
}

// look records the nodes that have changed.
func (p *FGD) look(c *Cluster) {
	if len(p.free) != len(c.gpuFree) || len(p.cpu) != len(c.freeCPU) {
		p.free, p.cpu = make([]int32, len(c.gpuFree)), make([]int64, len(c.freeCPU))
		p.frag, p.changed = make([]int64, len(p.cpu)), make([]uint64, len(p.cpu))
		p.kinds, p.next = nil, 0
		clear(p.index)
		p.forget()
	}
	p.time++
	for g, f := range c.gpuFree {
		if f != p.free[g] {
			p.free[g] = f
			p.changed[c.nodeOf[g]] = p.time
		}
	}
	for n, f := range c.freeCPU {
		if f != p.cpu[n] {
			p.cpu[n] = f
			p.changed[n] = p.time
		}
		if p.changed[n] == p.time {
			p.sort(c, n)
			p.frag[n] = p.table.fragments(c, n, p.left, f)
		}
	}
}

// forget invalidates everything known about nodes.
func (p *FGD) forget() {
	for g := range p.free {
		p.free[g] = -1
	}
	for i := range p.kinds {
		p.kinds[i].seen = 0
	}
}

// sort fills left with the free thousandths of node's GPUs, in increasing order, without GPUs that have none.
func (p *FGD) sort(c *Cluster, node int) {
	p.left = p.left[:0]
	for _, f := range c.gpuFree[c.gpu0[node]:c.gpu0[node+1]] {
		if f > 0 {
			p.left = append(p.left, f)
		}
	}
	slices.Sort(p.left)
}

// descend returns the node that takes the whole gang, -1 if none has room for it.
func (p *FGD) descend(c *Cluster, r *Request) int {
	k := p.kind(r)
	best, least := -1, int64(impossible)
	for n := range k.delta {
		if p.changed[n] > k.seen {
			k.delta[n] = p.gradient(c, n, r)
		}
		// Free memory, and whether the node is up, may have changed without a change in free and cpu.
		if k.delta[n] < least && c.Room(n, r) >= max(1, r.GPUs) {
			best, least = n, k.delta[n]
		}
	}
	k.seen = p.time
	return best
}

// kind returns the cached gradients of requests like r.
func (p *FGD) kind(r *Request) *kind {
	key := kindKey{r.GPUs, r.Milli, r.Types, r.VC, r.CPUMilli, r.Each}
	i, ok := p.index[key]
	if !ok {
		if i = len(p.kinds); i > 0 && (i+1)*len(p.cpu) > memory {
			i = p.next % len(p.kinds)
			p.next++
			delete(p.index, p.kinds[i].key)
			p.kinds[i].key, p.kinds[i].seen = key, 0
		} else {
			p.kinds = append(p.kinds, kind{key: key, delta: make([]int64, len(p.cpu))})
		}
		p.index[key] = i
	}
	return &p.kinds[i]
}

// gradient returns F(after) − F(before) of the gang r on node, or impossible if the gang does not fit; it ignores
// memory.
func (p *FGD) gradient(c *Cluster, node int, r *Request) int64 {
	cpu := p.cpu[node]
	if !c.admits(node, r.Types, r.VC) || r.CPUMilli > 0 && cpu/r.CPUMilli < int64(max(1, r.GPUs)) {
		return impossible
	}
	if cpu != math.MaxInt64 { // limited only if not MaxInt64
		cpu -= r.CPUMilli * int64(max(1, r.GPUs))
	}
	p.sort(c, node)
	at, _ := slices.BinarySearch(p.left, int32(r.Milli)) // the first GPU that suffices
	if r.GPUs > len(p.left)-at {
		return impossible
	}
	if r.GPUs != 1 || r.Milli == 1000 {
		return p.table.fragments(c, node, p.afterGang(c, node, r), cpu) - p.frag[node]
	}
	least := int64(impossible)
	for i := at; i < len(p.left); i++ {
		if i > at && p.left[i] == p.left[i-1] {
			continue
		}
		least = min(least, p.table.fragments(c, node, p.afterShare(i, r.Milli), cpu))
	}
	return least - p.frag[node]
}

// afterShare returns left with milli less at i.
func (p *FGD) afterShare(i, milli int) []int32 {
	rest := p.left[i] - int32(milli)
	p.after = append(p.after[:0], p.left...)
	for ; i > 0 && p.after[i-1] > rest; i-- {
		p.after[i] = p.after[i-1]
	}
	p.after[i] = rest
	if rest == 0 {
		return p.after[1:]
	}
	return p.after
}

// afterGang returns left after the gang takes the first GPUs of node that suffice.
func (p *FGD) afterGang(c *Cluster, node int, r *Request) []int32 {
	p.after = p.after[:0]
	need := r.GPUs
	for _, f := range c.gpuFree[c.gpu0[node]:c.gpu0[node+1]] {
		if need > 0 && int(f) >= r.Milli {
			f -= int32(r.Milli)
			need--
		}
		if f > 0 {
			p.after = append(p.after, f)
		}
	}
	slices.Sort(p.after)
	return p.after
}

// take appends the GPUs of node that the gang gets.
func (p *FGD) take(c *Cluster, node int, r *Request, dst []GPU) []GPU {
	if r.GPUs == 0 {
		return append(dst, Slot(node))
	}
	if r.GPUs > 1 || r.Milli == 1000 {
		return c.takeFrom(node, r.GPUs, r, dst)
	}
	cpu := p.cpu[node]
	if cpu != math.MaxInt64 {
		cpu -= r.CPUMilli
	}
	p.sort(c, node)
	best, least := GPU(-1), int64(impossible)
	for g := c.gpu0[node]; g < c.gpu0[node+1]; g++ {
		if int(c.gpuFree[g]) < r.Milli {
			continue
		}
		i, _ := slices.BinarySearch(p.left, c.gpuFree[g])
		if f := p.table.fragments(c, node, p.afterShare(i, r.Milli), cpu); f < least {
			best, least = GPU(g), f
		}
	}
	return append(dst, best)
}

// spread places a gang that no single node holds.
func (p *FGD) spread(c *Cluster, r *Request, dst []GPU) []GPU {
	room := p.rooms.count(c, r)
	for {
		rest := *r
		rest.GPUs -= len(dst)
		if r.Chunks() {
			rest.GPUs = r.Each
		}
		best, least := -1, int64(impossible)
		for n, k := range room {
			if int(k) >= rest.GPUs {
				if d := p.gradient(c, n, &rest); d < least {
					best, least = n, d
				}
			}
		}
		if best >= 0 {
			if dst = p.take(c, best, &rest, dst); len(dst) == r.GPUs {
				return dst
			}
			room[best] = 0
			continue
		}
		n := freest(room)
		dst = c.takeFrom(n, int(room[n]), r, dst)
		room[n] = 0
	}
}
