package op

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// Dense is act(x·w + b), with x [N, in], w [in, out] and b [out], or nil for none.
func Dense(x, w, b *gorgonia.Node, act Act) *gorgonia.Node {
	xs, ws := shape("dense", x, 2), shape("dense", w, 2)
	m, k, n := xs[0], xs[1], ws[1]
	need(ws[0] == k, "dense: weight %q has shape %v, input has %d columns", w.Name(), ws, k)
	in := []*gorgonia.Node{x, w}
	diff := []bool{true, true}
	if b != nil {
		bs := shape("dense", b, 1)
		need(bs[0] == n, "dense: bias %q has shape %v, weight %v", b.Name(), bs, ws)
		in, diff = append(in, b), append(diff, true)
	}
	return apply(spec{
		name: fmt.Sprintf("dense %v", act),
		out:  tensor.Shape{m, n},
		diff: diff,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			d := actGrad(out, grad, act)
			gs := gorgonia.Nodes{matMulNT(d, in[1]), matMulTN(in[0], d)}
			if len(in) == 3 {
				gs = append(gs, colSums(d))
			}
			return gs
		},
	}, runDense[float32](m, k, n, act), runDense[float64](m, k, n, act), in...)
}

func runDense[T kernel.Float](m, k, n int, act Act) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		var bias []T
		if len(in) == 3 {
			bias = in[2]
		}
		kernel.MatMul(out, in[0], in[1], bias, m, n, k, act)
	}
}

// Activate is act(x) element by element, for any shape.
func Activate(x *gorgonia.Node, act Act) *gorgonia.Node {
	return apply(spec{
		name: fmt.Sprintf("activate %v", act),
		out:  x.Shape(),
		over: 1,
		diff: []bool{true},
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{actGrad(out, grad, act)}
		},
	}, runActivate[float32](act), runActivate[float64](act), x)
}

func runActivate[T kernel.Float](act Act) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.Activate(out, in[0], act) }
}

// actGrad is the gradient before the activation, computed from the value y after it.
func actGrad(y, dy *gorgonia.Node, act Act) *gorgonia.Node {
	if act == Identity {
		return dy
	}
	from := dy
	for {
		o, ok := from.Op().(*Op)
		if ok && o.before != nil {
			return Reshape(o.before(inputs(from), Reshape(y, from.Shape()...), act), y.Shape()...)
		}
		if !ok || !o.view {
			break
		}
		from = inputs(from)[0]
	}
	return apply(spec{name: fmt.Sprintf("actgrad %v", act), out: y.Shape(), over: 2},
		runActGrad[float32](act), runActGrad[float64](act), y, dy)
}

func runActGrad[T kernel.Float](act Act) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.ActGrad(out, in[0], in[1], act) }
}

// matMulTN is aᵀ·b for a [m, k], b [m, n].
func matMulTN(a, b *gorgonia.Node) *gorgonia.Node {
	m, k, n := a.Shape()[0], a.Shape()[1], b.Shape()[1]
	return apply(spec{name: "matmul-tn", out: tensor.Shape{k, n}},
		runMatMulTN[float32](m, n, k), runMatMulTN[float64](m, n, k), a, b)
}

func runMatMulTN[T kernel.Float](m, n, k int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.MatMulTN(out, in[0], in[1], m, n, k) }
}

// matMulNT is a·bᵀ for a [m, k], b [n, k].
func matMulNT(a, b *gorgonia.Node) *gorgonia.Node {
	m, k, n := a.Shape()[0], a.Shape()[1], b.Shape()[0]
	return apply(spec{
		name: "matmul-nt", out: tensor.Shape{m, n}, scratch: n * k,
		before: func(in gorgonia.Nodes, y *gorgonia.Node, act Act) *gorgonia.Node {
			return apply(spec{name: fmt.Sprintf("matmul-nt before %v", act), out: tensor.Shape{m, n}, scratch: n * k},
				runMatMulNT[float32](m, n, k, act), runMatMulNT[float64](m, n, k, act), in[0], in[1], y)
		},
	}, runMatMulNT[float32](m, n, k, Identity), runMatMulNT[float64](m, n, k, Identity), a, b)
}

func runMatMulNT[T kernel.Float](m, n, k int, act Act) runFunc[T] {
	return func(out []T, in [][]T, scratch []T) {
		kernel.MatMulNT(out, in[0], in[1], m, n, k, scratch)
		if act != Identity {
			kernel.ActGrad(out, in[2], out, act)
		}
	}
}

// colSums adds up the rows of x [m, n].
func colSums(x *gorgonia.Node) *gorgonia.Node {
	m, n := x.Shape()[0], x.Shape()[1]
	return apply(spec{name: "colsums", out: tensor.Shape{n}}, runColSums[float32](m, n), runColSums[float64](m, n), x)
}

func runColSums[T kernel.Float](m, n int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.ColSums(out, in[0], m, n) }
}
