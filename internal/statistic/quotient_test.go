package statistic

import (
	"math"
	"testing"
)

// The quotient of sums has no width where it is the same in all units, and no interval with few units; on values with a
// known jackknife it has that standard error.
func TestQuotient95(t *testing.T) {
	b := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	half := make([]float64, len(b))
	for i, x := range b {
		half[i] = -x / 2
	}
	if r, se, ci := Quotient95(half, b); r != -.5 || se != 0 || ci[0] != ci[1] {
		t.Errorf("a constant quotient: %v ± %v %v", r, se, ci)
	}
	a := []float64{2, 1}
	// Leaving out a unit gives 1/1 and 2/1: se = √(1/2 · (1/4 + 1/4)) = 1/2.
	if r, se, ci := Quotient95(a, []float64{1, 1}); r != 1.5 || math.Abs(se-.5) > 1e-12 || ci.Known() {
		t.Errorf("two units: %v ± %v %v, want 1.5 ± 0.5 without an interval", r, se, ci)
	}
	noisy := []float64{1, -1, 1, -1, 1, -1, 1, -1, 1, -1}
	if r, se, ci := Quotient95(noisy, b); r != 0 || !(se > 0) || !(ci[0] < 0 && 0 < ci[1]) {
		t.Errorf("a numerator of any sign: %v ± %v %v", r, se, ci)
	}
	if r, se, ci := Quotient95(a[:1], b[:1]); r != 2 || !math.IsNaN(se) || ci.Known() {
		t.Errorf("one unit: %v ± %v %v", r, se, ci)
	}
}
