package encode

import (
	"math"
	"testing"
	"time"
)

// The quick logarithm gives the float32 of the slow one or none, at random times of every length, whole minutes, and on
// both sides of each interval of its table. It gives nearly all.
func TestQuickLogarithmsAreExact(t *testing.T) {
	r := drawn(t, 5)
	given, all := 0, 0
	check := func(x float64) {
		all++
		if v, ok := quickL(x); ok {
			given++
			if want := slowL(x); v != want {
				t.Fatalf("L(%v) is %v, quickly %v", x, want, v)
			}
		}
		if got, want := L(x), slowL(x); got != want {
			t.Fatalf("L(%v) is %v, want %v", x, got, want)
		}
	}
	for range 400_000 {
		check(math.Floor(math.Exp(r.Float64() * math.Log(2*longest*minute))))
		check(float64(1 + r.Int64N(int64(15*24*time.Hour))))
	}
	for k := range 30_000 {
		check(float64(k+1) * minute)
	}
	for e := range 16 {
		for i := range 1 << quickBits {
			y := math.Ldexp(1+float64(i)/(1<<quickBits), e) - 1
			for x := y*minute - 2; x <= y*minute+2 && y > 0; x++ {
				check(x)
			}
		}
	}
	if share := float64(given) / float64(all); share < 0.5 {
		t.Errorf("%v of %d logarithms were quick", share, all)
	}
	for _, x := range []float64{math.Inf(1), math.NaN(), math.SmallestNonzeroFloat64, math.MaxFloat64} {
		if v, ok := quickL(x); ok {
			t.Errorf("L(%v) is %v quickly", x, v)
		}
	}
	if L(math.Inf(1)) != 1 || L(0) != 0 || L(-1) != 0 {
		t.Error("L outside its range")
	}
}
