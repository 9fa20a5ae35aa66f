package op

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// Reshape is x's elements, in order, in another shape of the same size.
func Reshape(x *gorgonia.Node, dims ...int) *gorgonia.Node {
	from, to := x.Shape(), tensor.Shape(dims).Clone()
	need(size(from) == size(to), "reshape: %v to %v", from, to)
	if from.Eq(to) && len(from) == len(to) { // Eq considers [1] and [] equal
		return x
	}
	return apply(spec{
		name: "reshape",
		out:  to,
		view: true,
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{Reshape(grad, from...)}
		},
	}, runCopy[float32], runCopy[float64], x)
}

func size(s tensor.Shape) int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

func runCopy[T kernel.Float](out []T, in [][]T, _ []T) { copy(out, in[0]) }

// Columns is columns [from, to) of x [N, D], in shape [N, to-from].
func Columns(x *gorgonia.Node, from, to int) *gorgonia.Node {
	s := shape("columns", x, 2)
	need(0 <= from && from < to && to <= s[1], "columns: [%d, %d) of %v", from, to, s)
	if from == 0 && to == s[1] {
		return x
	}
	return apply(spec{
		name: fmt.Sprintf("columns %d %d", from, to),
		out:  tensor.Shape{s[0], to - from},
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{padColumns(grad, from, s[1])}
		},
	}, runColumns[float32](s[0], s[1], from, to), runColumns[float64](s[0], s[1], from, to), x)
}

func runColumns[T kernel.Float](n, d, from, to int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		w := to - from
		for i := 0; i < n; i++ {
			copy(out[i*w:(i+1)*w], in[0][i*d+from:i*d+to])
		}
	}
}

// padColumns puts x's columns at from into a matrix of d columns, zero elsewhere.
func padColumns(x *gorgonia.Node, from, d int) *gorgonia.Node {
	s := x.Shape()
	return apply(spec{name: fmt.Sprintf("padcolumns %d %d", from, d), out: tensor.Shape{s[0], d}},
		runPadColumns[float32](s[0], s[1], from, d), runPadColumns[float64](s[0], s[1], from, d), x)
}

func runPadColumns[T kernel.Float](n, w, from, d int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		clear(out)
		for i := 0; i < n; i++ {
			copy(out[i*d+from:i*d+from+w], in[0][i*w:(i+1)*w])
		}
	}
}

// Concat puts matrices with the same number of rows side by side.
func Concat(xs ...*gorgonia.Node) *gorgonia.Node {
	need(len(xs) > 0, "concat: nothing to put together")
	if len(xs) == 1 {
		return xs[0]
	}
	n, d := shape("concat", xs[0], 2)[0], 0
	at := make([]int, len(xs)+1)
	for i, x := range xs {
		s := shape("concat", x, 2)
		need(s[0] == n, "concat: %q has %d rows, the first has %d", x.Name(), s[0], n)
		d += s[1]
		at[i+1] = d
	}
	return apply(spec{
		name: "concat",
		out:  tensor.Shape{n, d},
		diff: len(xs),
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			gs := make(gorgonia.Nodes, len(in))
			for i := range in {
				gs[i] = Columns(grad, at[i], at[i+1])
			}
			return gs
		},
	}, runConcat[float32](n, at), runConcat[float64](n, at), xs...)
}

func runConcat[T kernel.Float](n int, at []int) runFunc[T] {
	d := at[len(at)-1]
	return func(out []T, in [][]T, _ []T) {
		for k, x := range in {
			w := at[k+1] - at[k]
			for i := 0; i < n; i++ {
				copy(out[i*d+at[k]:i*d+at[k+1]], x[i*w:(i+1)*w])
			}
		}
	}
}
