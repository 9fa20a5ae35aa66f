package op

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// AddRows is act(x + context) for x [N·K, H] and context [N, H]: each of the K rows that belong to one row of the
// batch gets that row's context.
func AddRows(x, context *gorgonia.Node, act Act) *gorgonia.Node {
	xs, cs := shape("addrows", x, 2), shape("addrows", context, 2)
	need(xs[1] == cs[1] && xs[0]%cs[0] == 0, "addrows: %v to %v", cs, xs)
	n, k, h := cs[0], xs[0]/cs[0], xs[1]
	return apply(spec{
		name: fmt.Sprintf("addrows %v", act),
		out:  xs,
		over: 1,
		diff: 2,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			d := actGrad(out, grad, nil, act)
			return gorgonia.Nodes{d, sumRows(d, k, 1)}
		},
	}, runAddRows[float32](n, k, h, act), runAddRows[float64](n, k, h, act), x, context)
}

func runAddRows[T kernel.Float](n, k, h int, act Act) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.AddRows(out, in[0], in[1], n, k, h, act) }
}

// MeanRows is the mean over each K consecutive rows of x [N·K, H], in shape [N, H].
func MeanRows(x *gorgonia.Node, k int) *gorgonia.Node {
	xs := shape("meanrows", x, 2)
	need(k > 0 && xs[0]%k == 0, "meanrows: %d rows in groups of %d", xs[0], k)
	return sumRows(x, k, k)
}

// sumRows is the sum over each k consecutive rows, divided by div.
func sumRows(x *gorgonia.Node, k, div int) *gorgonia.Node {
	s := x.Shape()
	n, h := s[0]/k, s[1]
	return apply(spec{
		name: fmt.Sprintf("sumrows %d %d", k, div),
		out:  tensor.Shape{n, h},
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{repeatRows(grad, k, div)}
		},
	}, runSumRows[float32](n, k, h, div), runSumRows[float64](n, k, h, div), x)
}

func runSumRows[T kernel.Float](n, k, h, div int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.SumRows(out, in[0], n, k, h, T(div)) }
}

// repeatRows is each row of x k times, divided by div.
func repeatRows(x *gorgonia.Node, k, div int) *gorgonia.Node {
	n, h := x.Shape()[0], x.Shape()[1]
	return apply(spec{
		name: fmt.Sprintf("repeatrows %d %d", k, div),
		out:  tensor.Shape{n * k, h},
	}, runRepeatRows[float32](n, k, h, div), runRepeatRows[float64](n, k, h, div), x)
}

func runRepeatRows[T kernel.Float](n, k, h, div int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		for i := 0; i < n; i++ {
			first := out[i*k*h : (i*k+1)*h]
			for c, v := range in[0][i*h : (i+1)*h] {
				first[c] = v / T(div)
			}
			for j := 1; j < k; j++ {
				copy(out[(i*k+j)*h:(i*k+j+1)*h], first)
			}
		}
	}
}

// MaxRows is the maximum over each K consecutive rows of x [N·K, H], column by column, in shape [N, H]. The
// gradient goes to the first row that attains it.
func MaxRows(x *gorgonia.Node, k int) *gorgonia.Node {
	xs := shape("maxrows", x, 2)
	need(k > 0 && xs[0]%k == 0, "maxrows: %d rows in groups of %d", xs[0], k)
	n, h := xs[0]/k, xs[1]
	return apply(spec{
		name: fmt.Sprintf("maxrows %d", k),
		out:  tensor.Shape{n, h},
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{apply(spec{name: fmt.Sprintf("maxrows-grad %d", k), out: xs},
				runMaxRowsGrad[float32](n, k, h), runMaxRowsGrad[float64](n, k, h), in[0], out, grad)}
		},
	}, runMaxRows[float32](n, k, h), runMaxRows[float64](n, k, h), x)
}

func runMaxRows[T kernel.Float](n, k, h int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.MaxRows(out, in[0], n, k, h) }
}

func runMaxRowsGrad[T kernel.Float](n, k, h int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.MaxRowsGrad(out, in[0], in[1], in[2], n, k, h) }
}
