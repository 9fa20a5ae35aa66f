package op

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// Positions in the coefficients of TDLoss.
const (
	TDDelta   = iota // Huber's delta: quadratic within, linear beyond; 0 = squared error
	TDDivisor        // rows of the whole minibatch, the same for its shards
	TDCoefs          // length of the coefficients
)

// TDLoss is the scalar loss of temporal-difference learning, sum(weight·l(error))/divisor, where error = q[i,
// action[i]] - target[i]. l is Huber's function, e²/2 for |e| ≤ delta and delta·(|e| - delta/2) beyond (Mnih et al.
// 2015 with delta 1), or e² with delta 0. q is [N, A]; action, target and weight are [N] (importance weights, 0 for
// rows that only fill up the batch), coef is [TDCoefs]. The second result is the errors [N], the priorities of
// prioritised replay. No gradient passes through target.
func TDLoss(q, action, target, weight, coef *gorgonia.Node) (loss, errors *gorgonia.Node) {
	qa := Gather(q, action)
	n := qa.Shape()[0]
	for _, v := range []*gorgonia.Node{target, weight} {
		s := shape("td", v, 1)
		need(s[0] == n, "td: input %q has shape %v, want [%d]", v.Name(), s, n)
	}
	need(shape("td", coef, 1)[0] == TDCoefs, "td: %d coefficients, want %d", coef.Shape()[0], TDCoefs)
	errors = apply(spec{
		name: "td-error",
		out:  tensor.Shape{n},
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes { return gorgonia.Nodes{grad} },
	}, runTDError[float32], runTDError[float64], qa, target)
	loss = apply(spec{
		name: "td-loss",
		out:  tensor.ScalarShape(),
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{apply(spec{name: "td-grad", out: tensor.Shape{n}},
				runTDGrad[float32], runTDGrad[float64], in[0], in[1], in[2], grad)}
		},
	}, runTDLoss[float32], runTDLoss[float64], errors, weight, coef)
	return loss, errors
}

func runTDError[T kernel.Float](out []T, in [][]T, _ []T) {
	for i, t := range in[1] {
		out[i] = in[0][i] - t
	}
}

func runTDLoss[T kernel.Float](out []T, in [][]T, _ []T) {
	errs, weight, delta := in[0], in[1], in[2][TDDelta]
	var sum T
	for i, w := range weight {
		if w == 0 {
			continue
		}
		e := errs[i]
		abs := max(e, -e)
		switch {
		case delta > 0 && abs <= delta:
			sum += w * e * e / 2
		case delta > 0:
			sum += w * delta * (abs - delta/2)
		default:
			sum += w * e * e
		}
	}
	out[0] = sum / in[2][TDDivisor]
}

func runTDGrad[T kernel.Float](out []T, in [][]T, _ []T) {
	errs, weight, delta, div, g := in[0], in[1], in[2][TDDelta], in[2][TDDivisor], in[3][0]
	for i, w := range weight {
		out[i] = 0
		if w == 0 {
			continue
		}
		d := 2 * errs[i]
		if delta > 0 {
			d = min(max(errs[i], -delta), delta)
		}
		out[i] = g * w * d / div
	}
}
