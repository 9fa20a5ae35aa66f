package boost

import (
	"context"
)

// entry is a row of a leaf: its number, and in the lowest bit whether its target is at most the prediction.
type entry uint32

func newEntry(row int, reached bool) entry {
	if reached {
		return entry(row)<<1 | 1
	}
	return entry(row) << 1
}

func (e entry) row() int { return int(e >> 1) }

// tally counts rows: all of them in the lower half, those whose target is at most the prediction in the upper half.
// Tallies are added and subtracted as they are.
type tally uint64

func (e entry) tally() tally { return 1 + tally(e&1)<<32 }

func (t tally) rows() int       { return int(uint32(t)) }
func (t tally) reached() uint32 { return uint32(t >> 32) }

// histogram holds the tallies of a column's bins.
type histogram [maxBins + 1]tally

// split divides a leaf. Rows whose bin in column is at most bin go to child 0, and those without a value to child
// missing.
type split struct {
	gain    float64
	column  int
	bin     uint8
	missing uint8
	child   [2]int32 // as in node; splits and leaves counted from this tree's first
}

// leaf is a leaf of a growing tree.
type leaf struct {
	begin, end int // its rows in order
	tally      tally
	parent     int         // split above it, -1 = none
	side       int         // which of its children
	hists      []histogram // by column; nil if it cannot be split
	best       split       // gain 0 if it cannot be split
}

// grower grows one tree at a time.
type grower struct {
	*table
	Options
	level  float64
	order  []entry // the tree's rows; those of a leaf stand together
	moved  []entry // scratch
	chosen []int   // columns that may be split on
	splits []split
	leaves []leaf
	free   [][]histogram
}

func newGrower(t *table, o Options, level float64) *grower {
	return &grower{table: t, Options: o, level: level, order: make([]entry, 0, t.rows), moved: make([]entry, t.rows)}
}

// grow grows a tree over the rows of order: its splits, in the order in which they were made, and its leaves.
func (g *grower) grow(ctx context.Context) error {
	g.splits, g.leaves = g.splits[:0], g.leaves[:0]
	root := leaf{end: len(g.order), parent: -1}
	for _, e := range g.order {
		root.tally += e.tally()
	}
	g.leaves = append(g.leaves, root)
	g.consider(0, -1)
	for ctx.Err() == nil {
		best := 0
		for i := range g.leaves {
			if g.leaves[i].best.gain > g.leaves[best].best.gain {
				best = i
			}
		}
		if g.leaves[best].best.gain <= 0 {
			break
		}
		right := g.divide(best)
		if len(g.leaves) == g.Leaves {
			break
		}
		if g.leaves[best].tally.rows() <= g.leaves[right].tally.rows() {
			g.consider(best, right)
		} else {
			g.consider(right, best)
		}
	}
	for i := range g.leaves {
		g.release(&g.leaves[i])
	}
	return ctx.Err()
}

// divide makes the best split of leaf i, which becomes the child on side 0, and returns the number of the other one.
// The leaf's histograms go to the larger child.
func (g *grower) divide(i int) int {
	left := &g.leaves[i]
	s, number, right := left.best, len(g.splits), len(g.leaves)
	s.child = [2]int32{int32(^i), int32(^right)}
	if left.parent >= 0 {
		g.splits[left.parent].child[left.side] = int32(number)
	}
	g.splits = append(g.splits, s)

	// Both sides keep the order of rows, so that reading goes forward in memory.
	side := g.sides(&s)
	width, kept, moved := len(g.columns), left.begin, 0
	var gone tally
	for _, e := range g.order[left.begin:left.end] {
		to := int(side[g.cells[e.row()*width+s.column]])
		g.order[kept], g.moved[moved] = e, e
		kept += 1 - to
		moved += to
		gone += e.tally() * tally(to)
	}
	copy(g.order[kept:left.end], g.moved[:moved])

	other := leaf{begin: kept, end: left.end, tally: gone, parent: number, side: 1}
	left.end, left.parent, left.side, left.best = kept, number, 0, split{}
	left.tally -= gone
	if other.tally.rows() >= left.tally.rows() {
		left.hists, other.hists = nil, left.hists
	}
	g.leaves = append(g.leaves, other)
	return right
}

// sides returns which child each bin of the split's column goes to.
func (g *grower) sides(s *split) (side [maxBins + 1]uint8) {
	missing := g.columns[s.column].missing()
	for b := int(s.bin) + 1; b < int(missing); b++ {
		side[b] = 1
	}
	side[missing] = s.missing
	return side
}

// leafOf returns the leaf of the grown tree that row r falls into.
func (g *grower) leafOf(r int) int {
	i := int32(0)
	for i >= 0 {
		s := &g.splits[i]
		bin, side := g.cells[r*len(g.columns)+s.column], uint8(0)
		if bin > s.bin {
			side = 1
		}
		if bin == g.columns[s.column].missing() {
			side = s.missing
		}
		i = s.child[side]
	}
	return int(^i)
}

// consider finds the best splits of two new siblings, of which larger may be -1 and else holds the parent's histograms.
// The larger one's are the difference, so only the rows of the smaller one are counted.
func (g *grower) consider(smaller, larger int) {
	s := &g.leaves[smaller]
	if larger < 0 {
		if g.divisible(s) {
			g.count(s)
			g.search(s)
		}
		return
	}
	l := &g.leaves[larger]
	if !g.divisible(l) { // nor is s
		g.release(l)
		return
	}
	g.count(s)
	for _, k := range g.chosen {
		mine, theirs := &l.hists[k], &s.hists[k]
		for b := range len(g.columns[k].bounds) + 1 {
			mine[b] -= theirs[b]
		}
	}
	g.search(s)
	g.search(l)
}

func (g *grower) divisible(l *leaf) bool { return l.tally.rows() >= 2*g.MinLeaf }

func (g *grower) release(l *leaf) {
	if l.hists != nil {
		g.free = append(g.free, l.hists)
		l.hists = nil
	}
}

// count fills histograms of l.
func (g *grower) count(l *leaf) {
	if n := len(g.free); n > 0 {
		l.hists, g.free = g.free[n-1], g.free[:n-1]
	} else {
		l.hists = make([]histogram, len(g.columns))
	}
	for _, k := range g.chosen {
		clear(l.hists[k][:len(g.columns[k].bounds)+1])
	}
	width, hists := len(g.columns), l.hists
	if len(g.chosen) < width {
		for _, e := range g.order[l.begin:l.end] {
			cells, one := g.cells[e.row()*width:][:width], e.tally()
			for _, k := range g.chosen {
				hists[k][cells[k]] += one
			}
		}
		return
	}
	for _, e := range g.order[l.begin:l.end] {
		cells, one := g.cells[e.row()*width:][:len(hists)], e.tally()
		for k := range hists {
			hists[k][cells[k]] += one
		}
	}
}

// search finds the best split of l, of which histograms have been counted, and gives them back if there is none.
func (g *grower) search(l *leaf) {
	if g.divisible(l) {
		s := searcher{level: g.level, l2: g.L2, minLeaf: g.MinLeaf, whole: l.tally}
		s.base = s.score(l.tally)
		s.best.gain = 1e-12 * float64(l.tally.rows()) // less is rounding
		least := s.best.gain
		for _, k := range g.chosen {
			s.search(&l.hists[k], k, len(g.columns[k].bounds))
		}
		if s.best.gain > least {
			l.best = s.best
			return
		}
	}
	g.release(l)
}

// searcher searches for the best split of a leaf.
type searcher struct {
	level, l2 float64
	minLeaf   int
	whole     tally
	base      float64 // score of the whole leaf
	best      split
}

// score returns G²/(n+l2) of the rows that t counts.
func (s *searcher) score(t tally) float64 {
	n := float64(t.rows())
	gradient := float64(t.reached()) - s.level*n
	return gradient * gradient / (n + s.l2)
}

// search tries the splits on column k, which has so many bins.
func (s *searcher) search(h *histogram, k, bins int) {
	missing := h[bins]
	s.scan(h, k, bins, 0, 1)
	if missing.rows() > 0 {
		s.scan(h, k, bins, missing, 0)
	}
}

// scan tries the splits on column k that send the rows without a value to side missing; left are those on the left.
func (s *searcher) scan(h *histogram, k, bins int, left tally, missing uint8) {
	none := h[bins] == 0
	for b, t := range h[:bins] {
		left += t
		right := s.whole - left
		if right.rows() < s.minLeaf {
			return
		}
		if t == 0 || left.rows() < s.minLeaf {
			continue
		}
		if gain := s.score(left) + s.score(right) - s.base; gain > s.best.gain {
			s.best = split{gain: gain, column: k, bin: uint8(b), missing: missing}
			if none && left.rows() >= right.rows() {
				s.best.missing = 0 // with the majority
			}
		}
	}
}
