package kernel

import (
	"fmt"
	"strings"

	"golang.org/x/exp/constraints"
)

// Float is the element type: float32 for normal use, float64 for checking gradients.
type Float interface{ constraints.Float }

// set is one implementation of the float32 kernels. Only the choice of a set selects faster code.
type set struct {
	name        string
	matMul      func(c, a, b, bias []float32, m, n, k int, act Act)
	matMulTN    func(c, a, b []float32, m, n, k int)
	matMulNT    func(c, a, b []float32, m, n, k int, scratch []float32)
	colSums     func(dst, a []float32, m, n int)
	activate    func(dst, src []float32, act Act)
	actGrad     func(dst, y, dy []float32, act Act)
	exp         func(dst, src []float32)
	logSoftmax  func(dst, src, mask []float32, m, n int)
	convolve    func(y, x, w, bias []float32, rows, filters int, g *Conv, act Act, scratch []float32)
	convGradW   func(dw, x, dy []float32, rows, filters int, g *Conv, scratch []float32)
	convGradX   func(dx, dy, w, y []float32, rows, filters int, g *Conv, act Act, scratch []float32)
	addRows     func(dst, x, context []float32, n, k, h int, act Act)
	sumRows     func(dst, x []float32, n, k, h int, div float32)
	maxRows     func(dst, x []float32, n, k, h int)
	maxRowsGrad func(dst, x, top, dy []float32, n, k, h int)
	layerNorm   func(dst, x, gamma, beta []float32, n, h int)
	add         func(dst, a, b []float32)
	adam        func(p, g, m, v []float32, s AdamStep)
	sumSquares  func(x []float32) float64

	layerNormGrad      func(dx, x, gamma, dy []float32, n, h int)
	layerNormGradGamma func(dgamma, x, dy []float32, n, h int, scratch []float32)
	attend             func(dst, qkv []float32, rows, width, heads int, scratch []float32)
	attendGrad         func(dqkv, qkv, dy []float32, rows, width, heads int, scratch []float32)
}

var portable = set{
	name:        "portable",
	matMul:      matMul[float32],
	matMulTN:    matMulTN[float32],
	matMulNT:    matMulNT[float32],
	colSums:     colSums[float32],
	activate:    activate[float32],
	actGrad:     actGrad[float32],
	exp:         expAll[float32],
	logSoftmax:  logSoftmax[float32],
	convolve:    convolve[float32],
	convGradW:   convGradW[float32],
	convGradX:   convGradX[float32],
	addRows:     addRows[float32],
	sumRows:     sumRows[float32],
	maxRows:     maxRows[float32],
	maxRowsGrad: maxRowsGrad[float32],
	layerNorm:   layerNorm[float32],
	add:         add[float32],
	adam:        adam,
	sumSquares:  sumSquares,

	layerNormGrad:      layerNormGrad[float32],
	layerNormGradGamma: layerNormGradGamma[float32],
	attend:             attend[float32],
	attendGrad:         attendGrad[float32],
}

// sets are the sets that this machine can run, the fastest first.
var sets = append(fast(), &portable)

var active = sets[0]

// Set returns the name of the implementation in use. Sets differ in the last bits of their results, so logs and
// checkpoints name the set that they come from.
func Set() string { return active.name }

// Sets returns the names of the sets that this machine can run, the fastest first.
func Sets() []string {
	var names []string
	for _, s := range sets {
		names = append(names, s.name)
	}
	return names
}

// Auto is the name with which Use selects the fastest set.
const Auto = "auto"

// Use selects the set called name, or the fastest for Auto. Call it before anything is computed.
func Use(name string) error {
	if name == Auto {
		active = sets[0]
		return nil
	}
	for _, s := range sets {
		if s.name == name {
			active = s
			return nil
		}
	}
	return fmt.Errorf("kernel: set %q, want %s or one that this machine can run: %s", name, Auto, strings.Join(Sets(), ", "))
}

// f32 returns x as a []float32, and whether it is one.
func f32[T Float](x []T) ([]float32, bool) {
	y, ok := any(x).([]float32)
	return y, ok
}

func as32[T Float](x []T) []float32 {
	y, _ := any(x).([]float32)
	return y
}
