package kernel

import (
	"math"
	"testing"
)

// The moments of parameters whose gradients stay 0 end at 0, on every set, and are never subnormal on the way; NaN
// stays NaN.
func TestAdamsMomentsEndAtZeroWithoutSubnormals(t *testing.T) {
	const n, smallest = 37, 0x1p-126
	step := AdamStep{Beta1: 0.9, Beta2: 0.5, Rest1: 0.1, Rest2: 0.5, Rate: 1e-3, Root: 1, Eps: 1e-8}
	for _, s := range sets {
		p, g, m, v := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
		for i := range m {
			m[i], v[i] = float32(i-n/2), float32(i)
		}
		m[3], v[5] = float32(math.NaN()), float32(math.NaN())
		for range 900 {
			s.adam(p, g, m, v, step)
			for i := range m {
				for what, x := range map[string]float32{"first": m[i], "second": v[i]} {
					if size := math.Abs(float64(x)); size > 0 && size < smallest {
						t.Fatalf("%s: %s moment %d is %v", s.name, what, i, x)
					}
				}
			}
		}
		for i := range m {
			if nan := m[i] != m[i]; nan != (i == 3) || !nan && m[i] != 0 {
				t.Errorf("%s: first moment %d ends at %v", s.name, i, m[i])
			}
			if nan := v[i] != v[i]; nan != (i == 5) || !nan && v[i] != 0 {
				t.Errorf("%s: second moment %d ends at %v", s.name, i, v[i])
			}
		}
	}
}

// A network half of whose units have died must not take longer per step than others.
func BenchmarkAdam(b *testing.B) {
	const n = 1 << 16
	for _, c := range []struct {
		name string
		grad float32
	}{{"alive", 1}, {"dead", 0}} {
		b.Run(c.name, func(b *testing.B) {
			p, g, m, v := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range m {
				g[i], m[i], v[i] = c.grad, 0x1p-110, 1
			}
			step := AdamStep{Beta1: 0.999, Beta2: 1, Rest1: 0.001, Rest2: 0, Rate: 1e-9, Root: 1, Eps: 1e-8}
			b.ReportAllocs()
			for b.Loop() {
				Adam(p, g, m, v, step)
			}
		})
	}
}
