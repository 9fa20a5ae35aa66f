package op

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// MaskedLogSoftmax is the logarithm of the softmax over each row of logits [N, A]. Illegal logits (mask [N, A] is 0;
// a nil mask means all are legal) are first replaced by -1e8, and the normaliser is that of the replaced logits. The
// gradient of an illegal logit is 0 (Huang and Ontañón 2022, arXiv 2006.14171, section 4).
func MaskedLogSoftmax(logits, mask *gorgonia.Node) *gorgonia.Node {
	s := shape("logsoftmax", logits, 2)
	in := withMask("logsoftmax", mask, s, logits)
	return apply(spec{
		name: "logsoftmax",
		out:  s,
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			args := append([]*gorgonia.Node{out, grad}, in[1:]...)
			d := apply(spec{name: "logsoftmax-grad", out: s, scratch: s[0] * s[1]},
				runLogSoftmaxGrad[float32](s[0], s[1]), runLogSoftmaxGrad[float64](s[0], s[1]), args...)
			return gorgonia.Nodes{d}
		},
	}, runLogSoftmax[float32](s[0], s[1]), runLogSoftmax[float64](s[0], s[1]), in...)
}

// withMask appends mask, if there is one, to the inputs of an operation.
func withMask(name string, mask *gorgonia.Node, s tensor.Shape, in ...*gorgonia.Node) []*gorgonia.Node {
	if mask == nil {
		return in
	}
	ms := shape(name, mask, 2)
	need(ms.Eq(s), "%s: mask %q has shape %v, want %v", name, mask.Name(), ms, s)
	return append(in, mask)
}

// maskOf returns the mask after the first k inputs, or nil.
func maskOf[T kernel.Float](in [][]T, k int) []T {
	if len(in) > k {
		return in[k]
	}
	return nil
}

func runLogSoftmax[T kernel.Float](n, a int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.LogSoftmax(out, in[0], maskOf(in, 1), n, a) }
}

// runLogSoftmaxGrad computes d logit = d logp - p·sum(d logp), and 0 for illegal logits.
func runLogSoftmaxGrad[T kernel.Float](n, a int) runFunc[T] {
	return func(out []T, in [][]T, all []T) {
		all = all[:n*a]
		kernel.Exp(all, in[0][:n*a])
		mask := maskOf(in, 2)
		for i := 0; i < n; i++ {
			p, d, o := all[i*a:(i+1)*a], in[1][i*a:(i+1)*a], out[i*a:(i+1)*a]
			var sum T
			for _, v := range d {
				sum += v
			}
			for j, v := range d {
				o[j] = v - p[j]*sum
			}
			if mask != nil {
				for j, legal := range mask[i*a : (i+1)*a] {
					if legal == 0 {
						o[j] = 0
					}
				}
			}
		}
	}
}

// Entropy is -sum(p·log p) of each row of logp [N, A], in shape [N]; illegal actions (mask 0; a nil mask means none)
// count 0.
func Entropy(logp, mask *gorgonia.Node) *gorgonia.Node {
	s := shape("entropy", logp, 2)
	in := withMask("entropy", mask, s, logp)
	return apply(spec{
		name:    "entropy",
		out:     tensor.Shape{s[0]},
		scratch: s[0] * s[1],
		diff:    1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			args := append([]*gorgonia.Node{in[0], grad}, in[1:]...)
			d := apply(spec{name: "entropy-grad", out: s, scratch: s[0] * s[1]},
				runEntropyGrad[float32](s[0], s[1]), runEntropyGrad[float64](s[0], s[1]), args...)
			return gorgonia.Nodes{d}
		},
	}, runEntropy[float32](s[0], s[1]), runEntropy[float64](s[0], s[1]), in...)
}

func runEntropy[T kernel.Float](n, a int) runFunc[T] {
	return func(out []T, in [][]T, all []T) {
		all = all[:n*a]
		kernel.Exp(all, in[0][:n*a])
		mask := maskOf(in, 1)
		for i := 0; i < n; i++ {
			p, lp := all[i*a:(i+1)*a], in[0][i*a:(i+1)*a]
			var h T
			for j, v := range lp {
				if p[j] != 0 && (mask == nil || mask[i*a+j] != 0) {
					h -= p[j] * v
				}
			}
			out[i] = h
		}
	}
}

// runEntropyGrad computes d(-p·log p)/d log p = -p·(log p + 1), and 0 for terms that were left out.
func runEntropyGrad[T kernel.Float](n, a int) runFunc[T] {
	return func(out []T, in [][]T, all []T) {
		all = all[:n*a]
		kernel.Exp(all, in[0][:n*a])
		mask := maskOf(in, 2)
		for i := 0; i < n; i++ {
			p, lp, o, d := all[i*a:(i+1)*a], in[0][i*a:(i+1)*a], out[i*a:(i+1)*a], in[1][i]
			for j, v := range lp {
				o[j] = 0
				if p[j] != 0 && (mask == nil || mask[i*a+j] != 0) {
					o[j] = -d * p[j] * (v + 1)
				}
			}
		}
	}
}

// Gather is x[i, index[i]] for each row of x [N, A], in shape [N]: the log-probability or the value of the action
// taken. index [N] holds whole numbers; an index outside [0, A) makes the run fail.
func Gather(x, index *gorgonia.Node) *gorgonia.Node {
	s, is := shape("gather", x, 2), shape("gather", index, 1)
	need(is[0] == s[0], "gather: %d indices for %v", is[0], s)
	return apply(spec{
		name: "gather",
		out:  tensor.Shape{s[0]},
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{apply(spec{name: "scatter", out: s},
				runScatter[float32](s[1]), runScatter[float64](s[1]), grad, in[1])}
		},
	}, runGather[float32](s[1]), runGather[float64](s[1]), x, index)
}

func runGather[T kernel.Float](a int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		for i, k := range in[1] {
			out[i] = in[0][i*a+pick(k, i, a)]
		}
	}
}

func runScatter[T kernel.Float](a int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		clear(out)
		for i, k := range in[1] {
			out[i*a+pick(k, i, a)] = in[0][i]
		}
	}
}

// pick returns row i's action index k as an integer.
func pick[T kernel.Float](k T, i, a int) int {
	if k >= 0 && k < T(a) {
		if j := int(k); T(j) == k {
			return j
		}
	}
	panic(fmt.Errorf("op: gather: row %d has index %v, want a whole number in [0, %d)", i, k, a))
}
