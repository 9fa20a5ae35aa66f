package op

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// LayerNorm is gamma·(x - mean)/sqrt(variance + 1e-5) + beta with mean and variance over each row of x [N, H]; gamma
// and beta are [H] (Ba et al. 2016, arXiv 1607.06450, eq. 4).
func LayerNorm(x, gamma, beta *gorgonia.Node) *gorgonia.Node {
	shape("layernorm", x, 2)
	return norm("layernorm", x, gamma, beta, nil)
}

// norm is LayerNorm over the rows of x that live says.
func norm(name string, x, gamma, beta, live *gorgonia.Node) *gorgonia.Node {
	s, gs, bs := x.Shape(), shape(name, gamma, 1), shape(name, beta, 1)
	r, h := rowsOf(x, live), s[1]
	need(gs[0] == h && bs[0] == h, "%s: gamma %v and beta %v for %v", name, gs, bs, s)
	return apply(spec{
		name: name,
		out:  s,
		diff: 3,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{
				apply(spec{name: "layernorm-dx", out: s, over: 3},
					runNormX[float32](r, h), runNormX[float64](r, h), with(live, in[0], in[1], grad)...),
				apply(spec{name: "layernorm-dgamma", out: tensor.Shape{h}, scratch: r.all * h},
					runNormGamma[float32](r, h), runNormGamma[float64](r, h), with(live, in[0], grad)...),
				colSums(grad, live),
			}
		},
	}, runNorm[float32](r, h), runNorm[float64](r, h), with(live, x, gamma, beta)...)
}

func runNorm[T kernel.Float](r rows, h int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.LayerNorm(out, in[0], in[1], in[2], count(r, in), h) }
}

func runNormX[T kernel.Float](r rows, h int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.LayerNormGrad(out, in[0], in[1], in[2], count(r, in), h) }
}

func runNormGamma[T kernel.Float](r rows, h int) runFunc[T] {
	return func(out []T, in [][]T, scratch []T) {
		kernel.LayerNormGradGamma(out, in[0], in[1], count(r, in), h, scratch)
	}
}
