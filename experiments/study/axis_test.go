package study

import (
	"math"
	"testing"
)

func TestTicksAreRoundAndInsideTheAxis(t *testing.T) {
	for _, c := range []struct {
		values    []float64
		log, zero bool
	}{
		{[]float64{1, 2, 3}, false, false}, {[]float64{5, 5}, false, false}, {[]float64{-3, 7}, false, true},
		{[]float64{1e-7, 3e-7}, false, false},
		{[]float64{1, 1e6}, true, false}, {[]float64{3, 4}, true, false}, {[]float64{math.NaN()}, false, false},
		{nil, true, false}, {[]float64{0, 123456}, false, true},
	} {
		a := newAxis(c.values, c.log, c.zero, 0, 100)
		if len(a.ticks) < 1 || len(a.ticks) > 14 {
			t.Errorf("%v: ticks %v", c.values, a.ticks)
		}
		for _, v := range a.ticks {
			if at := a.at(v); at < -1e-6 || at > 100+1e-6 {
				t.Errorf("%v: tick %v stands at %v", c.values, v, at)
			}
		}
		for _, v := range c.values {
			if at := a.at(v); !math.IsNaN(v) && (at < -1e-6 || at > 100+1e-6) {
				t.Errorf("%v: value %v stands at %v", c.values, v, at)
			}
		}
	}
}
