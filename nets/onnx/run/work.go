package run

import (
	"context"
	"math"

	"clustergym/nets/kernel"
)

// The work that a model may ask for, in multiplications: those of products and convolutions, and perElement for each
// number that another operator reads or writes. ResNet-50, at 4.1 billion an image, is about the largest model that
// fits; policies take millions. Weights of the largest file may be put in another order once.
const (
	mostFolding = 1 << 33 // of nodes whose result does not depend on the inputs
	mostWork    = 1 << 32 // of all others, for a row
	perElement  = 16
)

// between is how much work is done before a program looks whether it should end: some tens of milliseconds.
const between = 1 << 28

// mostKept bounds the memory of intermediate results that a program keeps for all numbers of rows together, in bytes.
const mostKept = 1 << 30

// times returns a product of sizes, at most the largest int.
func times(sizes ...int) int {
	n := 1
	for _, s := range sizes {
		if s == 0 {
			return 0
		}
		if n > math.MaxInt/s {
			return math.MaxInt
		}
		n *= s
	}
	return n
}

// plus returns a sum, at most the largest int.
func plus(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// costOf returns the work of a step that reads from and writes to, with the multiplications of products.
func costOf(products int, from, to []*tensor) int {
	elements := 0
	for _, list := range [][]*tensor{from, to} {
		for _, t := range list {
			if t != nil {
				elements = plus(elements, t.len())
			}
		}
	}
	return plus(products, times(perElement, elements))
}

// afford counts the work of a step of the present node, and refuses what takes too much.
func (c *compiler) afford(cost int, now bool) {
	if now {
		if c.folded = plus(c.folded, cost); c.folded > mostFolding {
			c.refuse("it takes some %d multiplications before there is any input, and the model %d with it, "+
				"want at most %d in all", cost, c.folded, mostFolding)
		}
		return
	}
	if c.work = plus(c.work, cost); c.work/c.rows > mostWork {
		c.refuse("it takes some %d multiplications for each row, and the model %d with it, want at most %d in all",
			cost/c.rows, c.work/c.rows, mostWork)
	}
}

// until makes long steps end early once ctx is done. finish ends that.
func (i *Instance) until(ctx context.Context) { i.done = ctx.Done() }

func (i *Instance) finish() { i.done = nil }

// stopped reports whether the context of until is done.
func (i *Instance) stopped() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// product is kernel.MatMul that ends early when the instance is stopped; y is then not whole.
func (i *Instance) product(y, a, b, bias []float32, m, n, k int, act kernel.Act) {
	rows := max(1, between/max(1, times(n, k)))
	if m <= rows {
		kernel.MatMul(y, a, b, bias, m, n, k, act)
		return
	}
	for at := 0; at < m && !i.stopped(); at += rows {
		r := min(rows, m-at)
		kernel.MatMul(y[at*n:][:r*n], a[at*k:][:r*k], b, bias, r, n, k, act)
	}
}

// convolution is kernel.Convolve that ends early when the instance is stopped.
func (i *Instance) convolution(y, x, w, bias []float32, images, filters int, g *kernel.Conv, act kernel.Act,
	scratch []float32) {
	size, out := g.H*g.W*g.C, g.OutH()*g.OutW()*filters
	step := max(1, between/max(1, times(out, g.Patch())))
	if images <= step {
		kernel.Convolve(y, x, w, bias, images, filters, g, act, scratch)
		return
	}
	for at := 0; at < images && !i.stopped(); at += step {
		n := min(step, images-at)
		kernel.Convolve(y[at*out:][:n*out], x[at*size:][:n*size], w, bias, n, filters, g, act, scratch)
	}
}
