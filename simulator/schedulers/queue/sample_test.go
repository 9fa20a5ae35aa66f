package queue

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The sums are those of a plain list added up from the beginning, bit for bit: of small numbers, of GPU-times whose
// sums are rounded, of numbers full of ties in rounding, and of numbers that are no whole ones.
func TestSampleAgreesWithAdding(t *testing.T) {
	draws := map[string]func(r *rand.Rand) float64{
		"small":    func(r *rand.Rand) float64 { return float64(r.IntN(5)) },
		"times":    func(r *rand.Rand) float64 { return math.Floor(math.Exp(27 + 4*r.NormFloat64())) },
		"ties":     func(r *rand.Rand) float64 { return float64(uint64(1+r.IntN(64)) << r.IntN(48)) },
		"huge":     func(r *rand.Rand) float64 { return math.Floor(math.Exp(40 + 6*r.NormFloat64())) },
		"fraction": func(r *rand.Rand) float64 { return 1e9 * r.Float64() },
		"signed":   func(r *rand.Rand) float64 { return math.Floor(1e15 * (r.Float64() - 0.3)) },
	}
	for name, draw := range draws {
		t.Run(name, func(t *testing.T) {
			var s Sample
			for seed := range uint64(3) {
				r := rand.New(rand.NewPCG(seed, 1))
				s.Reset()
				if n, sum := s.UpTo(1); n != 0 || sum != 0 {
					t.Fatal("an empty list has a sum")
				}
				var list []float64
				for range 3000 {
					x := draw(r)
					i, _ := slices.BinarySearch(list, x)
					list = slices.Insert(list, i, x)
					s.Add(x)
					if r.IntN(20) > 0 {
						continue
					}
					at := draw(r)
					if r.IntN(2) == 0 {
						at = list[r.IntN(len(list))]
					}
					n, sum := 0, 0.0
					for ; n < len(list) && list[n] <= at; n++ {
						sum += list[n]
					}
					if gotN, got := s.UpTo(at); gotN != n || got != sum {
						t.Fatalf("seed %d: the first %d of %d numbers sum to %v, want %d and %v", seed, gotN, len(list), got, n, sum)
					}
				}
			}
		})
	}
}
