package sim

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// GPU-time is summed exactly, and rounded once when it is read.
func TestGPUTimeIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got gpuTime
		want := new(big.Int)
		for range rapid.IntRange(1, 20).Draw(t, "stints") {
			milli := rapid.IntRange(0, 1<<24*1000).Draw(t, "milli")
			ns := rapid.Int64Range(0, maxTime).Draw(t, "ns")
			got.add(milli, ns)
			want.Add(want, new(big.Int).Mul(big.NewInt(int64(milli)), big.NewInt(ns)))
		}
		sum := new(big.Int).SetUint64(got.hi)
		sum.Lsh(sum, 64).Add(sum, new(big.Int).SetUint64(got.lo))
		if sum.Cmp(want) != 0 {
			t.Fatalf("got %v, want %v", sum, want)
		}
		exact, _ := new(big.Rat).SetFrac(want, big.NewInt(1000)).Float64()
		if f := got.float(); f < exact*(1-1e-15) || f > exact*(1+1e-15) {
			t.Fatalf("got %v, want %v", f, exact)
		}
	})
	var g gpuTime
	g.add(3000, 1<<53/3)
	if f := g.float(); f != float64(1<<53/3*3) {
		t.Errorf("three GPUs for 2^53/3 ns: %v", f)
	}
}
