package kernel

import (
	"fmt"
	"strings"
)

// Float is the element type: float32 for normal use, float64 for checking gradients.
type Float interface{ float32 | float64 }

// set is one implementation of the kernels for T. Only the choice of a set selects faster code, which is for float32
// alone.
type set[T Float] struct {
	name        string
	matMul      func(c, a, b, bias []T, m, n, k int, act Act)
	matMulTN    func(c, a, b []T, m, n, k int)
	matMulNT    func(c, a, b []T, m, n, k int, scratch []T)
	colSums     func(dst, a []T, m, n int)
	activate    func(dst, src []T, act Act)
	actGrad     func(dst, y, dy []T, act Act)
	exp         func(dst, src []T)
	logSoftmax  func(dst, src, mask []T, m, n int)
	convolve    func(y, x, w, bias []T, rows, filters int, g *Conv, act Act, scratch []T)
	convGradW   func(dw, x, dy []T, rows, filters int, g *Conv, scratch []T)
	convGradX   func(dx, dy, w, y []T, rows, filters int, g *Conv, act Act, scratch []T)
	addRows     func(dst, x, context []T, n, k, h int, act Act)
	sumRows     func(dst, x []T, n, k, h int, div T)
	maxRows     func(dst, x []T, n, k, h int)
	maxRowsGrad func(dst, x, top, dy []T, n, k, h int)
	layerNorm   func(dst, x, gamma, beta []T, n, h int)
	add         func(dst, a, b []T)
	adam        func(p, g, m, v []float32, s AdamStep)
	sumSquares  func(x []float32) float64

	layerNormGrad      func(dx, x, gamma, dy []T, n, h int)
	layerNormGradGamma func(dgamma, x, dy []T, n, h int, scratch []T)
	attend             func(dst, qkv []T, rows, width, heads int, scratch []T)
	attendGrad         func(dqkv, qkv, dy []T, rows, width, heads int, scratch []T)
}

// portable is the set that runs everywhere, and the only one of float64.
var portable, portable64 = portableOf[float32](), portableOf[float64]()

func portableOf[T Float]() set[T] {
	return set[T]{
		name:               "portable",
		matMul:             matMul[T],
		matMulTN:           matMulTN[T],
		matMulNT:           matMulNT[T],
		colSums:            colSums[T],
		activate:           activate[T],
		actGrad:            actGrad[T],
		exp:                expAll[T],
		logSoftmax:         logSoftmax[T],
		convolve:           convolve[T],
		convGradW:          convGradW[T],
		convGradX:          convGradX[T],
		addRows:            addRows[T],
		sumRows:            sumRows[T],
		maxRows:            maxRows[T],
		maxRowsGrad:        maxRowsGrad[T],
		layerNorm:          layerNorm[T],
		add:                add[T],
		adam:               adam,
		sumSquares:         sumSquares,
		layerNormGrad:      layerNormGrad[T],
		layerNormGradGamma: layerNormGradGamma[T],
		attend:             attend[T],
		attendGrad:         attendGrad[T],
	}
}

// inUse returns the set in use for T.
func inUse[T Float]() *set[T] {
	if s, ok := any(active).(*set[T]); ok {
		return s
	}
	return any(&portable64).(*set[T])
}

// sets are the sets that this machine can run for float32, the fastest first.
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
	return fmt.Errorf("kernel: set %q, want %s or one that this machine can run: %s", name, Auto,
		strings.Join(Sets(), ", "))
}
