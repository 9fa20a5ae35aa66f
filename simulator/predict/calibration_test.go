package predict_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/internal/snap"
	"clustergym/simulator/predict"
)

// Quantiles that are wrong, and become wrong in other ways, still cover the right shares of run times in the long run.
func TestCalibrationReachesTheLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var c predict.Calibration
	c.Reset()
	const n = 40_000
	var below [predict.Quantiles]int
	for i := range n {
		sigma := 0.5 + 2*float64(i)/n // run times spread more and more; the forecasts do not know
		ran := time.Duration(1e9 * math.Exp(sigma*r.NormFloat64()))
		q := [predict.Quantiles]float64{0.5e9, 0.9e9, 1e9, 1.1e9, 2e9}
		c.Apply(&q)
		f := predict.Of(&q, 1)
		for k := range f.Q {
			if ran <= f.Q[k] {
				below[k]++
			}
		}
		c.Learn(&f.Q, ran)
	}
	for k, p := range predict.Levels {
		if got := float64(below[k]) / n; math.Abs(got-p) > 0.02 {
			t.Errorf("a share %.3f does not outlive the quantile of level %v", got, p)
		}
	}
}

// The median is left alone, the others stay on their sides of it, and factors have bounds, whatever happens.
func TestCalibrationHasBounds(t *testing.T) {
	for _, ran := range []time.Duration{0, 1, math.MaxInt64} {
		var c predict.Calibration
		c.Reset()
		for range 100_000 {
			q := [predict.Quantiles]time.Duration{10, 20, 30, 40, 50}
			c.Learn(&q, ran)
		}
		q := [predict.Quantiles]float64{1, 2, 3, 4, 5}
		c.Apply(&q)
		if q[2] != 3 || q[0] > 3 || q[1] > 3 || q[3] < 3 || q[4] < 3 {
			t.Errorf("after times of %d the quantiles are %v", ran, q)
		}
		if q[4] > 250.1 || q[0] < 0.0199 {
			t.Errorf("after times of %d a factor is out of bounds: %v", ran, q)
		}
		var d predict.Calibration
		r := reader(t, saved(&c))
		if !d.Code(r.Codec()) || !bytes.Equal(saved(&d), saved(&c)) {
			t.Errorf("after times of %d the factors cannot be read back", ran)
		}
	}
	var c predict.Calibration
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1), 51, 0.019} {
		var b []byte
		for range predict.Quantiles {
			b = snap.F64(b, bad)
		}
		if r := reader(t, b); c.Code(r.Codec()) {
			t.Errorf("factors of %v are read", bad)
		}
	}
}

func saved(c *predict.Calibration) []byte {
	k := snap.Appender(nil)
	c.Code(k)
	return k.Appended()
}

func reader(t *testing.T, b []byte) snap.Reader {
	t.Helper()
	r, err := snap.Open(snap.Seal(append(snap.Begin(nil, "T"), b...), 0), "T")
	if err != nil {
		t.Fatal(err)
	}
	return r
}
