package op

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// LayerNorm is gamma·(x - mean)/sqrt(variance + 1e-5) + beta with mean and variance over each row of x [N, H]; gamma
// and beta are [H] (Ba et al. 2016, arXiv 1607.06450, eq. 4).
func LayerNorm(x, gamma, beta *gorgonia.Node) *gorgonia.Node {
	s, gs, bs := shape("layernorm", x, 2), shape("layernorm", gamma, 1), shape("layernorm", beta, 1)
	n, h := s[0], s[1]
	need(gs[0] == h && bs[0] == h, "layernorm: gamma %v and beta %v for %v", gs, bs, s)
	return apply(spec{
		name: "layernorm",
		out:  s,
		diff: []bool{true, true, true},
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{
				apply(spec{name: "layernorm-dx", out: s, over: 3}, runNormX[float32](n, h), runNormX[float64](n, h), in[0], in[1], grad),
				apply(spec{name: "layernorm-dgamma", out: tensor.Shape{h}, scratch: n * h}, runNormGamma[float32](n, h), runNormGamma[float64](n, h), in[0], grad),
				colSums(grad),
			}
		},
	}, runNorm[float32](n, h), runNorm[float64](n, h), x, gamma, beta)
}

func runNorm[T kernel.Float](n, h int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.LayerNorm(out, in[0], in[1], in[2], n, h) }
}

func runNormX[T kernel.Float](n, h int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.LayerNormGrad(out, in[0], in[1], in[2], n, h) }
}

func runNormGamma[T kernel.Float](n, h int) runFunc[T] {
	return func(out []T, in [][]T, scratch []T) { kernel.LayerNormGradGamma(out, in[0], in[1], n, h, scratch) }
}
