package boost

import (
	"context"
	"math"
	"slices"
	"testing"
)

func TestBinsHoldNearlyEqualNumbers(t *testing.T) {
	src := stream(t, "bins")
	var values []float32
	for range 10_000 {
		values = append(values, src.Float32())
	}
	to := bounds(slices.Clone(values), 100)
	if len(to) != 100 || !slices.IsSorted(to) || !math.IsInf(float64(to[99]), 1) {
		t.Fatalf("%d bounds: %v", len(to), to)
	}
	counts := make([]int, len(to))
	c := column{bounds: to}
	for _, x := range values {
		counts[c.bin(x)]++
	}
	if slices.Min(counts) < 90 || slices.Max(counts) > 110 {
		t.Errorf("bins hold %v values", counts)
	}
}

// Nine of ten values are 2.75, which takes one bin; 0, 0.1, … 9.9 are shared out over the other ten. The bin before
// 2.75 holds only 2 to 2.7, and ends there all the same.
func TestAHeavyValueHasABinOfItsOwn(t *testing.T) {
	var values []float32
	for i := range 1000 {
		if i%10 > 0 {
			values = append(values, 2.75)
		} else {
			values = append(values, float32(i)/100)
		}
	}
	to := bounds(values, 11)
	if len(to) < 10 {
		t.Errorf("%d bins, want 10 or 11: %v", len(to), to)
	}
	c := column{bounds: to}
	if c.bin(2.75) == c.bin(2.7) || c.bin(2.75) == c.bin(2.8) {
		t.Errorf("2.75 shares a bin with 2.7 or 2.8: %v", to)
	}
}

func TestBinsAreAsTheBoundsSay(t *testing.T) {
	src := stream(t, "cells")
	inf := float32(math.Inf(1))
	special := []float32{nan, inf, -inf, math.MaxFloat32, -math.MaxFloat32, 0, float32(math.Copysign(0, -1)),
		math.SmallestNonzeroFloat32}
	for range 300 {
		n, limit := 1+src.IntN(60), 2+src.IntN(20)
		rows := make([]float32, 2*n)
		for i := range rows {
			switch src.IntN(3) {
			case 0:
				rows[i] = special[src.IntN(len(special))]
			case 1:
				rows[i] = float32(src.IntN(10))
			default:
				rows[i] = float32(src.NormFloat64())
			}
		}
		tb, err := newTable(context.Background(), rows, 2, limit, 1)
		if err != nil {
			t.Fatal(err)
		}
		for k, c := range tb.columns {
			if len(c.bounds) > limit || !slices.IsSorted(c.bounds) ||
				len(slices.Compact(slices.Clone(c.bounds))) != len(c.bounds) {
				t.Fatalf("bounds %v, want at most %d, ascending", c.bounds, limit)
			}
			used := make([]bool, len(c.bounds)+1)
			for r := range n {
				x, bin := rows[2*r+c.feature], int(tb.cells[r*len(tb.columns)+k])
				used[bin] = true
				if x != x {
					if bin != len(c.bounds) {
						t.Fatalf("NaN is in bin %d of %d", bin, len(c.bounds))
					}
					continue
				}
				if x > c.bounds[bin] || bin > 0 && x <= c.bounds[bin-1] {
					t.Fatalf("%v is in bin %d of %v", x, bin, c.bounds)
				}
			}
			if i := slices.Index(used[:len(c.bounds)], false); i >= 0 {
				t.Fatalf("bin %d of %v is empty: %v", i, c.bounds, rows)
			}
		}
	}
}

func TestQuantileIsThatOfTheSortedValues(t *testing.T) {
	src := stream(t, "quantile")
	for range 3000 {
		n, kinds := 1+src.IntN(200), 1+src.IntN(300)
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(src.IntN(kinds))
			if kinds > 250 {
				v[i] = float64(i * (n - i)) // up and down
			}
		}
		sorted := slices.Sorted(slices.Values(v))
		level := src.Float64()
		at := min(max(level*float64(n+1)-1, 0), float64(n-1))
		low, high := sorted[int(at)], sorted[min(int(at)+1, n-1)]
		want := low + (at-math.Floor(at))*(high-low)
		if got := quantile(v, level); math.Abs(got-want) > 1e-9 {
			t.Fatalf("quantile %v of %v is %v, want %v", level, sorted, got, want)
		}
		if !slices.Equal(slices.Sorted(slices.Values(v)), sorted) {
			t.Fatal("values have been lost")
		}
	}
}
