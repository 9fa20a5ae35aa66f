package kernel

import "math"

// tinyMoment is the size below which Adam's moments become 0.
const tinyMoment = 0x1p-100

// AdamStep holds the numbers of one Adam update, see Adam.
type AdamStep struct {
	Beta1, Beta2 float32 // decay of the moments
	Rest1, Rest2 float32 // 1 - decay, rounded once: 1 - float32(0.999) is off in the fifth digit
	Rate         float32 // learning rate / (1 - beta1^t)
	Root         float32 // 1 / sqrt(1 - beta2^t)
	Eps          float32
}

// Adam updates parameters p and moments m, v by gradient g (Kingma and Ba 2015, algorithm 1):
//
//	m = Beta1·m + Rest1·g,  v = Beta2·v + Rest2·g²,  p = p - Rate·m / (sqrt(v)·Root + Eps)
//
// All four have the same length. A moment that has shrunk below 2^-100 becomes 0. It no longer changes anything, and
// shrinking further it would become a subnormal number, with which processors compute a hundred times slower. The
// moments of units that have died get there within a thousand steps.
func Adam(p, g, m, v []float32, s AdamStep) { active.adam(p, g, m, v, s) }

func adam(p, g, m, v []float32, s AdamStep) {
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	b1, b2, rate, root, eps := s.Beta1, s.Beta2, s.Rate, s.Root, s.Eps
	c1, c2 := s.Rest1, s.Rest2
	for i := range p {
		x := g[i]
		mi := b1*m[i] + c1*x
		vi := b2*v[i] + c2*x*x
		if mi < tinyMoment && mi > -tinyMoment {
			mi = 0
		}
		if vi < tinyMoment {
			vi = 0
		}
		m[i], v[i] = mi, vi
		p[i] -= rate * mi / (float32(math.Sqrt(float64(vi)))*root + eps)
	}
}

// SumSquares returns the sum of the squares of x in float64, in four interleaved sums that are then added in order.
func SumSquares(x []float32) float64 { return active.sumSquares(x) }

func sumSquares(x []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(x) >= 4 {
		a, b, c, d := float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3])
		s0 += a * a
		s1 += b * b
		s2 += c * c
		s3 += d * d
		x = x[4:]
	}
	for _, a := range x {
		s0 += float64(a) * float64(a)
	}
	return s0 + s1 + s2 + s3
}
