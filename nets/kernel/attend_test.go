package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"clustergym/internal/rng"
)

// sameAttention compares attention and layer norm of s with the portable ones in float64.
func sameAttention(s *set[float32], r *rand.Rand) error {
	rows, heads := 1+r.IntN(70), 1+r.IntN(4)
	width := heads * (1 + r.IntN(40))
	if width < 3 {
		width = 4 * heads // normalised rows of two numbers are ±1, and gradients differences of nearly equal numbers
	}
	wide := func(x []float32) []float64 {
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = float64(v)
		}
		return y
	}
	room := func(n int) []float32 {
		x := make([]float32, n+1)
		for i := range x {
			x[i] = 42
		}
		return x
	}
	what := func(name string) string {
		return fmt.Sprintf("%s of %d rows of %d, %d heads", name, rows, width, heads)
	}
	compare := func(name string, got []float32, want []float64) error {
		norm, miss := 0.0, 0.0
		for i, w := range want {
			norm += w * w
			miss += (float64(got[i]) - w) * (float64(got[i]) - w)
		}
		if got[len(want)] != 42 {
			return fmt.Errorf("%s: wrote beyond the end", what(name))
		}
		if !(math.Sqrt(miss) <= 3e-6*math.Sqrt(norm)+1e-5*math.Sqrt(float64(len(want)))*1e-2) {
			return fmt.Errorf("%s: differs by %.3g of a norm of %.3g", what(name), math.Sqrt(miss), math.Sqrt(norm))
		}
		return nil
	}
	qkv, dy := noise[float32](r, 3*rows*width), noise[float32](r, rows*width)
	for i := range qkv {
		qkv[i] *= 2 // so that some weights are far from others
	}
	need := AttendScratch(rows, width, heads)
	out, scratch, want, scratch64 := room(rows*width), room(need), make([]float64, rows*width), make([]float64, need)
	s.attend(out[:rows*width], qkv, rows, width, heads, scratch[:need])
	attend(want, wide(qkv), rows, width, heads, scratch64)
	if err := compare("attend", out, want); err != nil {
		return err
	}
	grad, want := room(3*rows*width), make([]float64, 3*rows*width)
	s.attendGrad(grad[:3*rows*width], qkv, dy, rows, width, heads, scratch[:need])
	attendGrad(want, wide(qkv), wide(dy), rows, width, heads, scratch64)
	if err := compare("attendGrad", grad, want); err != nil {
		return err
	}
	if scratch[need] != 42 {
		return fmt.Errorf("%s: wrote beyond its scratch space", what("attention"))
	}
	x, gamma, beta := qkv[:rows*width], noise[float32](r, width), noise[float32](r, width)
	y, want := room(rows*width), make([]float64, rows*width)
	s.layerNorm(y[:rows*width], x, gamma, beta, rows, width)
	layerNorm(want, wide(x), wide(gamma), wide(beta), rows, width)
	if err := compare("layerNorm", y, want); err != nil {
		return err
	}
	copy(y, dy) // in place
	s.layerNormGrad(y[:rows*width], x, gamma, y[:rows*width], rows, width)
	layerNormGrad(want, wide(x), wide(gamma), wide(dy), rows, width)
	if err := compare("layerNormGrad", y, want); err != nil {
		return err
	}
	g, scratch, want := room(width), room(rows*width), make([]float64, width)
	s.layerNormGradGamma(g[:width], x, dy, rows, width, scratch[:rows*width])
	layerNormGradGamma(want, wide(x), wide(dy), rows, width, nil)
	if scratch[rows*width] != 42 {
		return fmt.Errorf("%s: wrote beyond its scratch space", what("layerNormGradGamma"))
	}
	return compare("layerNormGradGamma", g, want)
}

// One head of width 1 over two rows, with queries 1 and 2, keys 1 and 3, values 10 and 20: the scores of the rows are
// 1, 3 and 2, 6, so the second value weighs 1/(1+e^-2) and 1/(1+e^-4).
func TestAttentionByHand(t *testing.T) {
	qkv := []float64{1, 1, 10, 2, 3, 20}
	out := make([]float64, 2)
	Attend(out, qkv, 2, 1, 1, make([]float64, AttendScratch(2, 1, 1)))
	for i, want := range []float64{10 + 10/(1+math.Exp(-2)), 10 + 10/(1+math.Exp(-4))} {
		if math.Abs(out[i]-want) > 1e-12 {
			t.Errorf("row %d is %v, want %v", i, out[i], want)
		}
	}
}

func TestAttentionsGradientAgainstCentralDifferences(t *testing.T) {
	r := rng.Stream(4, "attend")
	const rows, width, heads = 5, 6, 2
	qkv, dy := noise[float64](r, 3*rows*width), noise[float64](r, rows*width)
	out, got, scratch := make([]float64,
		rows*width), make([]float64, 3*rows*width), make([]float64, AttendScratch(rows, width, heads))
	AttendGrad(got, qkv, dy, rows, width, heads, scratch)
	along := func() (s float64) {
		Attend(out, qkv, rows, width, heads, scratch)
		for i, y := range out {
			s += y * dy[i]
		}
		return s
	}
	for i := range qkv {
		const h = 1e-6
		old := qkv[i]
		qkv[i] = old + h
		up := along()
		qkv[i] = old - h
		down := along()
		qkv[i] = old
		if want := (up - down) / (2 * h); math.Abs(got[i]-want) > 1e-8 {
			t.Errorf("d/dqkv[%d] = %.10g, central difference %.10g", i, got[i], want)
		}
	}
}

// Rows in another order give the same results in that order.
func TestAttentionDoesNotKnowTheOrderOfRows(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		r := rng.Stream(4, "order")
		const rows, width, heads = 33, 32, 4
		qkv, scratch := noise[float32](r, 3*rows*width), make([]float32, AttendScratch(rows, width, heads))
		turned, order := make([]float32, len(qkv)), r.Perm(rows)
		for i, j := range order {
			copy(turned[i*3*width:(i+1)*3*width], qkv[j*3*width:])
		}
		a, b := make([]float32, rows*width), make([]float32, rows*width)
		Attend(a, qkv, rows, width, heads, scratch)
		Attend(b, turned, rows, width, heads, scratch)
		for i, j := range order {
			for c := range width {
				if x, y := b[i*width+c], a[j*width+c]; !near(x, y, 1, 2e-6) {
					t.Fatalf("row %d is now %d: element %d is %v, was %v", j, i, c, x, y)
				}
			}
		}
	})
}

func TestAttentionDoesNotAllocate(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		r := rng.Stream(4, "allocations")
		const rows, width, heads = 20, 32, 4
		qkv, dy, scratch := noise[float32](r,
			3*rows*width), noise[float32](r, rows*width), make([]float32, AttendScratch(rows, width, heads))
		out, grad := make([]float32, rows*width), make([]float32, 3*rows*width)
		if n := testing.AllocsPerRun(20, func() {
			Attend(out, qkv, rows, width, heads, scratch)
			AttendGrad(grad, qkv, dy, rows, width, heads, scratch)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// BenchmarkAttention measures attention over one sequence, and layer norm, in every set.
func BenchmarkAttention(b *testing.B) {
	before := Set()
	defer func() { _ = Use(before) }() // it exists
	for _, name := range Sets() {
		if err := Use(name); err != nil {
			b.Fatal(err)
		}
		r := rng.Stream(4, "bench")
		for _, rows := range []int{9, 33, 65, 129} {
			const width, heads = 64, 4
			qkv, dy, scratch := noise[float32](r,
				3*rows*width), noise[float32](r, rows*width), make([]float32, AttendScratch(rows, width, heads))
			out, grad := make([]float32, rows*width), make([]float32, 3*rows*width)
			b.Run(fmt.Sprintf("%s/forward/%d rows", name, rows), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Attend(out, qkv, rows, width, heads, scratch)
				}
			})
			b.Run(fmt.Sprintf("%s/backward/%d rows", name, rows), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					AttendGrad(grad, qkv, dy, rows, width, heads, scratch)
				}
			})
		}
		const n, h = 256, 64
		x, dy, gamma, beta, y := noise[float32](r,
			n*h), noise[float32](r, n*h), noise[float32](r, h), noise[float32](r, h), make([]float32, n*h)
		b.Run(name+"/layer norm/forward", func(b *testing.B) {
			for b.Loop() {
				LayerNorm(y, x, gamma, beta, n, h)
			}
		})
		b.Run(name+"/layer norm/backward", func(b *testing.B) {
			for b.Loop() {
				LayerNormGrad(y, x, gamma, dy, n, h)
			}
		})
	}
}
