package kernel

// Large products are computed in pieces that fit the caches: a piece of b in the third level, one strip of which at a
// time is in the second level, beside a piece of a. Both are copied without gaps, because elements of a large matrix
// at distances of powers of two fall into the same few sets of a cache, and each row or column into another page. An
// element's sum remains the same chain of operations.
const (
	largeColumns = 512
	largeRows    = 240
	// gap separates the rows of a piece of a, so that they do not all fall into the same set.
	gap = 16
	// far is the distance in bytes between a's rows or steps from which copying a pays.
	far = 4096
)

// pieces holds the pieces of a large product.
type pieces struct {
	a [largeRows * (depth + gap)]float32
	b [largeColumns * depth]float32
}

var sparePieces spare[pieces]

// isLarge reports whether computing a product of m rows and n columns in pieces pays.
func (w *walk) isLarge(m, n int) bool {
	return w.outer == 1 && m >= 96 && n >= 96 && w.k >= 256 && max(w.aRow, w.aStep) >= far
}

// inPieces is laidOut for large products.
func (v *vectors[M]) inPieces(c, a, b, init []float32, m, n int, w walk, turned bool) {
	p := sparePieces.take()
	wide, k, relu, initRow, aRow, aStep := 2*v.lanes, w.k, w.relu, w.initRow, w.aRow, w.aStep
	w.cRow = n * word
	for left := 0; left < n; left += largeColumns {
		right := min(n, left+largeColumns)
		for from := 0; from < k; from += depth {
			w.k = min(depth, k-from)
			w.relu = relu && from+w.k == k
			for col := left; col < right; col += wide {
				width := min(wide, right-col)
				part := p.b[(col-left)*w.k:]
				if turned {
					v.turn(part, b[col*k+from:], width, w.k, width, k)
				} else {
					v.copyRows(&part[0], &b[from*n+col], w.k, width*word, n*word, width, v.mask(width%v.lanes))
				}
			}
			w.aRow, w.aStep = (w.k+gap)*word, word
			for top := 0; top < m; top += largeRows {
				rows := min(largeRows, m-top)
				whole, last := v.cutting(rows, wide), v.cutting(rows, (right-left)%wide)
				if aStep == word {
					v.copyRows(&p.a[0], &a[(top*aRow)/word+from], rows, w.aRow, aRow, w.k, v.mask(w.k%v.lanes))
				} else {
					v.turn(p.a[:], a[from*aStep/word+top:], w.k, rows, w.k+gap, aStep/word)
				}
				for col := left; col < right; col += wide {
					width, cut := wide, &whole
					if right-col < wide {
						width, cut = right-col, &last
					}
					var begin *float32
					w.initRow = initRow
					switch {
					case from > 0:
						begin, w.initRow = &c[top*n+col], w.cRow
					case init != nil:
						begin = &init[top*initRow/word+col]
					}
					w.bStep = width * word
					v.columns(&c[top*n+col], &p.a[0], &p.b[(col-left)*w.k], begin, cut, &w)
				}
			}
		}
	}
	sparePieces.give(p)
}
