package statistic

import (
	"math"
	"testing"

	"clustergym/internal/rng"
)

func TestMSERFindsTheEndOfTheWarmUp(t *testing.T) {
	r := rng.Stream(1, "mser")
	transient := make([]float64, 1000)
	for i := range transient {
		transient[i] = 100*math.Exp(-float64(i)/30) + r.NormFloat64()
	}
	if d, ok := MSER(transient, 5); !ok || d < 90 || d > 250 || d%5 != 0 {
		t.Errorf("a decay over 30 observations: %d, %v", d, ok)
	}
	growing := make([]float64, 1000)
	for i := range growing {
		growing[i] = float64(i)
	}
	if d, ok := MSER(growing, 5); ok || d != 500 {
		t.Errorf("a series that grows throughout: %d, %v", d, ok)
	}
	constant := []float64{3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}
	if d, ok := MSER(constant, 5); !ok || d != 0 {
		t.Errorf("a constant series: %d, %v", d, ok)
	}
	// By hand, with batches of one: the squared errors after 0 to 3 of 10 0 0 1 0 0 are 2.25, 0.032, 0.047 and 0.074.
	if d, ok := MSER([]float64{10, 0, 0, 1, 0, 0}, 1); !ok || d != 1 {
		t.Errorf("10 0 0 1 0 0: %d, %v, want 1", d, ok)
	}
	for _, short := range [][]float64{nil, {1, 2, 3, 4, 5, 6, 7, 8, 9}} {
		if d, ok := MSER(short, 5); ok || d != 0 {
			t.Errorf("%v: %d, %v", short, d, ok)
		}
	}
}

// The integrated time of a first-order autoregression with coefficient c is (1+c)/(1−c).
func TestAutocorrelationTimeOfAnAutoregression(t *testing.T) {
	for _, c := range []float64{0, .5, .8, .9} {
		r := rng.Stream(1, "autocorrelation")
		x := make([]float64, 50_000)
		for i := 1; i < len(x); i++ {
			x[i] = c*x[i-1] + r.NormFloat64()
		}
		want := (1 + c) / (1 - c)
		if got := AutocorrelationTime(x); math.Abs(got-want) > .08*want {
			t.Errorf("coefficient %v: %v, want about %v", c, got, want)
		}
	}
}

func TestAutocorrelationTimeOfOddSeries(t *testing.T) {
	alternating, growing := make([]float64, 100), make([]float64, 100)
	for i := range alternating {
		alternating[i], growing[i] = float64(i%2), float64(i)
	}
	for _, x := range [][]float64{nil, {1}, {2, 2, 2, 2}, {.1, .1, .1}, alternating} {
		if got := AutocorrelationTime(x); got != 1 {
			t.Errorf("%v: %v, want 1", x, got)
		}
	}
	if got := AutocorrelationTime(growing); got < 20 {
		t.Errorf("a series that grows throughout: %v, want a large part of its 100", got)
	}
}
