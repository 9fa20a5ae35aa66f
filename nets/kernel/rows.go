package kernel

// AddRows sets dst = act(x + context), with x and dst [n·k, h] and context [n, h]: the k rows of one group get the
// same context. dst may be x.
func AddRows[T Float](dst, x, context []T, n, k, h int, act Act) {
	inUse[T]().addRows(dst, x, context, n, k, h, act)
}

func addRows[T Float](dst, x, context []T, n, k, h int, act Act) {
	for i := 0; i < n; i++ {
		c := context[i*h : (i+1)*h]
		for j := i * k; j < (i+1)*k; j++ {
			add(dst[j*h:(j+1)*h], x[j*h:(j+1)*h], c)
		}
	}
	if act != Identity {
		activate(dst[:n*k*h], dst[:n*k*h], act)
	}
}

// SumRows sets each row of dst [n, h] to the sum of the k rows of its group in x [n·k, h], in order, divided by
// div.
func SumRows[T Float](dst, x []T, n, k, h int, div T) {
	inUse[T]().sumRows(dst, x, n, k, h, div)
}

func sumRows[T Float](dst, x []T, n, k, h int, div T) {
	for i := 0; i < n; i++ {
		d := dst[i*h : (i+1)*h]
		clear(d)
		for j := i * k; j < (i+1)*k; j++ {
			add(d, d, x[j*h:(j+1)*h])
		}
		if div != 1 {
			for q := range d {
				d[q] /= div
			}
		}
	}
}

// MaxRows sets each row of dst [n, h] to the maximum, column by column, of the k rows of its group in x [n·k, h]. It
// ignores NaN except in a group's first row.
func MaxRows[T Float](dst, x []T, n, k, h int) {
	inUse[T]().maxRows(dst, x, n, k, h)
}

func maxRows[T Float](dst, x []T, n, k, h int) {
	for i := 0; i < n; i++ {
		d := dst[i*h : (i+1)*h]
		copy(d, x[i*k*h:(i*k+1)*h])
		for j := i*k + 1; j < (i+1)*k; j++ {
			s := x[j*h : (j+1)*h]
			s = s[:len(d)]
			for q, v := range s {
				if v > d[q] {
					d[q] = v
				}
			}
		}
	}
}

// MaxRowsGrad sets dst [n·k, h] to dy [n, h] in the first row of a group of x that equals top, the maxima, column by
// column, and to 0 elsewhere.
func MaxRowsGrad[T Float](dst, x, top, dy []T, n, k, h int) {
	inUse[T]().maxRowsGrad(dst, x, top, dy, n, k, h)
}

func maxRowsGrad[T Float](dst, x, top, dy []T, n, k, h int) {
	clear(dst[:n*k*h])
	for i := 0; i < n; i++ {
		for c := 0; c < h; c++ {
			for j := i * k; j < (i+1)*k; j++ {
				if x[j*h+c] == top[i*h+c] {
					dst[j*h+c] = dy[i*h+c]
					break
				}
			}
		}
	}
}

// Duel sets each row of q [n, a] to v + adv - mean(adv). The mean runs over the actions whose mask is not 0, or over
// all if the mask is nil or all 0. q may be adv.
func Duel[T Float](q, v, adv, mask []T, n, a int) {
	for i := 0; i < n; i++ {
		x := adv[i*a : (i+1)*a]
		mean := maskedMean(x, mask, i*a)
		d := q[i*a : (i+1)*a]
		for j, y := range x {
			d[j] = v[i] + (y - mean)
		}
	}
}

func maskedMean[T Float](x, mask []T, at int) T {
	var sum T
	count := 0
	if mask != nil {
		for j, legal := range mask[at : at+len(x)] {
			if legal != 0 {
				sum += x[j]
				count++
			}
		}
	}
	if count == 0 {
		for _, y := range x {
			sum += y
		}
		count = len(x)
	}
	return sum / T(count)
}
