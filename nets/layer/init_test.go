package layer

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"clustergym/internal/rng"
	"clustergym/nets"
)

func view(shape ...int) *nets.View {
	return &nets.NewParams([]nets.View{{Name: "w", Shape: shape}}).Views[0]
}

func TestOrthogonalBothWays(t *testing.T) {
	for _, shape := range [][]int{{64, 64}, {128, 8}, {8, 128}, {1, 5}, {5, 1}, {4, 4, 3, 16}, {2, 1, 2, 16}, {7}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			const gain = 1.7
			v := view(shape...)
			Orthogonal(v, gain, rng.Stream(1, "orthogonal"))
			rows, cols := matrix(v)
			n, m := rows, cols // m vectors of n elements must be orthonormal
			at := func(vec, i int) float64 { return float64(v.Data[i*cols+vec]) }
			if rows < cols {
				n, m = cols, rows
				at = func(vec, i int) float64 { return float64(v.Data[vec*cols+i]) }
			}
			for a := 0; a < m; a++ {
				for b := 0; b <= a; b++ {
					dot, want := 0.0, 0.0
					for i := 0; i < n; i++ {
						dot += at(a, i) * at(b, i)
					}
					if a == b {
						want = gain * gain
					}
					if math.Abs(dot-want) > 1e-5 {
						t.Fatalf("vectors %d and %d have product %v, want %v", a, b, dot, want)
					}
				}
			}
		})
	}
}

// A uniform orthogonal 2×2 matrix is a rotation as often as a reflection, and its first entry is the cosine of a
// uniform angle: mean 0, mean square 1/2.
func TestOrthogonalIsUniform(t *testing.T) {
	r := rng.Stream(2, "uniform")
	v := view(2, 2)
	const n = 4000
	mean, square, rotations := 0.0, 0.0, 0.0
	for i := 0; i < n; i++ {
		Orthogonal(v, 1, r)
		x := float64(v.Data[0])
		mean += x / n
		square += x * x / n
		if v.Data[0]*v.Data[3]-v.Data[1]*v.Data[2] > 0 {
			rotations += 1.0 / n
		}
	}
	if math.Abs(mean) > 0.05 || math.Abs(square-0.5) > 0.03 || math.Abs(rotations-0.5) > 0.04 {
		t.Errorf("mean %.3f, mean square %.3f, rotations %.3f; want 0, 0.5, 0.5", mean, square, rotations)
	}
}

func TestInitialisersRepeat(t *testing.T) {
	a, b := view(30, 20), view(30, 20)
	Orthogonal(a, 1, rng.Stream(3, "x"))
	Orthogonal(b, 1, rng.Stream(3, "x"))
	if !slices.Equal(a.Data, b.Data) {
		t.Error("one stream gave two matrices")
	}
	Orthogonal(b, 1, rng.Stream(3, "y"))
	if slices.Equal(a.Data, b.Data) {
		t.Error("two streams gave one matrix")
	}
}

func TestFanInAndConstant(t *testing.T) {
	v := view(3, 3, 4, 50) // 36 inputs
	FanIn(v, rng.Stream(4, "fan"))
	top, mean := 0.0, 0.0
	for _, x := range v.Data {
		top = max(top, math.Abs(float64(x)))
		mean += float64(x) / float64(len(v.Data))
	}
	if top > 1.0/6 || top < 0.16 || math.Abs(mean) > 0.01 {
		t.Errorf("bound %v and mean %v, want 1/6 and 0", top, mean)
	}
	Constant(v, 2)
	if slices.Min(v.Data) != 2 || slices.Max(v.Data) != 2 {
		t.Error("Constant did not fill the view")
	}
}

func BenchmarkOrthogonal(b *testing.B) {
	v := view(2160, 256)
	r := rng.Stream(5, "bench")
	for b.Loop() {
		Orthogonal(v, 1, r)
	}
}
