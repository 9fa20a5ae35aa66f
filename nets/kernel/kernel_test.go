package kernel

import (
	"fmt"
	"math"
	"testing"

	"clustergym/internal/rng"
)

func TestExpAndTanhAreAccurate(t *testing.T) {
	ulps := func(got float32, want float64) float64 {
		w := float32(want)
		return math.Abs(float64(got)-want) / float64(math.Nextafter32(max(w, -w), 3e38)-max(w, -w))
	}
	worstExp, worstTanh := 0.0, 0.0
	for i := 0; i <= 1_000_000; i++ {
		x := float32(-87.3 + 176*float64(i)/1_000_000)
		if w := math.Exp(float64(x)); w < math.MaxFloat32 {
			worstExp = max(worstExp, ulps(exp(x), w))
		}
		y := float32(-9 + 18*float64(i)/1_000_000)
		worstTanh = max(worstTanh, ulps(tanh(y), math.Tanh(float64(y))))
	}
	if worstExp > 2 || worstTanh > 8 {
		t.Errorf("worst errors in units of the last place: exp %.2f (at most 2), tanh %.2f (at most 8)", worstExp, worstTanh)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range [][2]float32{{0, 1}, {-inf, 0}, {inf, inf}, {-1000, 0}, {1000, inf},
		{88.7, float32(math.Exp(float64(float32(88.7))))}} {
		if got := exp(c[0]); got != c[1] && !(math.Abs(float64(got/c[1])-1) < 2e-7) {
			t.Errorf("exp(%v) = %v, want %v", c[0], got, c[1])
		}
	}
	for _, c := range [][2]float32{{0, 0}, {-inf, -1}, {inf, 1}, {1e-20, 1e-20}, {20, 1}} {
		if got := tanh(c[0]); math.Abs(float64(got-c[1])) > 1e-7 || c[0] > 0 && !(math.Abs(float64(got/c[1])-1) < 2e-7) {
			t.Errorf("tanh(%v) = %v, want %v", c[0], got, c[1])
		}
	}
	if x, y, z := exp(nan), tanh(nan), max(nan, 0); x == x || y == y || z == z {
		t.Errorf("exp, tanh, relu of NaN are %v, %v, %v; want NaN", x, y, z)
	}
	if x := tanh(float32(8)); x > 1 {
		t.Errorf("tanh(8) = %v, more than 1", x)
	}
}

func TestLogSoftmaxSumsToOneAndLeavesOutTheMasked(t *testing.T) {
	r := rng.Stream(3, "softmax")
	const m, n = 7, 11
	src, mask, dst := noise[float32](r, m*n), make([]float32, m*n), make([]float32, m*n)
	for i := range src {
		src[i] *= 30
		if r.IntN(2) == 0 || i%n == 4 {
			mask[i] = 1
		}
	}
	LogSoftmax(dst, src, mask, m, n)
	for i := 0; i < m; i++ {
		sum, norm := 0.0, 0.0
		for j := i * n; j < (i+1)*n; j++ {
			if mask[j] != 0 {
				norm += math.Exp(float64(src[j]))
				sum += math.Exp(float64(dst[j]))
			} else if math.Exp(float64(dst[j])) != 0 {
				t.Errorf("masked entry %d has log-probability %v", j, dst[j])
			}
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Errorf("row %d sums to %v", i, sum)
		}
		for j := i * n; j < (i+1)*n; j++ {
			if want := float64(src[j]) - math.Log(norm); mask[j] != 0 && math.Abs(float64(dst[j])-want) > 1e-5*max(1, -want) {
				t.Errorf("entry %d = %v, want %v", j, dst[j], want)
			}
		}
	}
}

func TestIm2ColAndItsTranspose(t *testing.T) {
	r := rng.Stream(4, "im2col")
	for _, g := range []Conv{
		{H: 5, W: 6, C: 2, KH: 3, KW: 2, SH: 1, SW: 2},
		{H: 5, W: 6, C: 1, KH: 3, KW: 3, SH: 2, SW: 1, PH: 1, PW: 2},
		{H: 4, W: 9, C: 3, KH: 4, KW: 3, SH: 4, SW: 3},
		{H: 6, W: 4, C: 2, KH: 2, KW: 4, SH: 2, SW: 1},
		{H: 3, W: 6, C: 2, KH: 1, KW: 3, SH: 1, SW: 3},
		{H: 2, W: 2, C: 1, KH: 2, KW: 5, SH: 1, SW: 1, PW: 4},
	} {
		t.Run(fmt.Sprintf("%+v", g), func(t *testing.T) {
			if err := g.Check(); err != nil {
				t.Fatal(err)
			}
			const rows = 3
			img := noise[float64](r, rows*g.H*g.W*g.C)
			n := rows * g.OutH() * g.OutW() * g.Patch()
			cols := noise[float64](r, n)
			im2Col(cols, img, rows, &g)
			at := 0
			for b := 0; b < rows; b++ {
				for y := 0; y < g.OutH(); y++ {
					for x := 0; x < g.OutW(); x++ {
						for ky := 0; ky < g.KH; ky++ {
							for kx := 0; kx < g.KW; kx++ {
								for c := 0; c < g.C; c++ {
									iy, ix, want := y*g.SH-g.PH+ky, x*g.SW-g.PW+kx, 0.0
									if iy >= 0 && iy < g.H && ix >= 0 && ix < g.W {
										want = img[((b*g.H+iy)*g.W+ix)*g.C+c]
									}
									if cols[at] != want {
										t.Fatalf("patch element %d = %v, want %v", at, cols[at], want)
									}
									at++
								}
							}
						}
					}
				}
			}
			if at != n {
				t.Fatalf("%d elements, want %d", at, n)
			}
			if same := equalSlices(cols, img); g.Tiles() && !same || same && !g.Tiles() && g.PH+g.PW == 0 {
				t.Errorf("Tiles() = %v, patches equal the image: %v", g.Tiles(), same)
			}
			// <im2Col(img), d> = <img, col2Im(d)> for every d: the definition of a transpose.
			d := noise[float64](r, n)
			back := noise[float64](r, len(img))
			col2Im(back, d, rows, &g)
			left, right := 0.0, 0.0
			for i := range d {
				left += cols[i] * d[i]
			}
			for i := range img {
				right += img[i] * back[i]
			}
			if math.Abs(left-right) > 1e-10*(1+math.Abs(left)) {
				t.Errorf("products %v and %v differ", left, right)
			}
		})
	}
}

func equalSlices(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestImpossibleConvolutionsAreRefused(t *testing.T) {
	for _, g := range []Conv{
		{H: 0, W: 1, C: 1, KH: 1, KW: 1, SH: 1, SW: 1}, {H: 2, W: 2, C: 1, KH: 3, KW: 1, SH: 1, SW: 1},
		{H: 2, W: 2, C: 1, KH: 1, KW: 1, SH: 0, SW: 1}, {H: 2, W: 2, C: 1, KH: 2, KW: 2, SH: 1, SW: 1, PH: 2},
	} {
		if g.Check() == nil {
			t.Errorf("%+v was accepted", g)
		}
	}
}

func TestActivationGradients(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	y := []float32{1e-45, 0, float32(math.Copysign(0, -1)), 2, -1, inf, -inf, nan, 0.5}
	dy := []float32{1, 2, 3, -4, 5, 6, 7, 8, nan}
	d := make([]float32, len(y))
	ActGrad(d, y, dy, ReLU)
	for i, w := range []float32{1, 0, 0, -4, 0, 6, 0, 8, nan} {
		if d[i] != w && !(w != w && d[i] != d[i]) {
			t.Errorf("relu: gradient %v at %v becomes %v, want %v", dy[i], y[i], d[i], w)
		}
	}
	y64 := []float64{1, 0, -1}
	d64 := make([]float64, 3)
	ActGrad(d64, y64, []float64{3, 3, 3}, ReLU)
	if d64[0] != 3 || d64[1] != 0 || d64[2] != 0 {
		t.Errorf("relu in float64: %v, want [3 0 0]", d64)
	}
	ActGrad(d64, y64, []float64{3, 3, 3}, Tanh)
	if d64[0] != 0 || d64[1] != 3 || d64[2] != 0 {
		t.Errorf("tanh: %v, want [0 3 0]", d64)
	}
	ActGrad(d64, y64, []float64{7, 8, 9}, Identity)
	if d64[2] != 9 {
		t.Errorf("identity: %v, want [7 8 9]", d64)
	}
}

func TestRowKernels(t *testing.T) {
	x := []float64{1, -5, 3, 4, -2, 9} // two groups of k = 1.. rows of width 2 below
	d := make([]float64, 2)
	MaxRows(d, x, 1, 3, 2)
	if d[0] != 3 || d[1] != 9 {
		t.Errorf("maximum %v, want [3 9]", d)
	}
	SumRows(d, x, 1, 3, 2, 3)
	if d[0] != 2.0/3 || d[1] != 8.0/3 {
		t.Errorf("mean %v, want [2/3 8/3]", d)
	}
	AddRows(x, x, []float64{1, -4}, 1, 3, 2, ReLU)
	for i, w := range []float64{2, 0, 4, 0, 0, 5} {
		if x[i] != w {
			t.Errorf("sum %d = %v, want %v", i, x[i], w)
		}
	}
	if s := SumSquares([]float32{1, 2, 3, 4, 5, 6}); s != 91 {
		t.Errorf("sum of squares %v, want 91", s)
	}
}

func BenchmarkActivations(b *testing.B) {
	r := rng.Stream(5, "bench")
	x, y := noise[float32](r, 4096), make([]float32, 4096)
	for name, f := range map[string]func(){
		"tanh": func() { Activate(y, x, Tanh) },
		"relu": func() { Activate(y, x, ReLU) },
		"exp":  func() { Exp(y, x) },
		"adam": func() {
			Adam(x, y, y, y, AdamStep{Beta1: 0.9, Beta2: 0.999, Rest1: 0.1, Rest2: 0.001, Rate: 1e-9, Root: 1, Eps: 1e-8})
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4096, "ns/element")
		})
	}
}
