package dagplace

import (
	"math"
	"math/rand/v2"
)

// Pull is one whale's step of the whale optimisation algorithm (Mirjalili and Lewis 2016): how strongly it moves, and
// towards whom.
type Pull struct {
	A      float64 // coefficient, from -a to a
	Spiral bool    // along a spiral around the leader, not straight
	Random bool    // towards a random whale, for |A| >= 1
}

// NewPull draws the step of one whale after a share of the iterations: a falls from 2 to 0.
func NewPull(share float64, src *rand.Rand) Pull {
	a := 2 * (1 - share)
	p := Pull{A: 2*a*src.Float64() - a}
	p.Random = math.Abs(p.A) >= 1
	p.Spiral = src.Float64() > 0.5 && !p.Random
	return p
}

// Factor draws the multiple of the distance that one coordinate moves by; b is the shape of the spiral.
func (p Pull) Factor(b float64, src *rand.Rand) float64 {
	if !p.Spiral {
		return p.A
	}
	l := 2*src.Float64() - 1
	return math.Exp(b*l) * math.Cos(2*math.Pi*l)
}

// Hopes fills hope with where each task is wished to be in running-time space: around target's position, at a distance
// that follows from that of current, on either side (the update of the WORL-RTGS authors' published code).
func (p Pull) Hopes(hope, target, current []float64, b float64, src *rand.Rand) {
	for i, t := range target {
		d := p.Factor(b, src) * (t - current[i])
		if src.Uint64()&1 == 0 {
			d = -d
		}
		hope[i] = t + d
	}
}
