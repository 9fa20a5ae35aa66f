package predict

import (
	"time"

	"clustergym/internal/snap"
)

// Calibration moves quantiles so that the right share of the jobs outlives them. Run times change with time, so the
// next one lies outside the quantiles of the last ones more often than it should. Each quantile but the median
// therefore has a factor: a job that outlives the quantile of level p raises it by the share step·p, another lowers it
// by step·(1−p), so that in the long run a share 1−p outlives it (adaptive conformal inference: Gibbs and Candès,
// NeurIPS 2021).
type Calibration struct{ factor [Quantiles]float64 }

const (
	step   = 0.02
	widest = 50 // a factor is at most this, and at least its inverse
)

// usual are the factors at the start: about those that recorded logs end with.
var usual = [Quantiles]float64{0.6, 0.85, 1, 1.2, 1.6}

// Reset sets the factors at the start.
func (c *Calibration) Reset() { c.factor = usual }

// Apply multiplies the quantiles q by their factors; those below the median stay below it, those above stay above.
func (c *Calibration) Apply(q *[Quantiles]float64) {
	m := q[median]
	for i := range q {
		x := q[i] * c.factor[i]
		switch {
		case i < median:
			q[i] = min(x, m)
		case i > median:
			q[i] = max(x, m)
		}
	}
}

// Learn takes in that a job with the quantiles q has run for ran.
func (c *Calibration) Learn(q *[Quantiles]time.Duration, ran time.Duration) {
	for i, p := range Levels {
		switch {
		case i == median:
		case ran > q[i]:
			c.factor[i] = min(c.factor[i]*(1+step*p), widest)
		default:
			c.factor[i] = max(c.factor[i]*(1-step*(1-p)), 1.0/widest)
		}
	}
}

// Code appends the factors to a snapshot or reads them from one. It reports whether the factors can be such.
func (c *Calibration) Code(k *snap.Codec) bool {
	ok := true
	for i := range c.factor {
		k.F64(&c.factor[i])
		ok = ok && c.factor[i] >= 1.0/widest && c.factor[i] <= widest
	}
	return ok
}
