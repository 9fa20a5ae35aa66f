package optim

import (
	"math"

	"clustergym/nets"
	"clustergym/nets/kernel"
)

// GlobalNorm returns the Euclidean norm of all of g, summed in float64 in a fixed order.
func GlobalNorm(g *nets.Params) float64 { return math.Sqrt(kernel.SumSquares(g.Data)) }

// ClipGlobalNorm scales g down so that its Euclidean norm is at most max, and returns the norm it had before (Pascanu
// et al. 2013, algorithm 1). max 0 or less does not clip. If the norm is not finite, g stays unchanged, because no
// scaling can repair it; the caller sees the norm in the result.
func ClipGlobalNorm(g *nets.Params, max float64) (norm float64) {
	norm, scale := ClipScale(g, max)
	if scale == 1 {
		return norm
	}
	for i := range g.Data {
		g.Data[i] *= float32(scale)
	}
	return norm
}

// ClipScale returns g's norm and the factor by which ClipGlobalNorm would scale g, 1 if it would not change it.
func ClipScale(g *nets.Params, max float64) (norm, scale float64) {
	norm = GlobalNorm(g)
	if max <= 0 || !(norm > max) || math.IsInf(norm, 1) {
		return norm, 1
	}
	return norm, max / norm
}
