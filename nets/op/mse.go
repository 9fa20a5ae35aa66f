package op

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// MSE is the scalar mean of (x - target)² over all elements of x; target has x's shape, and no gradient passes
// through it.
func MSE(x, target *gorgonia.Node) *gorgonia.Node {
	s := x.Shape()
	need(s.Eq(target.Shape()), "mse: target %q has shape %v, want %v", target.Name(), target.Shape(), s)
	return apply(spec{
		name: "mse",
		out:  tensor.ScalarShape(),
		diff: []bool{true, false},
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{apply(spec{name: "mse-grad", out: s}, runMSEGrad[float32], runMSEGrad[float64], in[0], in[1], grad), nil}
		},
	}, runMSE[float32], runMSE[float64], x, target)
}

func runMSE[T kernel.Float](out []T, in [][]T, _ []T) {
	x, target := in[0], in[1][:len(in[0])]
	var sum T
	for i, v := range x {
		sum += (v - target[i]) * (v - target[i])
	}
	out[0] = sum / T(len(x))
}

func runMSEGrad[T kernel.Float](out []T, in [][]T, _ []T) {
	x, target, scale := in[0], in[1][:len(in[0])], 2*in[2][0]/T(len(in[0]))
	out = out[:len(x)]
	for i, v := range x {
		out[i] = scale * (v - target[i])
	}
}
