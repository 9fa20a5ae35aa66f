package kernel

import "testing"

// The peak of the machine: a tile whose operands are always the same few lines of the first-level cache.
func BenchmarkPeak(b *testing.B) {
	const k = 10000
	var x [64]float32
	c := make([]float32, 12*32)
	for _, s := range sets {
		switch s.name {
		case "avx512":
			b.Run(s.name, func(b *testing.B) {
				best(b, 1, 2*12*32*k, func() {
					avx512Gemm12x2(&c[0], &x[0], &x[0], nil, 1, 1, k, 4, 0, 0, 0, 0, 128, 0, 1<<16-1, 0)
				})
			})
		case "avx2":
			b.Run(s.name, func(b *testing.B) {
				best(b, 1, 2*6*16*k, func() {
					avx2Gemm6x2(&c[0], &x[0], &x[0], nil, 1, 1, k, 4, 0, 0, 0, 0, 64, 0, &masks[0], 0)
				})
			})
		}
	}
}
