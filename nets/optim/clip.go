package optim

import (
	"math"

	"clustergym/nets"
	"clustergym/nets/kernel"
)

// GlobalNorm returns the Euclidean norm of all of g, summed in float64 in a fixed order.
func GlobalNorm(g *nets.Params) float64 { return math.Sqrt(kernel.SumSquares(g.Data)) }

// ClipScale returns g's Euclidean norm and the factor by which to scale g so that the norm is at most max (Pascanu et
// al. 2013, algorithm 1): 1 if it is already. max 0 or less does not clip. The factor of a norm that is not finite is 1
// as well: no scaling can mend it, and the caller sees it in the norm.
func ClipScale(g *nets.Params, most float64) (norm, scale float64) {
	norm = GlobalNorm(g)
	if most <= 0 || !(norm > most) || math.IsInf(norm, 1) {
		return norm, 1
	}
	return norm, most / norm
}
