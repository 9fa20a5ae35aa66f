package op

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"clustergym/nets/kernel"
)

// Base is a fixed score of actions that a network adds its own to: action k < Slots has Scale times element
// From+k·Stride of the observation, the actions after them have Rest.
type Base struct {
	From, Stride, Slots int
	Scale, Rest         float64
}

// AddBase is x + the base scores for x [N, A] and observations [N, D]. The gradient passes to x as it is; the base has
// no parameters, and none reaches the observations.
func AddBase(x, obs *gorgonia.Node, b Base) *gorgonia.Node {
	xs, os := shape("addbase", x, 2), shape("addbase", obs, 2)
	need(xs[0] == os[0] && b.Slots >= 1 && b.Slots <= xs[1] && b.From >= 0 && b.Stride >= 1 &&
		b.From+(b.Slots-1)*b.Stride < os[1],
		"addbase: %v over observations %v to %v", b, os, xs)
	n, a, d := xs[0], xs[1], os[1]
	return apply(spec{
		name: fmt.Sprintf("addbase %v", b),
		out:  xs,
		over: 1,
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes { return gorgonia.Nodes{grad} },
	}, runAddBase[float32](b, n, a, d), runAddBase[float64](b, n, a, d), x, obs)
}

func runAddBase[T kernel.Float](b Base, n, a, d int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { RunBase(b, out, in[0], in[1], n, a, d) }
}

// RunBase sets out [n, a] = x + the base scores over observations [n, d]. out may be x.
func RunBase[T kernel.Float](b Base, out, x, obs []T, n, a, d int) {
	scale, rest := T(b.Scale), T(b.Rest)
	for i := range n {
		for k := range a {
			s := rest
			if k < b.Slots {
				s = scale * obs[i*d+b.From+k*b.Stride]
			}
			out[i*a+k] = x[i*a+k] + s
		}
	}
}
