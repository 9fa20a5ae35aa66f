package kernel

import "math"

// Attend sets dst [rows, width] to scaled dot-product attention over one sequence (Vaswani et al. 2017, arXiv
// 1706.03762, eq. 1), with several heads side by side. qkv [rows, 3·width] has queries, keys and values side by side,
// and within each the heads, which divide width. Every row sees every row: the result does not depend on their order.
// scratch needs at least AttendScratch elements and is overwritten.
func Attend[T Float](dst, qkv []T, rows, width, heads int, scratch []T) {
	checkMatMul("Attend", len(dst), len(qkv), len(scratch), rows*width, 3*rows*width, AttendScratch(rows, width, heads))
	inUse[T]().attend(dst, qkv, rows, width, heads, scratch)
}

// AttendGrad sets dqkv [rows, 3·width] to the gradient before Attend of qkv, whose result has gradient dy [rows,
// width]. It computes the weights of Attend again. scratch is as for Attend.
func AttendGrad[T Float](dqkv, qkv, dy []T, rows, width, heads int, scratch []T) {
	checkMatMul("AttendGrad", len(dqkv), len(qkv), len(scratch), 3*rows*width, 3*rows*width,
		AttendScratch(rows, width, heads))
	inUse[T]().attendGrad(dqkv, qkv, dy, rows, width, heads, scratch)
}

// AttendScratch returns the number of elements that Attend and AttendGrad need for up to rows rows: weights, their
// gradients and sums, and a head's keys or values transposed.
func AttendScratch(rows, width, heads int) int { return rows * (2*rows + width/heads + 1) }

// attention's scores are divided by the root of a head's width.
func scaling(width int) float64 { return 1 / math.Sqrt(float64(width)) }

// weights sets p [rows, rows] to the softmax of a head's scaled scores. q and k are at the head's part of the first
// row.
func weights[T Float](p, q, k []T, rows, row, d int) {
	scale := T(scaling(d))
	for i := range rows {
		w := p[i*rows : (i+1)*rows]
		top := T(math.Inf(-1))
		for j := range w {
			w[j] = scale * dot(q[i*row:i*row+d], k[j*row:j*row+d])
			top = max(top, w[j])
		}
		var sum T
		for j, x := range w {
			w[j] = exp(x - top)
			sum += w[j]
		}
		for j := range w {
			w[j] /= sum
		}
	}
}

func dot[T Float](a, b []T) T {
	var s T
	b = b[:len(a)]
	for i, x := range a {
		s += x * b[i]
	}
	return s
}

func attend[T Float](dst, qkv []T, rows, width, heads int, scratch []T) {
	row, d, p := 3*width, width/heads, scratch[:rows*rows]
	clear(dst[:rows*width])
	for at := 0; at < width; at += d {
		weights(p, qkv[at:], qkv[width+at:], rows, row, d)
		v := qkv[2*width+at:]
		for i := range rows {
			out := dst[i*width+at : i*width+at+d]
			for j, w := range p[i*rows : (i+1)*rows] {
				axpy(out, v[j*row:j*row+d], w)
			}
		}
	}
}

func attendGrad[T Float](dqkv, qkv, dy []T, rows, width, heads int, scratch []T) {
	row, d, p, dw := 3*width, width/heads, scratch[:rows*rows], scratch[rows*rows:rows*rows+rows]
	scale := T(scaling(d))
	clear(dqkv[:rows*row])
	for at := 0; at < width; at += d {
		q, k, v := qkv[at:], qkv[width+at:], qkv[2*width+at:]
		dq, dk, dv := dqkv[at:], dqkv[width+at:], dqkv[2*width+at:]
		weights(p, q, k, rows, row, d)
		for i := range rows {
			g, w := dy[i*width+at:i*width+at+d], p[i*rows:(i+1)*rows]
			var along T
			for j, x := range w {
				dw[j] = dot(g, v[j*row:j*row+d])
				along += x * dw[j]
				axpy(dv[j*row:j*row+d], g, x)
			}
			for j, x := range w {
				e := scale * x * (dw[j] - along) // of the score
				axpy(dq[i*row:i*row+d], k[j*row:j*row+d], e)
				axpy(dk[j*row:j*row+d], q[i*row:i*row+d], e)
			}
		}
	}
}
