package kernel

import (
	"sync/atomic"
	"unsafe"
)

// tile computes blocks of rows×(cols·lanes) elements of c, one below the other: c = init + Σ a·b, and with relu the
// greater of that and 0. The element in row r of a block takes its factors from a + r·aRow + p·aStep and
// b + p·bStep; the next block's a is aNext further than where the last step left it. init is nil for zeros; its rows
// are initRow apart, 0 where all rows begin with the same bias. All distances are in bytes. Of the last register of
// columns only those of the mask exist.
type tile[M any] struct {
	rows, cols int
	run        func(c, a, b, init *float32, blocks, k, aRow, aStep, aNext, bStep, cRow, initRow int, mask M, relu int)
}

const word = int(unsafe.Sizeof(float32(0)))

const (
	// depth is the number of steps for which a strip of b is laid out: with two registers of 16 columns half of a
	// first-level cache of 32 KiB, beside the rows of a that are multiplied by it.
	depth = 128
	// fewRows is below what laying b out does not pay.
	fewRows = 20
	// small is the number of elements up to which b stays in the first-level cache as it is.
	small = 4096
)

func (v *vectors[M]) matMul(c, a, b, bias []float32, m, n, k int, act Act) {
	v.product(c, a, b, bias, m, n, k, k*word, word, 0, act == ReLU)
	if act == Tanh {
		v.activate(c[:m*n], c[:m*n], Tanh)
	}
}

func (v *vectors[M]) matMulTN(c, a, b []float32, m, n, k int, add bool) {
	var init []float32
	if add {
		init = c
	}
	v.product(c, a, b, init, k, n, m, word, k*word, n*word, false)
}

func (v *vectors[M]) matMulNT(c, a, b []float32, m, n, k int, _ []float32) {
	if k <= 0 {
		clear(c[:m*n])
		return
	}
	buf := take()
	v.laidOut(c, a, b, nil, m, n, k, k*word, word, 0, false, true, buf[:])
	give(buf)
}

// strip is room for a strip of b.
type strip [depth * 2 * 16]float32

// spare are strips that nobody uses: one for each product that has ever run beside others, up to some. A strip on the
// stack would have to be cleared each time.
var spare [16]atomic.Pointer[strip]

func take() *strip {
	for i := range spare {
		if s := spare[i].Swap(nil); s != nil {
			return s
		}
	}
	return new(strip)
}

func give(s *strip) {
	for i := range spare {
		if spare[i].CompareAndSwap(nil, s) {
			return
		}
	}
}

// product computes c [m, n] from init, whose rows are initRow bytes apart. Which tile an element falls into, and
// whether b is laid out, change nothing: its sum is the same chain in all.
func (v *vectors[M]) product(c, a, b, init []float32, m, n, k, aRow, aStep, initRow int, relu bool) {
	if m >= fewRows && n*k > small {
		if n > 2*v.lanes {
			buf := take()
			v.laidOut(c, a, b, init, m, n, k, aRow, aStep, initRow, relu, false, buf[:])
			give(buf)
		} else {
			v.laidOut(c, a, b, init, m, n, k, aRow, aStep, initRow, relu, false, nil)
		}
		return
	}
	v.asItIs(c, a, b, init, m, n, k, aRow, aStep, initRow, relu)
}

// laidOut goes through k in parts of depth, and through the columns in strips of two registers. A strip's part of b is
// written to buf without gaps, from which all rows then use it; turned says that b is [n, k]. Without buf there is one
// strip only, used as it is.
func (v *vectors[M]) laidOut(c, a, b, init []float32, m, n, k, aRow, aStep, initRow int, relu, turned bool, buf []float32) {
	if m == 0 || n == 0 {
		return
	}
	wide := 2 * v.lanes
	for from := 0; from < k; from += depth {
		steps := min(depth, k-from)
		on := 0
		if relu && from+steps == k {
			on = 1
		}
		for col := 0; col < n; col += wide {
			width := min(wide, n-col)
			part := &b[0]
			switch {
			case turned:
				v.turn(buf, b[col*k+from:], width, steps, width, k)
				part = &buf[0]
			case buf != nil:
				v.copyRows(&buf[0], &b[from*n+col], steps, width*word, n*word, width, v.mask(width%v.lanes))
				part = &buf[0]
			default:
				part = &b[from*n]
			}
			var begin *float32
			beginRow := initRow
			switch {
			case from > 0:
				begin, beginRow = &c[col], n*word
			case init != nil:
				begin = &init[col]
			}
			v.columns(&c[col], at(&a[0], from*aStep), part, begin, m, steps, aRow, aStep, width*word, n*word, beginRow, width, on)
		}
	}
}

// columns computes m rows of a strip of at most two registers of columns.
func (v *vectors[M]) columns(c, a, b, init *float32, m, k, aRow, aStep, bStep, cRow, initRow, width, relu int) {
	cols := (width + v.lanes - 1) / v.lanes
	mask := v.mask(width - (cols-1)*v.lanes)
	for _, t := range v.strips[cols] {
		blocks := m / t.rows
		if blocks == 0 {
			continue
		}
		t.run(c, a, b, init, blocks, k, aRow, aStep, t.rows*aRow-k*aStep, bStep, cRow, initRow, mask, relu)
		done := blocks * t.rows
		if m -= done; m == 0 {
			return
		}
		c, a = at(c, done*cRow), at(a, done*aRow)
		if init != nil {
			init = at(init, done*initRow)
		}
	}
}

// asItIs cuts c into tiles, as wide as there are for the rows.
func (v *vectors[M]) asItIs(c, a, b, init []float32, m, n, k, aRow, aStep, initRow int, relu bool) {
	if m == 0 || n == 0 {
		return
	}
	var ap, bp *float32
	if k > 0 {
		ap, bp = &a[0], &b[0]
	}
	on := 0
	if relu {
		on = 1
	}
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
			// The widest tile that is full, else the last and narrowest of these rows.
			for v.tiles[u].cols > left && u+1 < len(v.tiles) && v.tiles[u+1].rows == rows {
				u++
			}
			w := &v.tiles[u]
			width := min(n-col, w.cols*v.lanes)
			mask := v.mask(width - (w.cols-1)*v.lanes)
			var begin *float32
			if init != nil {
				begin = &init[row*initRow/word+col]
			}
			w.run(&c[row*n+col], at(ap, row*aRow), at(bp, col*word), begin, blocks, k,
				aRow, aStep, rows*aRow-k*aStep, n*word, n*word, initRow, mask, on)
			col += width
		}
		row += blocks * rows
	}
}

// at is n bytes after p, where p points to something.
func at(p *float32, n int) *float32 {
	if p == nil {
		return nil
	}
	return (*float32)(unsafe.Add(unsafe.Pointer(p), n))
}

// turn sets dst [cols, dstRow] to src [rows, srcRow] turned over, rows and cols of it.
func (v *vectors[M]) turn(dst, src []float32, rows, cols, dstRow, srcRow int) {
	q := v.square
	r := 0
	for ; r+q <= rows && cols >= q; r += q {
		v.transpose(&dst[r], &src[r*srcRow], cols/q, dstRow*word, srcRow*word)
	}
	done := 0 // columns of the rows above
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

func rest(dst, src []float32, rows, cols, dstRow, srcRow int) {
	for i := range rows {
		for j, x := range src[i*srcRow : i*srcRow+cols] {
			dst[j*dstRow+i] = x
		}
	}
}
