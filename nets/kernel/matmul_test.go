package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"clustergym/internal/rng"
)

func noise[T Float](r *rand.Rand, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(r.NormFloat64())
	}
	return x
}

// sizes returns every remainder of the blocks, and widths below narrow.
func sizes() [][3]int {
	var all [][3]int
	for _, m := range []int{1, 2, 3, 4, 5, 8, 9} {
		for _, n := range []int{1, 2, 3, 4, 5, 8, 17} {
			for _, k := range []int{1, 3, 4, 7, 8, 13, 16} {
				all = append(all, [3]int{m, n, k})
			}
		}
	}
	return append(all, [3]int{33, 65, 70}, [3]int{28, 70, 270}, [3]int{25, 33, 130}, [3]int{33, 20, 257},
		[3]int{100, 130, 259})
}

// The definition, term by term in float64.
func productOf[T Float](a, b func(i, p int) T, bias []T, m, n, k int) []float64 {
	c := make([]float64, m*n)
	for i := 0; i < m; i++ {
		for j := 0; j < n; j++ {
			s := 0.0
			if bias != nil {
				s = float64(bias[j])
			}
			for p := 0; p < k; p++ {
				s += float64(a(i, p)) * float64(b(p, j))
			}
			c[i*n+j] = s
		}
	}
	return c
}

func close64[T Float](t *testing.T, what string, got []T, want []float64, tol float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(float64(got[i])-want[i]) <= tol*max(1, math.Abs(want[i]))) {
			t.Fatalf("%s: element %d = %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestProductsEqualTheirDefinition(t *testing.T) {
	eachSet(t, func(t *testing.T) { products[float32](t, 5e-5) })
	t.Run("float64", func(t *testing.T) { products[float64](t, 1e-13) })
}

func products[T Float](t *testing.T, tol float64) {
	r := rng.Stream(1, "products")
	for _, s := range sizes() {
		m, n, k := s[0], s[1], s[2]
		name := fmt.Sprintf("m %d n %d k %d", m, n, k)
		a, b, bias := noise[T](r, m*k), noise[T](r, k*n), noise[T](r, n)
		at := func(i, p int) T { return a[i*k+p] }
		bt := func(p, j int) T { return b[p*n+j] }
		c := noise[T](r, m*n+1) // must be overwritten, but not beyond its end
		last := c[m*n]
		MatMul(c, a, b, bias, m, n, k, Identity)
		close64(t, name, c, productOf(at, bt, bias, m, n, k), tol)
		MatMul(c, a, b, nil, m, n, k, Identity)
		want := productOf(at, bt, nil, m, n, k)
		close64(t, name+" without bias", c, want, tol)
		if c[m*n] != last {
			t.Fatalf("%s: wrote beyond the result", name)
		}
		for _, act := range []Act{ReLU, Tanh} {
			MatMul(c, a, b, nil, m, n, k, act)
			for i := range want {
				w := math.Max(want[i], 0)
				if act == Tanh {
					w = math.Tanh(want[i])
				}
				close64(t, name+" "+act.String(), c[i:i+1], []float64{w}, tol)
			}
		}

		// a is [k, m] in aᵀ·b and b is [n, k] in a·bᵀ.
		x, y := noise[T](r, k*m), noise[T](r, n*k)
		MatMulTN(c, x, b, k, n, m)
		close64(t, name+" tn", c, productOf(func(i, p int) T { return x[p*m+i] }, bt, nil, m, n, k), tol)
		MatMulNT(c, a, y, m, n, k, make([]T, n*k))
		close64(t, name+" nt", c, productOf(at, func(p, j int) T { return y[j*k+p] }, nil, m, n, k), tol)
		ColSums(c, b, k, n)
		ones := func(int, int) T { return 1 }
		close64(t, name+" column sums", c, productOf(ones, bt, nil, 1, n, k), tol)
	}
}

func TestARowsBitsDoNotDependOnTheOtherRows(t *testing.T) { eachSet(t, rowsBits) }

func rowsBits(t *testing.T) {
	r := rng.Stream(2, "rows")
	for _, s := range sizes() {
		m, n, k := s[0], s[1], s[2]
		a, b, bias := noise[float32](r, m*k), noise[float32](r, k*n), noise[float32](r, n)
		nt := noise[float32](r, n*k)
		all, allNT := make([]float32, m*n), make([]float32, m*n)
		MatMul(all, a, b, bias, m, n, k, Tanh)
		MatMulNT(allNT, a, nt, m, n, k, make([]float32, n*k))
		row := make([]float32, n)
		pair := make([]float32, 2*n)
		for i := 0; i < m; i++ {
			MatMul(row, a[i*k:(i+1)*k], b, bias, 1, n, k, Tanh)
			equalBits(t, fmt.Sprintf("row %d of %v alone", i, s), row, all[i*n:(i+1)*n])
			// The second row of a pair, beside a row that is not finite.
			other := append(make([]float32, 0, 2*k), a[:k]...)
			other[0] = float32(math.Inf(1))
			MatMul(pair, append(other, a[i*k:(i+1)*k]...), b, bias, 2, n, k, Tanh)
			equalBits(t, fmt.Sprintf("row %d of %v beside another", i, s), pair[n:], all[i*n:(i+1)*n])
			MatMulNT(row, a[i*k:(i+1)*k], nt, 1, n, k, make([]float32, n*k))
			equalBits(t, fmt.Sprintf("row %d of %v transposed", i, s), row, allNT[i*n:(i+1)*n])
		}
	}
}

// Large products are computed in pieces. A single row never is, and has the same bits.
func TestPiecesOfLargeProductsChangeNoBit(t *testing.T) { eachSet(t, piecesBits) }

func piecesBits(t *testing.T) {
	r := rng.Stream(3, "pieces")
	for _, size := range [][3]int{{97, 530, 1031}, {241, 100, 1040}, {490, 545, 513}, {1100, 120, 300}} {
		m, n, k := size[0], size[1], size[2]
		a, b, bias := noise[float32](r, m*k), noise[float32](r, k*n), noise[float32](r, n)
		aT, bT := make([]float32, m*k), make([]float32, k*n) // a and b transposed
		for i := range m {
			for p := range k {
				aT[p*m+i] = a[i*k+p]
			}
		}
		for p := range k {
			for j := range n {
				bT[j*k+p] = b[p*n+j]
			}
		}
		want, begun, got := make([]float32, m*n), make([]float32, m*n), make([]float32, m*n)
		for i := range m {
			MatMul(want[i*n:(i+1)*n], a[i*k:(i+1)*k], b, nil, 1, n, k, Identity)
			MatMul(begun[i*n:(i+1)*n], a[i*k:(i+1)*k], b, bias, 1, n, k, ReLU)
		}
		MatMul(got, a, b, nil, m, n, k, Identity)
		equalBits(t, fmt.Sprint("a·b ", size), got, want)
		MatMul(got, a, b, bias, m, n, k, ReLU)
		equalBits(t, fmt.Sprint("relu(a·b + bias) ", size), got, begun)
		MatMulTN(got, aT, b, k, n, m)
		equalBits(t, fmt.Sprint("aᵀ·b ", size), got, want)
		MatMulNT(got, a, bT, m, n, k, make([]float32, n*k))
		equalBits(t, fmt.Sprint("a·bᵀ ", size), got, want)
	}
}

func equalBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d = %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestShortSlicesPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	MatMul(make([]float32, 6), make([]float32, 5), make([]float32, 6), nil, 2, 3, 3, Identity)
}

func TestKernelsDoNotAllocate(t *testing.T) { eachSet(t, noAllocations) }

func noAllocations(t *testing.T) {
	x := make([]float32, 64*64)
	y := make([]float32, 64*64)
	z := make([]float32, 64*64)
	s := make([]float32, 64*64)
	g := Conv{H: 8, W: 8, C: 1, KH: 3, KW: 3, SH: 1, SW: 1}
	room := make([]float32, g.Scratch(8))
	step := AdamStep{Beta1: 0.9, Beta2: 0.999, Rest1: 0.1, Rest2: 0.001, Rate: 1e-3, Root: 1, Eps: 1e-8}
	for name, f := range map[string]func(){
		"MatMul":        func() { MatMul(z, x, y, s, 16, 16, 16, Tanh) },
		"MatMulTN":      func() { MatMulTN(z, x, y, 16, 16, 16) },
		"MatMulNT":      func() { MatMulNT(z, x, y, 16, 16, 16, s) },
		"ColSums":       func() { ColSums(z, x, 16, 16) },
		"ActGrad":       func() { ActGrad(z, x, y, ReLU) },
		"Exp":           func() { Exp(z, x) },
		"LogSoftmax":    func() { LogSoftmax(z, x, y, 16, 16) },
		"Convolve":      func() { Convolve(z, x, y, s, 4, 8, &g, ReLU, room) },
		"ConvolveGradW": func() { ConvolveGradW(z, x, y, 4, 8, &g, room) },
		"ConvolveGradX": func() { ConvolveGradX(z, x, y, s, 4, 8, &g, ReLU, room) },
		"Adam":          func() { Adam(x, y, z, s, step) },
		"SumSquares":    func() { SumSquares(x) },
		"AddRows":       func() { AddRows(z, x, y, 8, 8, 8, ReLU) },
		"SumRows":       func() { SumRows(z, x, 8, 8, 8, 8) },
		"MaxRows":       func() { MaxRows(z, x, 8, 8, 8) },
		"MaxRowsGrad":   func() { MaxRowsGrad(z, x, y, s, 8, 8, 8) },
		"Duel":          func() { Duel(z, x, y, s, 8, 8) },
		"LayerNorm":     func() { LayerNorm(z, x, y, s, 8, 8) },
	} {
		if n := testing.AllocsPerRun(10, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// A row of many zeros over weights that fit no cache has the bits that it has among other rows, and leaves the memory
// behind it unchanged.
func TestASparseRowHasItsBitsAlone(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		r := rng.Stream(8, "sparse")
		for _, c := range []struct{ n, k int }{{64, 4103}, {61, 5000}, {128, 2049}, {80, 3300}, {64, 17_000}, {1 << 15, 9}} {
			const m = 3
			b, bias := noise[float32](r, c.k*c.n), noise[float32](r, c.n)
			for _, share := range []float64{0.2, 0.5, 1} { // of zeros
				a := noise[float32](r, m*c.k)
				for i := range a {
					if r.Float64() < share {
						a[i] = 0
					}
				}
				all, alone := make([]float32, m*c.n), make([]float32, c.n+1)
				for act, with := range map[Act][]float32{ReLU: bias, Tanh: nil} {
					alone[c.n] = 42
					MatMul(all, a, b, with, m, c.n, c.k, act)
					for i := range m {
						MatMul(alone[:c.n], a[i*c.k:(i+1)*c.k], b, with, 1, c.n, c.k, act)
						equalBits(t, fmt.Sprintf("n %d k %d, %v of zeros, %v, row %d", c.n, c.k, share, act, i), alone[:c.n],
							all[i*c.n:(i+1)*c.n])
					}
					if alone[c.n] != 42 {
						t.Fatalf("n %d k %d: wrote behind the row", c.n, c.k)
					}
				}
			}
		}
	})
}
