package encode

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/internal/testseed"
)

// drawn returns the generator of a test that draws.
func drawn(t *testing.T, usual uint64) *rand.Rand {
	seed := testseed.Or(usual)
	t.Logf("%s=%d", testseed.Key, seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// The image of random bars is the one that the rule gives, cell by cell, whatever dst held and however wide the image
// is.
func TestBarsFillTheirCells(t *testing.T) {
	r := drawn(t, 1)
	for range 300 {
		cols := 1 + r.IntN(70)
		b := bars{make([]int32, cols), make([]float32, cols)}
		for c := range cols {
			if r.IntN(4) > 0 {
				b.full[c] = int32(r.IntN(rowCount + 1))
			}
			if b.full[c] < rowCount && r.IntN(4) > 0 {
				b.part[c] = []float32{r.Float32(), 1, math.SmallestNonzeroFloat32}[r.IntN(3)]
			}
		}
		dst, slow := make([]float32, rowCount*cols+3), make([]float32, rowCount*cols)
		for i := range dst {
			dst[i] = 99
		}
		b.write(dst[:rowCount*cols])
		b.writeFrom(slow, 0)
		for i, x := range slow {
			h, c := int32(i/cols), i%cols
			want := float32(0)
			if h < b.full[c] {
				want = 1
			} else if h == b.full[c] {
				want = b.part[c]
			}
			if x != want || dst[i] != want {
				t.Fatalf("%d columns: row %d of column %d, a bar of %d + %v, is %v and %v, want %v", cols, h, c, b.full[c],
					b.part[c], dst[i], x, want)
			}
		}
		if !slices.Equal(dst[rowCount*cols:], []float32{99, 99, 99}) {
			t.Fatal("what is behind the image has changed")
		}
	}
}

// Of several bars in a column one sees what they cover together.
func TestHigherBarsCoverLowerOnes(t *testing.T) {
	r := drawn(t, 2)
	for range 1000 {
		b := bars{make([]int32, 1), make([]float32, 1)}
		var want [rowCount]float32
		for range r.IntN(5) {
			full, part := r.IntN(5), []float32{0, 0.5, r.Float32()}[r.IntN(3)]
			b.raise(0, full, part)
			for h := range full {
				want[h] = 1
			}
			want[full] = max(want[full], part)
		}
		got := make([]float32, rowCount)
		b.write(got)
		if !slices.Equal(got, want[:]) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

// Bar finds the cell that a search of all edges finds, at the edges, around them and everywhere else.
func TestBarFindsTheCell(t *testing.T) {
	r := drawn(t, 3)
	for _, a := range []*Axis{LogAxis(), LinearAxis(1), LinearAxis(241500 * time.Millisecond),
		LinearAxis(time.Duration(1 + r.Int64N(1e15)))} {
		check := func(x float64) {
			t.Helper()
			full, part := 0, float32(0)
			if x > 0 {
				for full < rowCount && a.edge[full+1] <= x {
					full++
				}
				if full < rowCount {
					part = float32((x - a.edge[full]) / (a.edge[full+1] - a.edge[full]))
				}
			}
			if f, p := a.Bar(x); f != full || p != part {
				t.Fatalf("a bar of %v is %d + %v, want %d + %v; edges %v", x, f, p, full, part, a.edge)
			}
		}
		for _, x := range a.edge {
			for _, y := range []float64{x, math.Nextafter(x, 0), math.Nextafter(x, math.Inf(1)), x - 1, x + 1} {
				check(y)
			}
		}
		for range 2000 {
			check(r.Float64() * 1.1 * a.edge[rowCount])
			check(math.Exp(r.Float64() * 40))
		}
		for _, x := range []float64{math.Inf(-1), -1, 0, math.SmallestNonzeroFloat64, math.Inf(1), math.MaxFloat64} {
			check(x)
		}
	}
}
