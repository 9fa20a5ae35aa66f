package htmlpage

import (
	"math"
	"slices"
	"time"
)

// ticks divides time into at most most buckets of equal width. The width doubles whenever they do not suffice.
type ticks struct {
	origin time.Duration
	width  time.Duration
	most   int
}

// firstWidth is the initial width, and the finest resolution.
const firstWidth = time.Millisecond

// covers reports whether the buckets reach t.
func (k *ticks) covers(t time.Duration) bool {
	return k.width > math.MaxInt64/time.Duration(k.most) || t-k.origin <= k.width*time.Duration(k.most)
}

// each calls do with every bucket that overlaps [from, to) and the length of the overlap.
func (k *ticks) each(from, to time.Duration, do func(bucket int, d time.Duration)) {
	from, to = from-k.origin, to-k.origin
	for from < to {
		i := from / k.width
		d := min(to-from, k.width-from%k.width)
		do(int(i), d)
		from += d
	}
}

// The variables of a run over time. From sizes on there is one for each size class.
const (
	used    = iota // GPUs held, in thousandths
	queue          // waiting jobs
	running        // running jobs
	down           // GPUs of nodes that are down, in thousandths
	sizes          // GPUs held by jobs of the first class, in thousandths
	vars    = sizes + len(sizeNames)
)

// levels holds the values of the variables at one time.
type levels [vars]int64

// series holds the variables over time: buckets, and every change as long as there are few.
type series struct {
	most    int  // limit of changes, and of buckets
	exact   bool // at and changes hold every change
	at      []time.Duration
	changes []levels

	ticks   ticks
	buckets []bucket
}

// bucket aggregates the variables over one part of time.
type bucket struct {
	sum      [vars]float64 // × nanoseconds
	low, top levels        // extremes of values that lasted for some time
}

// begin starts the series at t.
func (s *series) begin(t time.Duration) {
	s.exact = true
	s.ticks = ticks{origin: t, width: firstWidth, most: s.most}
}

// hold records that the variables had the values l from one time to a later one.
func (s *series) hold(l *levels, from, to time.Duration) {
	if n := len(s.changes); s.exact && (n == 0 || s.changes[n-1] != *l) {
		if n == s.most {
			s.exact, s.at, s.changes = false, nil, nil
		} else {
			s.at, s.changes = append(s.at, from), append(s.changes, *l)
		}
	}
	for !s.ticks.covers(to) {
		s.fold()
	}
	s.ticks.each(from, to, func(i int, d time.Duration) {
		for len(s.buckets) <= i { // calls of hold leave no gaps, so this is the next bucket
			s.buckets = append(s.buckets, bucket{low: *l, top: *l})
		}
		b := &s.buckets[i]
		for v := range l {
			b.sum[v] += float64(l[v]) * float64(d)
			b.low[v], b.top[v] = min(b.low[v], l[v]), max(b.top[v], l[v])
		}
	})
}

// fold merges buckets in pairs.
func (s *series) fold() {
	s.ticks.width *= 2
	half := s.buckets[:0]
	for i := 0; i < len(s.buckets); i += 2 {
		b := s.buckets[i]
		if i+1 < len(s.buckets) {
			o := &s.buckets[i+1]
			for v := range b.sum {
				b.sum[v] += o.sum[v]
				b.low[v], b.top[v] = min(b.low[v], o.low[v]), max(b.top[v], o.top[v])
			}
		}
		half = append(half, b)
	}
	s.buckets = half
}

// heat holds how busy each row of nodes was in each part of time, in GPU-thousandths × nanoseconds.
type heat struct {
	columns int
	perRow  int // nodes
	gpu0    []int32
	level   []int64
	since   []time.Duration
	ticks   ticks
	area    []float64 // row by row
}

// begin starts the map at t and divides nodes into at most rows rows. gpu0 returns the first GPU of a node, and for the
// number of nodes the number of GPUs.
func (h *heat) begin(t time.Duration, nodes, rows int, gpu0 func(node int) int32) {
	h.perRow = (nodes + rows - 1) / rows
	n := (nodes + h.perRow - 1) / h.perRow
	h.level, h.since = make([]int64, n), slices.Repeat([]time.Duration{t}, n)
	h.area = make([]float64, n*h.columns)
	for i := range n {
		h.gpu0 = append(h.gpu0, gpu0(i*h.perRow))
	}
	h.gpu0 = append(h.gpu0, gpu0(nodes))
	h.ticks = ticks{origin: t, width: firstWidth, most: h.columns}
}

// change adds by to the GPU-thousandths in use on node from now on.
func (h *heat) change(node int, by int64, now time.Duration) {
	row := node / h.perRow
	h.settle(row, now)
	h.level[row] += by
}

// settle accounts for the use of a row until now.
func (h *heat) settle(row int, now time.Duration) {
	for !h.ticks.covers(now) {
		h.fold()
	}
	if l := float64(h.level[row]); l > 0 {
		cells := h.area[row*h.columns:][:h.columns]
		h.ticks.each(h.since[row], now, func(i int, d time.Duration) { cells[i] += l * float64(d) })
	}
	h.since[row] = now
}

// fold merges columns in pairs.
func (h *heat) fold() {
	h.ticks.width *= 2
	for row := range h.level {
		cells := h.area[row*h.columns:][:h.columns]
		for i := range cells {
			sum := 0.0
			for _, x := range cells[min(2*i, len(cells)):min(2*i+2, len(cells))] {
				sum += x
			}
			cells[i] = sum
		}
	}
}
