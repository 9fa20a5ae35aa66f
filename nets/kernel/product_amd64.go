package kernel

import (
	"sync/atomic"
	"unsafe"
)

// tile computes blocks of rows×(cols·lanes) elements of c, one below the other.
type tile[M any] struct {
	rows, cols int
	run        func(c, a, b, init *float32, blocks, outer, k, aRow, aStep, aSkip, aNext, bStep, cRow, initRow int, mask M,
		relu int)
}

// walk describes where the factors of an element of c are: c = init + Σ a·b over outer × k steps. In a, each row
// begins aRow after the previous one; a advances by aStep after each step, and by aSkip more after every k steps. b
// advances by bStep after each step. init is nil for zeros; its rows are initRow apart, 0 if all rows start with the
// same bias. All distances are in bytes.
type walk struct {
	outer, k           int
	aRow, aStep, aSkip int
	bStep              int
	cRow, initRow      int
	relu               bool
}

// next returns the distance from a's address after the last step of one block of rows to the start of the next block.
func (w *walk) next(rows int) int { return rows*w.aRow - w.outer*(w.k*w.aStep+w.aSkip) }

func (w *walk) on() int {
	if w.relu {
		return 1
	}
	return 0
}

const word = int(unsafe.Sizeof(float32(0)))

const (
	// depth is the number of steps for which a strip of b is laid out. With two registers of 16 columns that is 64
	// KiB, which the second-level cache delivers as fast as it is used. The longer a strip, the less often an
	// incomplete sum goes to memory and back.
	depth = 512
	// fewRows is the number of rows below which laying b out does not pay.
	fewRows = 20
	// small is the number of elements up to which b stays in the first-level cache in its own layout.
	small = 8192
)

func (v *vectors[M]) matMul(c, a, b, bias []float32, m, n, k int, act Act) {
	if m == 1 && v.sparse(c, a, b, bias, n, k, act) {
		return
	}
	v.product(c, a, b, bias, m, n, walk{outer: 1, k: k, aRow: k * word, aStep: word, relu: act == ReLU})
	if act == Tanh {
		v.activate(c[:m*n], c[:m*n], Tanh)
	}
}

func (v *vectors[M]) matMulTN(c, a, b []float32, m, n, k int) {
	if n <= narrow && k >= fewRows && n*k <= len(strip{}) {
		v.narrowTN(c, a, b, m, n, k)
		return
	}
	v.product(c, a, b, nil, k, n, walk{outer: 1, k: m, aRow: word, aStep: k * word})
}

func (v *vectors[M]) matMulNT(c, a, b []float32, m, n, k int, _ []float32) {
	if k <= 0 {
		clear(c[:m*n])
		return
	}
	buf := spareStrips.take()
	w := walk{outer: 1, k: k, aRow: k * word, aStep: word}
	if n*k <= small {
		v.turn(buf[:], b, n, k, n, k)
		v.asItIs(c, a, buf[:], nil, m, n, w)
	} else {
		v.laidOut(c, a, b, nil, m, n, w, true, buf[:])
	}
	spareStrips.give(buf)
}

// narrowTN computes the transpose of a product with few columns, because the transpose's rows fill registers. Every
// sum is the same chain of operations.
func (v *vectors[M]) narrowTN(c, a, b []float32, m, n, k int) {
	room := spareStrips.take()
	turned := room[:n*k]
	v.product(turned, b, a, nil, n, k, walk{outer: 1, k: m, aRow: word, aStep: n * word})
	rest(c, turned, n, k, n, k)
	spareStrips.give(room)
}

// strip is a buffer for a strip of b.
type strip [depth * 2 * 16]float32

// spare is a pool of unused scratch buffers of one kind: one for each call that has ever run at the same time as
// others, up to 16. On the stack a buffer would have to be cleared at every call.
type spare[T any] [16]atomic.Pointer[T]

var spareStrips spare[strip]

func (s *spare[T]) take() *T {
	for i := range s {
		if x := s[i].Swap(nil); x != nil {
			return x
		}
	}
	return new(T)
}

func (s *spare[T]) give(x *T) {
	for i := range s {
		if s[i].CompareAndSwap(nil, x) {
			return
		}
	}
}

// distant is the number of elements of b that are too many for the second-level cache, so that the product of one row
// takes as long as b takes to arrive.
const distant = 256 << 10

// places is a buffer for the indices of a row's elements.
type places [16 << 10]int32

var sparePlaces spare[places]

// sparse computes one row of a product if b is distant and much of a is 0, as after a ReLU. It does not fetch rows of
// b that would be multiplied by 0, so infinities and NaN in those rows have no effect. It reports whether it computed
// the row.
func (v *vectors[M]) sparse(c, a, b, bias []float32, n, k int, act Act) bool {
	width := 4 * v.lanes
	if v.nonZero == nil || n*k < distant || k < v.lanes || k > len(places{}) || n%width != 0 && n%width <= width-v.lanes {
		return false
	}
	at := sparePlaces.take()
	defer sparePlaces.give(at)
	blocks := k / v.lanes
	count := v.nonZero(&at[0], &a[0], blocks)
	for i := blocks * v.lanes; i < k; i++ {
		if a[i] != 0 {
			at[count] = int32(i)
			count++
		}
	}
	if count > k*3/4 {
		return false
	}
	relu := 0
	if act == ReLU {
		relu = 1
	}
	for col := 0; col < n; col += width {
		var begin *float32
		if bias != nil {
			begin = &bias[col]
		}
		v.picked(&c[col], &a[0], &b[col], begin, &at[0], count, n*word, v.mask((min(n-col, width)-1)%v.lanes+1), relu)
	}
	if act == Tanh {
		v.activate(c[:n], c[:n], Tanh)
	}
	return true
}

// product computes c [m, n]. An element's bits do not depend on its tile or on whether b is laid out: its sum is
// always the same chain of operations.
func (v *vectors[M]) product(c, a, b, init []float32, m, n int, w walk) {
	switch {
	case m < fewRows || n*w.k <= small:
		v.asItIs(c, a, b, init, m, n, w)
	case n <= 2*v.lanes:
		v.laidOut(c, a, b, init, m, n, w, false, nil)
	default:
		buf := spareStrips.take()
		v.laidOut(c, a, b, init, m, n, w, false, buf[:])
		spareStrips.give(buf)
	}
}

// laidOut goes through k in parts of depth, and through the columns in strips of two registers. It writes a strip's
// part of b to buf without gaps, and all rows then read it from there. turned means that b is [n, k]. Without buf
// there is only one strip, which is used in its own layout.
func (v *vectors[M]) laidOut(c, a, b, init []float32, m, n int, w walk, turned bool, buf []float32) {
	if m == 0 || n == 0 {
		return
	}
	if w.isLarge(m, n) {
		v.inPieces(c, a, b, init, m, n, w, turned)
		return
	}
	wide, k, relu, initRow := 2*v.lanes, w.k, w.relu, w.initRow
	w.cRow = n * word
	whole, last := v.cutting(m, wide), v.cutting(m, n%wide)
	for from := 0; from < k; from += depth {
		w.k = min(depth, k-from)
		w.relu = relu && from+w.k == k
		for col := 0; col < n; col += wide {
			width, cut := wide, &whole
			if n-col < wide {
				width, cut = n-col, &last
			}
			var part *float32
			switch {
			case turned:
				v.turn(buf, b[col*k+from:], width, w.k, width, k)
				part = &buf[0]
			case buf != nil:
				v.copyRows(&buf[0], &b[from*n+col], w.k, width*word, n*word, width, v.mask(width%v.lanes))
				part = &buf[0]
			default:
				part = &b[from*n]
			}
			var begin *float32
			w.initRow = initRow
			switch {
			case from > 0:
				begin, w.initRow = &c[col], w.cRow
			case init != nil:
				begin = &init[col]
			}
			w.bStep = width * word
			v.columns(&c[col], at(&a[0], from*w.aStep), part, begin, cut, &w)
		}
	}
}

// cut is the division into tiles of m rows of at most two registers of columns. It is computed once for all products
// of one shape, because divisions take longer than many tiles.
type cut[M any] struct {
	n    int
	runs [maxRuns]struct {
		t            *tile[M]
		blocks, rows int
	}
	mask M
}

// maxRuns exceeds the number of strips' tiles of one width.
const maxRuns = 12

// cutting divides m rows of width columns into tiles. No columns need no tiles.
func (v *vectors[M]) cutting(m, width int) (c cut[M]) {
	if width == 0 {
		return c
	}
	cols := 1
	if width > v.lanes {
		cols = 2
	}
	c.mask = v.mask(width - (cols-1)*v.lanes)
	strips := v.strips[cols]
	for i := range strips {
		t := &strips[i]
		blocks := int(uint32(m) / uint32(t.rows)) // takes half as long as in 64 bits
		if t.rows >= 12 && m-blocks*t.rows == 4 {
			blocks-- // 8 and 8 rows are better than 12 and 4, and 12 and 8 better than 16 and 4
		}
		if blocks <= 0 || t.rows&(t.rows-1) != 0 && t.rows < 12 && m != t.rows {
			continue // 9 and 3 are better than their parts, but not than the other tiles
		}
		r := &c.runs[c.n]
		r.t, r.blocks, r.rows = t, blocks, blocks*t.rows
		c.n++
		if m -= r.rows; m == 0 {
			break
		}
	}
	return c
}

// columns computes the rows that p divides.
func (v *vectors[M]) columns(c, a, b, init *float32, p *cut[M], w *walk) {
	for i := range p.n {
		r := &p.runs[i]
		if i > 0 { // not after the last run: there may be no more memory
			done := p.runs[i-1].rows
			c, a = at(c, done*w.cRow), at(a, done*w.aRow)
			if init != nil {
				init = at(init, done*w.initRow)
			}
		}
		r.t.run(c, a, b, init, r.blocks, w.outer, w.k, w.aRow, w.aStep, w.aSkip, w.next(r.t.rows), w.bStep, w.cRow, w.initRow,
			p.mask, w.on())
	}
}

// asItIs computes c with b in its own layout, in tiles as wide as there are for the rows.
func (v *vectors[M]) asItIs(c, a, b, init []float32, m, n int, w walk) {
	if m == 0 || n == 0 {
		return
	}
	var ap, bp *float32
	if w.k > 0 {
		ap, bp = &a[0], &b[0]
	}
	w.cRow, w.bStep = n*word, n*word
	row := 0
	for t := 0; row < m; {
		rows := v.tiles[t].rows
		blocks := (m - row) / rows
		if blocks == 0 {
			for v.tiles[t].rows == rows {
				t++
			}
			continue
		}
		for col, u := 0, t; col < n; {
			left := (n - col + v.lanes - 1) / v.lanes
			// The widest tile that is full, otherwise the last and narrowest with as many rows.
			for v.tiles[u].cols > left && u+1 < len(v.tiles) && v.tiles[u+1].rows == rows {
				u++
			}
			width := min(n-col, v.tiles[u].cols*v.lanes)
			mask := v.mask(width - (v.tiles[u].cols-1)*v.lanes)
			var begin *float32
			if init != nil {
				begin = &init[row*w.initRow/word+col]
			}
			v.tiles[u].run(&c[row*n+col], at(ap, row*w.aRow), at(bp, col*word), begin, blocks, w.outer, w.k,
				w.aRow, w.aStep, w.aSkip, w.next(rows), w.bStep, w.cRow, w.initRow, mask, w.on())
			col += width
		}
		row += blocks * rows
	}
}

// at returns the address n bytes after p, nil if p is nil.
func at(p *float32, n int) *float32 {
	if p == nil {
		return nil
	}
	return (*float32)(unsafe.Add(unsafe.Pointer(p), n))
}

// turn transposes rows × cols elements of src, whose rows are srcRow apart, into dst, whose rows are dstRow apart.
func (v *vectors[M]) turn(dst, src []float32, rows, cols, dstRow, srcRow int) {
	q := v.square
	r := 0
	for ; r+q <= rows && cols >= q; r += q {
		v.transpose(&dst[r], &src[r*srcRow], cols/q, dstRow*word, srcRow*word)
	}
	done := 0 // columns done in the rows above
	if r > 0 {
		done = cols / q * q
	}
	if done < cols {
		rest(dst[done*dstRow:], src[done:], r, cols-done, dstRow, srcRow)
	}
	if r < rows {
		rest(dst[r:], src[r*srcRow:], rows-r, cols, dstRow, srcRow)
	}
}

// rest is turn element by element.
func rest(dst, src []float32, rows, cols, dstRow, srcRow int) {
	for i := range rows {
		for j, x := range src[i*srcRow : i*srcRow+cols] {
			dst[j*dstRow+i] = x
		}
	}
}
