package kernel

import (
	"flag"
	"fmt"
	"math"
	"testing"
	"time"
)

// kernels selects a slower set for a comparison: kernel.test -test.bench MatMul -kernels avx2.
var kernels = flag.String("kernels", Auto, "set of float32 kernels of BenchmarkMatMul")

// best runs f in rounds of some calls and reports the best round beside the mean: the cost of the work when no other
// program interferes.
func best(b *testing.B, some int, flops float64, f func()) {
	b.ReportAllocs()
	least := time.Duration(math.MaxInt64)
	for b.Loop() {
		at := b.Elapsed()
		for range some {
			f()
		}
		least = min(least, b.Elapsed()-at)
	}
	ns := float64(least.Nanoseconds()) / float64(some)
	b.ReportMetric(ns, "best-ns")
	if flops > 0 {
		b.ReportMetric(flops/ns, "GFLOP/s")
	}
}

// Square products and those of training steps, in the three transposes.
func BenchmarkMatMul(b *testing.B) {
	if err := Use(*kernels); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = Use(Auto) }() // Auto always exists
	for _, s := range [][3]int{{64, 64, 64}, {128, 128, 128}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024},
		{64, 64, 128}, {64, 8, 64}, {128, 2, 64},
		{128, 64, 4}, {1, 64, 128}, {1, 256, 256}, {4, 64, 64}, {4096, 32, 144}, {16384, 16, 9}, {32, 64, 4096}} {
		m, n, k := s[0], s[1], s[2]
		x, y, z := make([]float32, m*k), make([]float32, n*k), make([]float32, m*n)
		d, w, t := make([]float32, m*n), make([]float32, k*n), make([]float32, k*n)
		for _, c := range []struct {
			name string
			run  func()
		}{
			{"NN", func() { MatMul(z, x, y, nil, m, n, k, Identity) }},
			{"TN", func() { MatMulTN(w, x, d, m, n, k) }},
			{"NT", func() { MatMulNT(x, d, w, m, k, n, t) }},
		} {
			b.Run(fmt.Sprintf("%s/m%d-n%d-k%d", c.name, m, n, k), func(b *testing.B) {
				flops := float64(2 * m * n * k)
				best(b, int(max(1, 1e6/flops)), flops, c.run)
			})
		}
	}
}
