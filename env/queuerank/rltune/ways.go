package rltune

import (
	"cmp"
	"slices"
)

// Part is a share of a gang: GPUs on the node at a position of the pool.
type Part struct{ Node, GPUs int32 }

// Finder finds ways. Nodes are grouped by their free GPUs. From each group that a way uses it takes the first nodes,
// and all of their free GPUs; only the nodes of the last group, that of the fewest free GPUs, share what remains,
// earlier ones not less than later ones. Tier 1 is the ways over as few nodes as the gang needs on empty ones; tier 2
// is those over one node more that do not leave more nodes partly free than before. Not safe for concurrent use.
type Finder struct {
	by     []int // scratch of fits: nodes by free GPUs
	block  Block
	from   int32   // position of the block's first node
	free   []int32 // of the pool
	groups [][]int32
	parts  []Part
	sorted []Part
	tier2  bool

	visit func(f *Finder) bool // called with the way in sorted; returns whether to go on

	// of the searches below
	tally, most int
	best        [4]way
	n           int
	first       []Part
	have        bool
	sum, square int64 // used GPUs of the nodes with a free GPU, and their squares
	nodes       int64
}

// way is a candidate with what it changes.
type way struct {
	parts    []Part
	partial  int   // change of the number of partial nodes
	waste    int   // change of the used GPUs on partial nodes
	variance int64 // change of the variance of utilisation, times nodes² × GPUs of a node²
	ok       bool
}

// start prepares the search over block i of p.
func (f *Finder) start(p *Pool, i int, free []int32) {
	f.from = 0
	for k := range i {
		f.from += int32(p.Blocks[k].Nodes)
	}
	f.block, f.free = p.Blocks[i], free
	for len(f.groups) <= f.block.Each {
		f.groups = append(f.groups, nil)
	}
	for k := range f.groups {
		f.groups[k] = slices.Grow(f.groups[k][:0], f.block.Nodes)
	}
	f.parts, f.sorted = slices.Grow(f.parts[:0], f.block.Nodes), slices.Grow(f.sorted[:0], f.block.Nodes)
	f.sum, f.square, f.nodes = 0, 0, 0
	for k := range f.block.Nodes {
		n := f.from + int32(k)
		if left := free[n]; left > 0 {
			f.groups[left] = append(f.groups[left], n)
			used := int64(f.block.Each) - int64(left)
			f.sum += used
			f.square += used * used
			f.nodes++
		}
	}
}

// takes reports whether the block takes jobs of so many GPUs.
func (b *Block) takes(gpus int) bool { return b.Most == 0 || gpus <= b.Most }

// needs returns how many empty nodes a gang needs.
func (b *Block) needs(gpus int) int { return (gpus + b.Each - 1) / b.Each }

// Fits reports whether the gang has a way of tier 1.
func (f *Finder) Fits(p *Pool, free []int32, gpus int) bool {
	from := 0
	for i := range p.Blocks {
		b := &p.Blocks[i]
		if b.takes(gpus) && f.fits(b, free[from:from+b.Nodes], gpus) {
			return true
		}
		from += b.Nodes
	}
	return false
}

// fits reports whether the freest nodes suffice. Then there is a way: the nodes before the last group hold less than
// the gang, and what remains is at least a GPU for each of the others.
func (f *Finder) fits(b *Block, free []int32, gpus int) bool {
	m := b.needs(gpus)
	if m == 1 {
		for _, left := range free {
			if int(left) >= gpus {
				return true
			}
		}
		return false
	}
	f.by = slices.Grow(f.by[:0], b.Each+1)[:b.Each+1]
	clear(f.by)
	for _, left := range free {
		f.by[left]++
	}
	for left := b.Each; left > 0 && m > 0; left-- {
		k := min(f.by[left], m)
		gpus -= k * left
		m -= k
	}
	return gpus <= 0
}

// each calls visit for every way over m nodes of the block.
func (f *Finder) each(gpus, m int) bool {
	if m > f.block.Nodes {
		return true
	}
	f.parts = f.parts[:0]
	return f.group(f.block.Each, gpus, m)
}

// group goes through the nodes to take from the groups of up to left free GPUs. It returns whether to go on.
func (f *Finder) group(left, gpus, m int) bool {
	for ; left > 0; left-- {
		if m*left < gpus {
			return true // what follows has too few
		}
		nodes := f.groups[left]
		if len(nodes) == 0 {
			continue
		}
		at := len(f.parts)
		for k := 1; k < m && k <= len(nodes) && gpus-k*left >= m-k; k++ {
			f.parts = f.parts[:at]
			for _, n := range nodes[:k] {
				f.parts = append(f.parts, Part{n, int32(left)})
			}
			if !f.group(left-1, gpus-k*left, m-k) {
				return false
			}
		}
		f.parts = f.parts[:at]
		if m <= len(nodes) && !f.split(nodes[:m], gpus, left) {
			return false
		}
		f.parts = f.parts[:at]
	}
	return true
}

// split divides the rest over the nodes of the last group, in every way that does not ascend.
func (f *Finder) split(nodes []int32, gpus, most int) bool {
	if len(nodes) == 0 {
		return f.found()
	}
	at := len(f.parts)
	for k := min(most, gpus-(len(nodes)-1)); k > 0 && k*len(nodes) >= gpus; k-- {
		f.parts = append(f.parts[:at], Part{nodes[0], int32(k)})
		if !f.split(nodes[1:], gpus-k, k) {
			return false
		}
	}
	f.parts = f.parts[:at]
	return true
}

// found looks at the way in parts.
func (f *Finder) found() bool {
	if f.tier2 && f.partial() > 0 {
		return true
	}
	f.sorted = append(f.sorted[:0], f.parts...)
	for i := 1; i < len(f.sorted); i++ {
		for k := i; k > 0 && f.sorted[k].Node < f.sorted[k-1].Node; k-- {
			f.sorted[k], f.sorted[k-1] = f.sorted[k-1], f.sorted[k]
		}
	}
	return f.visit(f)
}

// partial returns how many more nodes are partial with the way in parts.
func (f *Finder) partial() int {
	d := 0
	for _, p := range f.parts {
		left := f.free[p.Node]
		if int(left) < f.block.Each {
			d--
		}
		if left > p.GPUs {
			d++
		}
	}
	return d
}

// compare orders ways by nodes and GPUs, as the program compares their lists.
func compare(a, b []Part) int {
	return slices.CompareFunc(a, b,
		func(x, y Part) int { return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.GPUs, y.GPUs)) })
}

// First appends the way of tier 1 that base policies take, the first of all by nodes and GPUs, to dst[:0].
func (f *Finder) First(p *Pool, free []int32, gpus int, dst []Part) ([]Part, bool) {
	from := 0
	for i := range p.Blocks {
		b := &p.Blocks[i]
		if b.takes(gpus) && f.fits(b, free[from:from+b.Nodes], gpus) {
			if b.needs(gpus) == 1 {
				for n := from; ; n++ {
					if int(free[n]) >= gpus {
						return append(dst[:0], Part{int32(n), int32(gpus)}), true
					}
				}
			}
			f.start(p, i, free)
			f.first, f.have, f.tier2, f.visit = dst[:0], false, false, least
			f.each(gpus, b.needs(gpus))
			return f.first, true
		}
		from += b.Nodes
	}
	return dst[:0], false
}

func least(f *Finder) bool {
	if !f.have || compare(f.sorted, f.first) < 0 {
		f.first, f.have = append(f.first[:0], f.sorted...), true
	}
	return true
}

// count returns how many ways there are of tier 1, and if wide, of tier 2. If most is not 0, it stops at most of tier 1
// and one of tier 2.
func (f *Finder) count(p *Pool, free []int32, gpus, most int, wide bool) (tier1, tier2 int) {
	f.most, f.visit = most, tallied
	for tier := range 2 {
		if tier == 1 {
			if !wide {
				break
			}
			f.most = min(most, 1)
		}
		f.tier2, f.tally = tier == 1, 0
		for i := range p.Blocks {
			b := &p.Blocks[i]
			if !b.takes(gpus) || !f.may(p, i, free, gpus, tier) {
				continue
			}
			f.start(p, i, free)
			if !f.each(gpus, b.needs(gpus)+tier) {
				break
			}
		}
		if tier == 0 {
			tier1 = f.tally
		} else {
			tier2 = f.tally
		}
	}
	return tier1, tier2
}

// may reports quickly whether block i can have ways of a tier.
func (f *Finder) may(p *Pool, i int, free []int32, gpus, tier int) bool {
	from := 0
	for k := range i {
		from += p.Blocks[k].Nodes
	}
	b := &p.Blocks[i]
	if tier == 0 {
		return f.fits(b, free[from:from+b.Nodes], gpus)
	}
	return gpus > b.needs(gpus) && b.needs(gpus) < b.Nodes // a GPU for each node
}

func tallied(f *Finder) bool {
	f.tally++
	return f.most == 0 || f.tally < f.most
}

// Orders of ways.
const (
	defrag  = iota // by the change of partial nodes, of waste, of the variance of utilisation, then by nodes
	balance        // the variance first
)

// Best appends the candidates of the integer programme to dst[:0]: the best way of each tier by defrag and by balance,
// each once.
func (f *Finder) Best(p *Pool, free []int32, gpus int, wide bool, dst [][]Part) [][]Part {
	for i := range f.best {
		f.best[i].ok = false
	}
	for tier := range 2 {
		if tier == 1 && !wide {
			break
		}
		f.tier2, f.n, f.visit = tier == 1, 2*tier, better
		for i := range p.Blocks {
			b := &p.Blocks[i]
			if b.takes(gpus) && f.may(p, i, free, gpus, tier) {
				f.start(p, i, free)
				f.each(gpus, b.needs(gpus)+tier)
			}
		}
	}
	dst = dst[:0]
	for i := range f.best {
		w := &f.best[i]
		if w.ok && !slices.ContainsFunc(dst, func(o []Part) bool { return compare(o, w.parts) == 0 }) {
			dst = append(dst, w.parts)
		}
	}
	return dst
}

// better keeps the way if it is better than the best of its tier.
func better(f *Finder) bool {
	var w way
	w.parts = f.sorted
	f.weigh(&w)
	for order := range 2 { // defrag and balance
		if b := &f.best[f.n+order]; !b.ok || w.less(b, order) {
			kept := append(slices.Grow(b.parts[:0], f.block.Nodes), w.parts...)
			*b = w
			b.parts, b.ok = kept, true
		}
	}
	return true
}

// weigh computes what the way in parts changes.
func (f *Finder) weigh(w *way) {
	w.partial = f.partial()
	sum, square := f.sum, f.square
	for _, p := range f.parts {
		left, each := f.free[p.Node], int32(f.block.Each)
		used := int64(each - left)
		after := used + int64(p.GPUs)
		sum += int64(p.GPUs)
		square += after*after - used*used
		if left < each {
			w.waste -= int(used)
		}
		if left > p.GPUs {
			w.waste += int(after)
		}
	}
	w.variance = f.nodes*(square-f.square) - (sum*sum - f.sum*f.sum)
}

func (w *way) less(o *way, order int) bool {
	a, b := [3]int64{int64(w.partial), int64(w.waste), w.variance}, [3]int64{int64(o.partial), int64(o.waste), o.variance}
	if order == balance {
		a, b = [3]int64{w.variance, int64(w.partial), int64(w.waste)}, [3]int64{o.variance, int64(o.partial), int64(o.waste)}
	}
	if c := slices.Compare(a[:], b[:]); c != 0 {
		return c < 0
	}
	if len(w.parts) != len(o.parts) {
		return len(w.parts) < len(o.parts)
	}
	return compare(w.parts, o.parts) < 0
}
