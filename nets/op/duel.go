package op

import (
	"gorgonia.org/gorgonia"

	"clustergym/nets/kernel"
)

// Duel is q = v + a - mean(a) for values v [N] and advantages a [N, A] (Wang et al. 2016, arXiv 1511.06581, eq. 9),
// with the mean over the legal actions (mask [N, A] not 0). A nil mask, or a row without a legal action, means over
// all.
func Duel(v, a, mask *gorgonia.Node) *gorgonia.Node {
	vs, s := shape("duel", v, 1), shape("duel", a, 2)
	need(vs[0] == s[0], "duel: values %v for advantages %v", vs, s)
	in := withMask("duel", mask, s, v, a)
	return apply(spec{
		name: "duel",
		out:  s,
		diff: 2,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			da := apply(spec{name: "duel-grad", out: s}, runDuelGrad[float32](s[0], s[1]), runDuelGrad[float64](s[0], s[1]),
				append([]*gorgonia.Node{grad}, in[2:]...)...)
			return gorgonia.Nodes{RowSum(grad), da}
		},
	}, runDuel[float32](s[0], s[1]), runDuel[float64](s[0], s[1]), in...)
}

func runDuel[T kernel.Float](n, a int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.Duel(out, in[0], in[1], maskOf(in, 2), n, a) }
}

// runDuelGrad computes da = dq - sum(dq)/count for the actions in the mean, and dq for the others.
func runDuelGrad[T kernel.Float](n, a int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		mask := maskOf(in, 1)
		for i := 0; i < n; i++ {
			d, o := in[0][i*a:(i+1)*a], out[i*a:(i+1)*a]
			copy(o, d)
			var sum T
			for _, v := range d {
				sum += v
			}
			count := 0
			if mask != nil {
				for _, legal := range mask[i*a : (i+1)*a] {
					if legal != 0 {
						count++
					}
				}
			}
			all := count == 0
			if all {
				count = a
			}
			for j := range o {
				if all || mask[i*a+j] != 0 {
					o[j] -= sum / T(count)
				}
			}
		}
	}
}
