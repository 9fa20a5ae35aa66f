package op

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// KL names the inputs of KLLoss. Head and LogStd depend on the parameters.
type KL struct {
	Dist      Distribution
	Head      *gorgonia.Node // [N, Dist.Head()]
	LogStd    *gorgonia.Node // [Dist.Dims], nil without normal distributions
	OldHead   *gorgonia.Node // as Head, of the old policy
	OldLogStd *gorgonia.Node // as LogStd
	Mask      *gorgonia.Node // [N, Dist.Logits()], 1 = legal; nil without factors
	Weight    *gorgonia.Node // [N], 0 for rows that only fill up the batch
	Divisor   *gorgonia.Node // [1]
}

// KLLoss is sum(Weight·KL(old ‖ new))/Divisor, the divergence of the policy from an old one, which trust regions bound
// (Schulman et al. 2015, arXiv 1502.05477, equation 14), in closed form, and differentiable with respect to the new
// one:
//
//	factors  Σ p_old·(log p_old − log p),                       d/d logit = p − p_old
//	numbers  log(s/s_old) + (s_old² + (m_old−m)²)/(2s²) − 1/2,  d/dm = (m−m_old)/s²,  d/d log s = 1 − (s_old² + (m_old−m)²)/s²
//
// At the old policy it is 0 with gradient 0, and its Hessian is the Fisher information: a difference of its gradients
// is the product of that with a vector.
func KLLoss(x KL) *gorgonia.Node {
	d := x.Dist
	hs := shape("kl", x.Head, 2)
	n := hs[0]
	need(hs[1] == d.Head() && d.Head() > 0, "kl: head %v for a distribution of %d", hs, d.Head())
	os := shape("kl", x.OldHead, 2)
	need(os[0] == n && os[1] == d.Head(), "kl: old head %v, want %v", os, hs)
	need(shape("kl", x.Weight, 1)[0] == n, "kl: weight %v, want [%d]", x.Weight.Shape(), n)
	need(shape("kl", x.Divisor, 1)[0] == 1, "kl: divisor %v, want [1]", x.Divisor.Shape())
	k := &kl{d: d, n: n, mask: -1, logStd: -1}
	in := []*gorgonia.Node{x.Head, x.OldHead, x.Weight, x.Divisor}
	if len(d.Sizes) > 0 {
		ms := shape("kl", x.Mask, 2)
		need(ms[0] == n && ms[1] == d.Logits(), "kl: mask %v, want [%d %d]", ms, n, d.Logits())
		k.mask = len(in)
		in = append(in, x.Mask)
	}
	if d.Dims > 0 {
		for _, v := range []*gorgonia.Node{x.LogStd, x.OldLogStd} {
			need(shape("kl", v, 1)[0] == d.Dims, "kl: deviations %v, want [%d]", v.Shape(), d.Dims)
		}
		k.logStd = len(in)
		in = append(in, x.LogStd, x.OldLogStd)
	}
	// All at once: the loss, then its gradients by head and deviations.
	all := apply(spec{name: fmt.Sprintf("kl %v", d), out: tensor.Shape{1 + n*d.Head() + d.Dims},
		scratch: 4*n*d.Logits() + 2*d.Dims},
		runKL[float32](k), runKL[float64](k), in...)
	of := []*gorgonia.Node{x.Head}
	from, shapes := []int{1}, []tensor.Shape{{n, d.Head()}}
	if d.Dims > 0 {
		of, from, shapes = append(of, x.LogStd), append(from, 1+n*d.Head()), append(shapes, tensor.Shape{d.Dims})
	}
	return parts("kl", 0, all, of, from, shapes)
}

// kl holds the positions of the operation's inputs; -1 means absent.
type kl struct {
	d            Distribution
	n            int
	mask, logStd int
}

func runKL[T kernel.Float](k *kl) runFunc[T] {
	d, n := k.d, k.n
	l, w := d.Logits(), d.Head()
	return func(out []T, in [][]T, scratch []T) {
		head, old, weight, divisor := in[0], in[1], in[2], in[3][0]
		logp, logq, p, q := scratch[:n*l], scratch[n*l:2*n*l], scratch[2*n*l:3*n*l], scratch[3*n*l:4*n*l]
		scratch = scratch[4*n*l:]
		var mask, logStd, oldStd []T
		if k.mask >= 0 {
			mask = in[k.mask]
			LogProbs(d, logp, head, mask, n)
			LogProbs(d, logq, old, mask, n)
			kernel.Exp(p, logp)
			kernel.Exp(q, logq)
		}
		precision, ratio := scratch[:d.Dims], scratch[d.Dims:2*d.Dims] // 1/s², (s_old/s)²
		if k.logStd >= 0 {
			logStd, oldStd = in[k.logStd], in[k.logStd+1]
			for c := range d.Dims {
				precision[c], ratio[c] = -2*logStd[c], 2*(oldStd[c]-logStd[c])
			}
			kernel.Exp(scratch[:2*d.Dims], scratch[:2*d.Dims])
		}
		dHead, dLogStd := out[1:1+n*w], out[1+n*w:]
		clear(dLogStd)
		var sum T
		for i, wt := range weight {
			g := dHead[i*w : (i+1)*w]
			clear(g)
			if wt == 0 { // a row that only fills up the batch may hold anything
				continue
			}
			share := wt / divisor
			for j := range l {
				if at := i*l + j; mask[at] != 0 {
					sum += share * q[at] * (logq[at] - logp[at])
					g[j] = share * (p[at] - q[at])
				}
			}
			for c := range d.Dims {
				move := head[i*w+l+c] - old[i*w+l+c]
				far := ratio[c] + move*move*precision[c]
				sum += share * (logStd[c] - oldStd[c] + far/2 - 0.5)
				g[l+c] = share * move * precision[c]
				dLogStd[c] += share * (1 - far)
			}
		}
		out[0] = sum
	}
}
