package op

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// rows are the rows of a matrix that an operation computes: all, or the live ones of n sequences of t.
type rows struct{ all, n, t int }

// rowsOf returns the rows of x: the live ones that live, an operation's last input, lists, or all if it is nil.
func rowsOf(x, live *gorgonia.Node) rows {
	r := rows{all: x.Shape()[0]}
	if live != nil {
		r.n, r.t = live.Shape()[0], live.Shape()[1]-1
	}
	return r
}

// count returns the number of rows in a run.
func count[T kernel.Float](r rows, in [][]T) int {
	if r.t == 0 {
		return r.all
	}
	return kernel.CountLive(in[len(in)-1], r.n, r.t)
}

// with appends live, if there is one, to the inputs of an operation.
func with(live *gorgonia.Node, in ...*gorgonia.Node) []*gorgonia.Node {
	if live != nil {
		in = append(in, live)
	}
	return in
}

// Dense is act(x·w + b), with x [N, in], w [in, out] and b [out], or nil for none.
func Dense(x, w, b *gorgonia.Node, act Act) *gorgonia.Node {
	shape("dense", x, 2)
	return dense("dense", x, w, b, nil, act)
}

// dense is Dense over the rows of x that live says.
func dense(name string, x, w, b, live *gorgonia.Node, act Act) *gorgonia.Node {
	ws, r := shape(name, w, 2), rowsOf(x, live)
	k, n := ws[0], ws[1]
	need(x.Shape()[1] == k, "%s: weight %q has shape %v, input has %d columns", name, w.Name(), ws, x.Shape()[1])
	in := []*gorgonia.Node{x, w}
	if b != nil {
		bs := shape(name, b, 1)
		need(bs[0] == n, "%s: bias %q has shape %v, weight %v", name, b.Name(), bs, ws)
		in = append(in, b)
	}
	biased := b != nil
	return apply(spec{
		name: fmt.Sprintf("%s %v", name, act),
		out:  tensor.Shape{r.all, n},
		diff: len(in),
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			d := actGrad(out, grad, live, act)
			gs := gorgonia.Nodes{matMulNT(d, in[1], live), matMulTN(in[0], d, live)}
			if biased {
				gs = append(gs, colSums(d, live))
			}
			return gs
		},
	}, runDense[float32](r, k, n, biased, act), runDense[float64](r, k, n, biased, act), with(live, in...)...)
}

func runDense[T kernel.Float](r rows, k, n int, biased bool, act Act) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		var bias []T
		if biased {
			bias = in[2]
		}
		kernel.MatMul(out, in[0], in[1], bias, count(r, in), n, k, act)
	}
}

// Activate is act(x) element by element, for any shape.
func Activate(x *gorgonia.Node, act Act) *gorgonia.Node {
	return apply(spec{
		name: fmt.Sprintf("activate %v", act),
		out:  x.Shape(),
		over: 1,
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{actGrad(out, grad, nil, act)}
		},
	}, runActivate[float32](act), runActivate[float64](act), x)
}

func runActivate[T kernel.Float](act Act) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.Activate(out, in[0], act) }
}

// actGrad is the gradient before the activation, computed from the value y after it.
func actGrad(y, dy, live *gorgonia.Node, act Act) *gorgonia.Node {
	if act == Identity {
		return dy
	}
	from := dy
	for live == nil {
		o, ok := from.Op().(*Op)
		if ok && o.before != nil {
			return Reshape(o.before(Inputs(from), Reshape(y, from.Shape()...), act), y.Shape()...)
		}
		if !ok || !o.view {
			break
		}
		from = Inputs(from)[0]
	}
	r := rowsOf(y, live)
	h := size(y.Shape()) / r.all
	return apply(spec{name: fmt.Sprintf("actgrad %v", act), out: y.Shape(), over: 2},
		runActGrad[float32](r, h, act), runActGrad[float64](r, h, act), with(live, y, dy)...)
}

func runActGrad[T kernel.Float](r rows, h int, act Act) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		m := count(r, in) * h
		kernel.ActGrad(out[:m], in[0][:m], in[1][:m], act)
	}
}

// matMulTN is aᵀ·b for a [m, k], b [m, n].
func matMulTN(a, b, live *gorgonia.Node) *gorgonia.Node {
	r, k, n := rowsOf(a, live), a.Shape()[1], b.Shape()[1]
	return apply(spec{name: "matmul-tn", out: tensor.Shape{k, n}},
		runMatMulTN[float32](r, n, k), runMatMulTN[float64](r, n, k), with(live, a, b)...)
}

func runMatMulTN[T kernel.Float](r rows, n, k int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.MatMulTN(out, in[0], in[1], count(r, in), n, k) }
}

// matMulNT is a·bᵀ for a [m, k], b [n, k].
func matMulNT(a, b, live *gorgonia.Node) *gorgonia.Node {
	r, k, n := rowsOf(a, live), a.Shape()[1], b.Shape()[0]
	s := spec{name: "matmul-nt", out: tensor.Shape{r.all, n}, scratch: n * k}
	if live == nil {
		s.before = func(in gorgonia.Nodes, y *gorgonia.Node, act Act) *gorgonia.Node {
			return apply(spec{name: fmt.Sprintf("matmul-nt before %v", act), out: s.out, scratch: n * k},
				runMatMulNT[float32](r, n, k, act), runMatMulNT[float64](r, n, k, act), in[0], in[1], y)
		}
	}
	return apply(s, runMatMulNT[float32](r, n, k, Identity), runMatMulNT[float64](r, n, k, Identity), with(live, a, b)...)
}

func runMatMulNT[T kernel.Float](r rows, n, k int, act Act) runFunc[T] {
	return func(out []T, in [][]T, scratch []T) {
		kernel.MatMulNT(out, in[0], in[1], count(r, in), n, k, scratch)
		if act != Identity {
			kernel.ActGrad(out, in[2], out, act)
		}
	}
}

// colSums adds up the rows of x [m, n].
func colSums(x, live *gorgonia.Node) *gorgonia.Node {
	r, n := rowsOf(x, live), x.Shape()[1]
	return apply(spec{name: "colsums", out: tensor.Shape{n}},
		runColSums[float32](r, n), runColSums[float64](r, n), with(live, x)...)
}

func runColSums[T kernel.Float](r rows, n int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.ColSums(out, in[0], count(r, in), n) }
}
