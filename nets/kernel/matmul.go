package kernel

import "fmt"

// MatMul sets c = act(a·b + bias), with a [m, k], b [k, n], bias [n] or nil, c [m, n]. Each element adds its k
// products to the bias in order. With a single row, MatMul may skip rows of b that it would multiply by 0, even if
// they contain infinities or NaN.
func MatMul[T Float](c, a, b, bias []T, m, n, k int, act Act) {
	checkMatMul("MatMul", len(c), len(a), len(b), m*n, m*k, k*n)
	if bias != nil && len(bias) < n {
		panic(fmt.Sprintf("kernel: MatMul: bias of %d elements, want %d", len(bias), n))
	}
	inUse[T]().matMul(c, a, b, bias, m, n, k, act)
}

// MatMulTN sets c = aᵀ·b, with a [m, k], b [m, n], c [k, n]: the gradient of a weight. The m products of an
// element are added in the order of the rows.
func MatMulTN[T Float](c, a, b []T, m, n, k int) {
	checkMatMul("MatMulTN", len(c), len(a), len(b), k*n, m*k, m*n)
	inUse[T]().matMulTN(c, a, b, m, n, k)
}

// MatMulNT sets c = a·bᵀ, with a [m, k], b [n, k], c [m, n]: the gradient of a layer's input. scratch needs at least
// n·k elements and is overwritten.
func MatMulNT[T Float](c, a, b []T, m, n, k int, scratch []T) {
	checkMatMul("MatMulNT", len(c), len(a), len(b), m*n, m*k, n*k)
	inUse[T]().matMulNT(c, a, b, m, n, k, scratch)
}

func checkMatMul(name string, c, a, b, wantC, wantA, wantB int) {
	if c < wantC || a < wantA || b < wantB {
		panic(fmt.Sprintf("kernel: %s: slices of %d, %d, %d elements, want %d, %d, %d", name, c, a, b, wantC, wantA, wantB))
	}
}

func matMul[T Float](c, a, b, bias []T, m, n, k int, act Act) {
	// Two rows of c at a time share each load of b; a single row uses eight rows of b at a time instead. Both add the
	// products of one element in the order of k, so a row's bits do not depend on its neighbours.
	i := 0
	for ; i+2 <= m; i += 2 {
		c0, c1 := c[i*n:(i+1)*n], c[(i+1)*n:(i+2)*n]
		start(c0, bias)
		start(c1, bias)
		twoRows(c0, c1, a[i*k:(i+1)*k], a[(i+1)*k:(i+2)*k], b, n)
		if act != Identity {
			activate(c[i*n:(i+2)*n], c[i*n:(i+2)*n], act)
		}
	}
	if i < m {
		c0 := c[i*n : (i+1)*n]
		start(c0, bias)
		oneRow(c0, a[i*k:(i+1)*k], b, n)
		if act != Identity {
			activate(c0, c0, act)
		}
	}
}

// start sets row to bias, or to zero if bias is nil.
func start[T Float](row, bias []T) {
	if bias == nil {
		clear(row)
	} else {
		copy(row, bias[:len(row)])
	}
}

// twoRows adds a0·b to c0 and a1·b to c1.
func twoRows[T Float](c0, c1, a0, a1, b []T, n int) {
	a1 = a1[:len(a0)]
	if n < narrow {
		narrowRow(c0, a0, b, n)
		narrowRow(c1, a1, b, n)
		return
	}
	p := 0
	for ; p+4 <= len(a0); p += 4 {
		r := b[p*n : (p+4)*n]
		x, y := a0[p:p+4:p+4], a1[p:p+4:p+4]
		axpy2x4(c0, c1, r[:n], r[n:2*n], r[2*n:3*n], r[3*n:], x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3])
	}
	for ; p < len(a0); p++ {
		r := b[p*n : (p+1)*n]
		axpy(c0, r, a0[p])
		axpy(c1, r, a1[p])
	}
}

// oneRow adds a0·b to c0.
func oneRow[T Float](c0, a0, b []T, n int) {
	if n < narrow {
		narrowRow(c0, a0, b, n)
		return
	}
	p := 0
	for ; p+8 <= len(a0); p += 8 {
		r := b[p*n : (p+8)*n]
		x := a0[p : p+8 : p+8]
		axpy1x8(c0, r[:n], r[n:2*n], r[2*n:3*n], r[3*n:4*n], r[4*n:5*n], r[5*n:6*n], r[6*n:7*n], r[7*n:],
			x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7])
	}
	for ; p < len(a0); p++ {
		axpy(c0, b[p*n:(p+1)*n], a0[p])
	}
}

// narrow is the width below which a row's sums are kept in registers, as for heads with one output.
const narrow = 4

// narrowRow adds a0·b to c0 for n < narrow, in the same order as the other loops.
func narrowRow[T Float](c0, a0, b []T, n int) {
	switch n {
	case 1:
		s := c0[0]
		b = b[:len(a0)]
		for p, x := range a0 {
			s += x * b[p]
		}
		c0[0] = s
	case 2:
		s, t := c0[0], c0[1]
		for _, x := range a0 {
			s += x * b[0]
			t += x * b[1]
			b = b[2:]
		}
		c0[0], c0[1] = s, t
	case 3:
		s, t, u := c0[0], c0[1], c0[2]
		for _, x := range a0 {
			s += x * b[0]
			t += x * b[1]
			u += x * b[2]
			b = b[3:]
		}
		c0[0], c0[1], c0[2] = s, t, u
	}
}

func axpy[T Float](c, b []T, x T) {
	b = b[:len(c)]
	for j := range c {
		c[j] += x * b[j]
	}
}

func axpy2x4[T Float](c0, c1, b0, b1, b2, b3 []T, x0, x1, x2, x3, y0, y1, y2, y3 T) {
	c1, b0, b1, b2, b3 = c1[:len(c0)], b0[:len(c0)], b1[:len(c0)], b2[:len(c0)], b3[:len(c0)]
	for j := range c0 {
		p, q, r, s := b0[j], b1[j], b2[j], b3[j]
		c0[j] = c0[j] + x0*p + x1*q + x2*r + x3*s
		c1[j] = c1[j] + y0*p + y1*q + y2*r + y3*s
	}
}

func axpy1x8[T Float](c, b0, b1, b2, b3, b4, b5, b6, b7 []T, x0, x1, x2, x3, x4, x5, x6, x7 T) {
	b0, b1, b2, b3 = b0[:len(c)], b1[:len(c)], b2[:len(c)], b3[:len(c)]
	b4, b5, b6, b7 = b4[:len(c)], b5[:len(c)], b6[:len(c)], b7[:len(c)]
	for j := range c {
		c[j] = c[j] + x0*b0[j] + x1*b1[j] + x2*b2[j] + x3*b3[j] + x4*b4[j] + x5*b5[j] + x6*b6[j] + x7*b7[j]
	}
}

func matMulTN[T Float](c, a, b []T, m, n, k int) {
	clear(c[:k*n])
	addMatMulTN(c, a, b, m, n, k)
}

// addMatMulTN is matMulTN, but adds to c.
func addMatMulTN[T Float](c, a, b []T, m, n, k int) {
	c = c[:k*n]
	p := 0
	for ; p+4 <= m; p += 4 { // four rows of a and b update all of c
		a0, a1, a2, a3 := a[p*k:(p+1)*k], a[(p+1)*k:(p+2)*k], a[(p+2)*k:(p+3)*k], a[(p+3)*k:(p+4)*k]
		b0, b1, b2, b3 := b[p*n:(p+1)*n], b[(p+1)*n:(p+2)*n], b[(p+2)*n:(p+3)*n], b[(p+3)*n:(p+4)*n]
		if n < narrow {
			narrowTN(c, a0, a1, a2, a3, b0, b1, b2, b3, n)
			continue
		}
		i := 0
		for ; i+2 <= k; i += 2 {
			axpy2x4(c[i*n:(i+1)*n], c[(i+1)*n:(i+2)*n], b0, b1, b2, b3,
				a0[i], a1[i], a2[i], a3[i], a0[i+1], a1[i+1], a2[i+1], a3[i+1])
		}
		if i < k {
			axpy1x4(c[i*n:(i+1)*n], b0, b1, b2, b3, a0[i], a1[i], a2[i], a3[i])
		}
	}
	for ; p < m; p++ {
		b0 := b[p*n : (p+1)*n]
		for i, x := range a[p*k : (p+1)*k] {
			axpy(c[i*n:(i+1)*n], b0, x)
		}
	}
}

func axpy1x4[T Float](c, b0, b1, b2, b3 []T, x0, x1, x2, x3 T) {
	b0, b1, b2, b3 = b0[:len(c)], b1[:len(c)], b2[:len(c)], b3[:len(c)]
	for j := range c {
		c[j] = c[j] + x0*b0[j] + x1*b1[j] + x2*b2[j] + x3*b3[j]
	}
}

// narrowTN adds the outer products of four rows to c [len(a0), n], n < narrow. It exchanges the roles of a and b, so
// that the inner loop runs along a.
func narrowTN[T Float](c, a0, a1, a2, a3, b0, b1, b2, b3 []T, n int) {
	a1, a2, a3 = a1[:len(a0)], a2[:len(a0)], a3[:len(a0)]
	for j := 0; j < n; j++ {
		x0, x1, x2, x3 := b0[j], b1[j], b2[j], b3[j]
		for i := range a0 {
			c[i*n+j] = c[i*n+j] + x0*a0[i] + x1*a1[i] + x2*a2[i] + x3*a3[i]
		}
	}
}

func matMulNT[T Float](c, a, b []T, m, n, k int, scratch []T) {
	// One pass over b makes the inner loops contiguous.
	t := scratch[:n*k]
	for i := 0; i < n; i++ {
		for j, x := range b[i*k : (i+1)*k] {
			t[j*n+i] = x
		}
	}
	matMul(c, a, t, nil, m, n, k, Identity)
}

// ColSums sets dst[j] to the sum of column j of a [m, n], added in the order of the rows.
func ColSums[T Float](dst, a []T, m, n int) {
	inUse[T]().colSums(dst, a, m, n)
}

func colSums[T Float](dst, a []T, m, n int) {
	dst = dst[:n]
	clear(dst)
	for i := 0; i < m; i++ {
		row := a[i*n : (i+1)*n]
		row = row[:len(dst)]
		for j := range dst {
			dst[j] += row[j]
		}
	}
}
