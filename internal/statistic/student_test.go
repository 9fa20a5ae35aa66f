package statistic

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The numbers are those of 40-digit arithmetic; the ones with whole degrees of freedom agree with printed tables.
func TestStudentHasTheTabledValues(t *testing.T) {
	for _, c := range [][3]float64{ // t, df, probability above t
		{0.1, 1, 0.46827448256944643},
		{1, 1, 0.25},
		{2.5, 0.5, 0.20048526452664659},
		{0.3, 3.7, 0.39013374356573115},
		{2.262, 9, 0.025006422751227315},
		{1.5, 15, 0.077183330190850164},
		{6, 15, 1.2163272755519274e-5},
		{12, 31, 1.7389634002098702e-13},
		{2, 2.25, 0.084574625221133889},
		{40, 5, 9.2059810858864772e-8},
		{1.96, 1000, 0.025136592477874359},
		{3, 123456, 0.0013501672824286226},
		{0.001, 9, 0.49961196516298663},
		{2, 30000000, 0.022750136447426488},
		{1.96, math.Inf(1), 0.024997895148220435},
		{0, 7, .5},
		{-1, 1, .75},
		{math.Inf(1), 3, 0},
		{math.Inf(-1), 3, 1},
	} {
		if got := StudentTail(c[0], c[1]); math.Abs(got-c[2]) > 1e-9*c[2] {
			t.Errorf("tail of %v with %v degrees of freedom: %v, want %v", c[0], c[1], got, c[2])
		}
	}
	for _, c := range [][3]float64{ // p, df, quantile
		{0.975, 9, 2.2621571627982055},
		{0.975, 15, 2.1314495455597757},
		{0.975, 31, 2.0395134463964085},
		{0.995, 4, 4.6040948713499932},
		{0.8, 15, 0.86624497319495158},
		{0.9, 2.5, 1.7302509288071766},
		{0.9995, 1, 636.61924876871962},
		{0.975, 0.7, 36.611415031588697},
		{0.975, 100000, 1.9599877075346096},
		{0.6, 12, 0.25903274567688706},
		{0.025, 9, -2.2621571627982055},
		{0.975, math.Inf(1), 1.9599639845400545},
		{0.5, 4, 0},
	} {
		if got := StudentQuantile(c[0], c[1]); math.Abs(got-c[2]) > 1e-9*math.Abs(c[2]) {
			t.Errorf("quantile %v with %v degrees of freedom: %v, want %v", c[0], c[1], got, c[2])
		}
	}
	for _, c := range [][2]float64{{-.1, 3}, {1.1, 3}, {.5, 0}, {.5, -1}, {math.NaN(), 3}, {.5, math.NaN()}} {
		if got := StudentQuantile(c[0], c[1]); !math.IsNaN(got) {
			t.Errorf("quantile %v with %v degrees of freedom: %v, want NaN", c[0], c[1], got)
		}
	}
	if !math.IsInf(StudentQuantile(1, 3), 1) || !math.IsInf(StudentQuantile(0, 3), -1) {
		t.Error("the quantiles 0 and 1 are finite")
	}
}

func TestStudentTailAndQuantileAreInverses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := math.Exp(rapid.Float64Range(-30, math.Log(.5)).Draw(t, "log tail"))
		df := math.Exp(rapid.Float64Range(-1, 15).Draw(t, "log df"))
		x := -StudentQuantile(q, df)
		if back := StudentTail(x, df); math.Abs(back-q) > 1e-8*q {
			t.Fatalf("the tail of %v with %v degrees of freedom is %v, want %v", x, df, back, q)
		}
		if sum := StudentTail(x, df) + StudentTail(-x, df); math.Abs(sum-1) > 1e-12 {
			t.Fatalf("both tails of %v sum to %v", x, sum)
		}
	})
}
