package op

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// The functions in this file are the arithmetic of losses. They work element by element and know their gradients, so
// a formula composed of them needs no gradient of its own. In functions of two operands, b has a's shape or is
// repeated along a: a single number, or a row [D] for each row of a [N, D].

// Add is a + b.
func Add(a, b *gorgonia.Node) *gorgonia.Node {
	return binary("add", a, b, 2, runAdd[float32], runAdd[float64],
		func(a, b, grad *gorgonia.Node) (da, db *gorgonia.Node) { return grad, grad })
}

// Sub is a − b.
func Sub(a, b *gorgonia.Node) *gorgonia.Node {
	return binary("sub", a, b, 2, runSub[float32], runSub[float64],
		func(a, b, grad *gorgonia.Node) (da, db *gorgonia.Node) { return grad, Affine(grad, -1, 0) })
}

// Mul is a·b.
func Mul(a, b *gorgonia.Node) *gorgonia.Node {
	return binary("mul", a, b, 2, runMul[float32], runMul[float64],
		func(a, b, grad *gorgonia.Node) (da, db *gorgonia.Node) { return Mul(grad, b), Mul(grad, a) })
}

// Div is a/b. No gradient passes through b.
func Div(a, b *gorgonia.Node) *gorgonia.Node {
	return binary("div", a, b, 1, runDiv[float32], runDiv[float64],
		func(a, b, grad *gorgonia.Node) (da, db *gorgonia.Node) { return Div(grad, b), nil })
}

// Max is the larger of a and b. The gradient goes to that one, and to a if they are equal.
func Max(a, b *gorgonia.Node) *gorgonia.Node {
	return binary("max", a, b, 2, runMax[float32], runMax[float64],
		func(a, b, grad *gorgonia.Node) (da, db *gorgonia.Node) {
			return where(a, b, grad, true), where(a, b, grad, false)
		})
}

// Min is the smaller of a and b, −Max(−a, −b).
func Min(a, b *gorgonia.Node) *gorgonia.Node {
	return Affine(Max(Affine(a, -1, 0), Affine(b, -1, 0)), -1, 0)
}

// Clamp is x, but at least low and at most high. Where it is held, no gradient reaches x.
func Clamp(x, low, high *gorgonia.Node) *gorgonia.Node { return Min(Max(x, low), high) }

// binary adds an element-wise operation of two operands. gradient gives the gradients, both in a's shape.
func binary(name string, a, b *gorgonia.Node, diff int, r32 runFunc[float32], r64 runFunc[float64],
	gradient func(a, b, grad *gorgonia.Node) (da, db *gorgonia.Node)) *gorgonia.Node {
	as, bs := a.Shape(), b.Shape()
	n, m := size(as), size(bs)
	need(m == 1 || len(as) >= len(bs) && as[len(as)-len(bs):].Eq(bs), "%s: operands of shapes %v and %v", name, as, bs)
	return apply(spec{
		name: name,
		out:  as,
		diff: diff,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			da, db := gradient(in[0], in[1], grad)
			if db != nil && m < n { // every place where b was repeated
				db = apply(spec{name: fmt.Sprintf("fold %v", bs), out: bs}, runFold[float32], runFold[float64], db)
			}
			return gorgonia.Nodes{da, db}
		},
	}, r32, r64, a, b)
}

func runAdd[T kernel.Float](out []T, in [][]T, _ []T) {
	a, b := in[0], in[1]
	for i, j := 0, 0; i < len(a); i++ {
		out[i] = a[i] + b[j]
		if j++; j == len(b) {
			j = 0
		}
	}
}

func runSub[T kernel.Float](out []T, in [][]T, _ []T) {
	a, b := in[0], in[1]
	for i, j := 0, 0; i < len(a); i++ {
		out[i] = a[i] - b[j]
		if j++; j == len(b) {
			j = 0
		}
	}
}

func runMul[T kernel.Float](out []T, in [][]T, _ []T) {
	a, b := in[0], in[1]
	for i, j := 0, 0; i < len(a); i++ {
		out[i] = a[i] * b[j]
		if j++; j == len(b) {
			j = 0
		}
	}
}

func runDiv[T kernel.Float](out []T, in [][]T, _ []T) {
	a, b := in[0], in[1]
	for i, j := 0, 0; i < len(a); i++ {
		out[i] = a[i] / b[j]
		if j++; j == len(b) {
			j = 0
		}
	}
}

func runMax[T kernel.Float](out []T, in [][]T, _ []T) {
	a, b := in[0], in[1]
	for i, j := 0, 0; i < len(a); i++ {
		out[i] = max(a[i], b[j])
		if j++; j == len(b) {
			j = 0
		}
	}
}

// where is x where a >= b if first is true, or where a < b if it is false, and 0 elsewhere.
func where(a, b, x *gorgonia.Node, first bool) *gorgonia.Node {
	return apply(spec{name: fmt.Sprintf("where %v", first), out: x.Shape()}, runWhere[float32](first),
		runWhere[float64](first), a, b, x)
}

func runWhere[T kernel.Float](first bool) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		a, b, x := in[0], in[1], in[2]
		for i, j := 0, 0; i < len(a); i++ {
			out[i] = 0
			if a[i] >= b[j] == first {
				out[i] = x[i]
			}
			if j++; j == len(b) {
				j = 0
			}
		}
	}
}

func runFold[T kernel.Float](out []T, in [][]T, _ []T) {
	clear(out)
	for i, j := 0, 0; i < len(in[0]); i++ {
		out[j] += in[0][i]
		if j++; j == len(out) {
			j = 0
		}
	}
}

// Affine is scale·x + shift.
func Affine(x *gorgonia.Node, scale, shift float64) *gorgonia.Node {
	return apply(spec{
		name: fmt.Sprintf("affine %v %v", scale, shift),
		out:  x.Shape(),
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{Affine(grad, scale, 0)}
		},
	}, runAffine[float32](scale, shift), runAffine[float64](scale, shift), x)
}

func runAffine[T kernel.Float](scale, shift float64) runFunc[T] {
	a, b := T(scale), T(shift)
	return func(out []T, in [][]T, _ []T) {
		for i, x := range in[0] {
			out[i] = a*x + b
		}
	}
}

// Square is x².
func Square(x *gorgonia.Node) *gorgonia.Node {
	return apply(spec{
		name: "square",
		out:  x.Shape(),
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{Mul(grad, Affine(in[0], 2, 0))}
		},
	}, runSquare[float32], runSquare[float64], x)
}

func runSquare[T kernel.Float](out []T, in [][]T, _ []T) {
	for i, x := range in[0] {
		out[i] = x * x
	}
}

// Exp is eˣ.
func Exp(x *gorgonia.Node) *gorgonia.Node {
	return apply(spec{
		name: "exp",
		out:  x.Shape(),
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{Mul(grad, out)}
		},
	}, runExp[float32], runExp[float64], x)
}

func runExp[T kernel.Float](out []T, in [][]T, _ []T) { kernel.Exp(out, in[0][:len(out)]) }

// Keep is x where weight, of x's shape, is not 0, and 0 elsewhere, even if x is NaN there. Its gradient is kept
// likewise.
func Keep(x, weight *gorgonia.Node) *gorgonia.Node {
	s := x.Shape()
	need(s.Eq(weight.Shape()), "keep: weight %v for %v", weight.Shape(), s)
	return apply(spec{
		name: "keep",
		out:  s,
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{Keep(grad, in[1])}
		},
	}, runKeep[float32], runKeep[float64], x, weight)
}

func runKeep[T kernel.Float](out []T, in [][]T, _ []T) {
	for i, w := range in[1] {
		out[i] = 0
		if w != 0 {
			out[i] = in[0][i]
		}
	}
}

// Sum is the sum of all elements of x, a scalar.
func Sum(x *gorgonia.Node) *gorgonia.Node { return sumOf("sum", x, tensor.ScalarShape()) }

// RowSum is the sum of each row of x [N, D], in shape [N].
func RowSum(x *gorgonia.Node) *gorgonia.Node {
	return sumOf("rowsum", x, tensor.Shape{shape("rowsum", x, 2)[0]})
}

// sumOf adds up size(x)/size(out) neighbours for each element of out.
func sumOf(name string, x *gorgonia.Node, out tensor.Shape) *gorgonia.Node {
	from := x.Shape()
	return apply(spec{
		name: name,
		out:  out,
		diff: 1,
		grad: func(in gorgonia.Nodes, _, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{apply(spec{name: fmt.Sprintf("%s-grad %v", name, from), out: from},
				runSpread[float32](size(out)), runSpread[float64](size(out)), grad)}
		},
	}, runSum[float32](size(out)), runSum[float64](size(out)), x)
}

func runSum[T kernel.Float](n int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		w := len(in[0]) / n
		for i := range n {
			var sum T
			for _, x := range in[0][i*w : (i+1)*w] {
				sum += x
			}
			out[i] = sum
		}
	}
}

func runSpread[T kernel.Float](n int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		w := len(out) / n
		for i := range n {
			for j := range w {
				out[i*w+j] = in[0][i]
			}
		}
	}
}

// element is x[i] of a vector, in shape [1]. It has no gradient.
func element(x *gorgonia.Node, i int) *gorgonia.Node {
	return apply(spec{name: fmt.Sprintf("element %d", i), out: tensor.Shape{1}}, runElement[float32](i),
		runElement[float64](i), x)
}

func runElement[T kernel.Float](i int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { out[0] = in[0][i] }
}

// orInf is x, and infinite where x is 0. It has no gradient.
func orInf(x *gorgonia.Node) *gorgonia.Node {
	return apply(spec{name: "or inf", out: x.Shape()}, runOrInf[float32], runOrInf[float64], x)
}

func runOrInf[T kernel.Float](out []T, in [][]T, _ []T) {
	for i, x := range in[0] {
		if out[i] = x; x == 0 {
			out[i] = T(math.Inf(1))
		}
	}
}

// outside is 1 where x is below low or above high, single numbers, and 0 elsewhere. It has no gradient.
func outside(x, low, high *gorgonia.Node) *gorgonia.Node {
	return apply(spec{name: "outside", out: x.Shape()}, runOutside[float32], runOutside[float64], x, low, high)
}

func runOutside[T kernel.Float](out []T, in [][]T, _ []T) {
	for i, x := range in[0] {
		out[i] = 0
		if x < in[1][0] || x > in[2][0] {
			out[i] = 1
		}
	}
}

// list is a vector of scalars. It has no gradient.
func list(xs ...*gorgonia.Node) *gorgonia.Node {
	return apply(spec{name: "list", out: tensor.Shape{len(xs)}}, runList[float32], runList[float64], xs...)
}

func runList[T kernel.Float](out []T, in [][]T, _ []T) {
	for i := range out {
		out[i] = in[i][0]
	}
}
