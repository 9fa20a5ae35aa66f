package op

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// Surrogate names the inputs of SurrogateLoss. Head, LogStd and Value depend on the parameters.
type Surrogate struct {
	Dist      Distribution
	Head      *gorgonia.Node // [N, Dist.Head()]
	LogStd    *gorgonia.Node // [Dist.Dims], nil without normal distributions
	Value     *gorgonia.Node // [N]
	Mask      *gorgonia.Node // [N, Dist.Logits()], 1 = legal; nil without factors
	Action    *gorgonia.Node // [N, len(Dist.Sizes)], whole numbers; nil without factors
	Number    *gorgonia.Node // [N, Dist.Dims], as drawn; nil without normal distributions
	OldLogP   *gorgonia.Node // [N], this and the following as in PPO
	Advantage *gorgonia.Node
	Return    *gorgonia.Node
	OldValue  *gorgonia.Node
	Weight    *gorgonia.Node
	Coef      *gorgonia.Node // [PPOCoefs]
}

// SurrogateLoss is PPOLoss of the log-probabilities and entropies of a network's head, fused into one operation with
// its gradients in closed form. With a logit z of a factor with probabilities p and entropy H,
//
//	d logp/dz = [z is the action's] − p,  dH/dz = −p·(log p + H),
//
// and for a normal distribution with x = (action − mean)/deviation
//
//	d logp/d mean = x/deviation,  d logp/d log deviation = x² − 1,  dH/d log deviation = 1.
//
// Illegal logits have no gradient. Everything is computed once per run; as separate operations it takes longer, see
// ComposedLoss, which is the readable form.
func SurrogateLoss(x Surrogate) (loss, stats *gorgonia.Node) {
	d := x.Dist
	n := shape("surrogate", x.Value, 1)[0]
	hs := shape("surrogate", x.Head, 2)
	need(hs[0] == n && hs[1] == d.Head() && d.Head() > 0, "surrogate: head %v for %d values and a distribution of %d", hs,
		n, d.Head())
	s := &surrogate{d: d, n: n}
	s.in = append(s.in, x.Head, x.Value, x.OldLogP, x.Advantage, x.Return, x.OldValue, x.Weight)
	for _, v := range s.in[1:] {
		vs := shape("surrogate", v, 1)
		need(vs[0] == n, "surrogate: input %q has shape %v, want [%d]", v.Name(), vs, n)
	}
	need(shape("surrogate", x.Coef, 1)[0] == PPOCoefs, "surrogate: %d coefficients, want %d", x.Coef.Shape()[0], PPOCoefs)
	s.in = append(s.in, x.Coef)
	if len(d.Sizes) > 0 {
		s.mask = s.matrix(x.Mask, d.Logits())
		s.action = s.matrix(x.Action, len(d.Sizes))
	}
	if d.Dims > 0 {
		s.number = s.matrix(x.Number, d.Dims)
		ls := shape("surrogate", x.LogStd, 1)
		need(ls[0] == d.Dims, "surrogate: %d deviations for %d dimensions", ls[0], d.Dims)
		s.logStd = len(s.in)
		s.in = append(s.in, x.LogStd)
	}
	s.dHead = PPOStats + 1
	s.dValue = s.dHead + n*d.Head()
	s.dLogStd = s.dValue + n
	all := apply(spec{name: fmt.Sprintf("surrogate %v", d), out: tensor.Shape{s.dLogStd + d.Dims},
		scratch: 2*n*d.Logits() + 2*n + d.Dims},
		runSurrogate[float32](s), runSurrogate[float64](s), s.in...)

	// The loss depends on the parameters through these; their gradients are in all.
	of := []*gorgonia.Node{x.Head, x.Value}
	from, shapes := []int{s.dHead, s.dValue}, []tensor.Shape{{n, d.Head()}, {n}}
	if d.Dims > 0 {
		of, from, shapes = append(of, x.LogStd), append(from, s.dLogStd), append(shapes, tensor.Shape{d.Dims})
	}
	loss = parts("surrogate", PPOStats, all, of, from, shapes)
	stats = apply(spec{name: "surrogate-stats", out: tensor.Shape{PPOStats}}, runSurrogateStats[float32],
		runSurrogateStats[float64], all)
	return loss, stats
}

// surrogate holds the positions of the operation's inputs and of the parts of its result: the statistics, the loss,
// and the loss's gradients with respect to head, value and logarithms of deviations.
type surrogate struct {
	d                      Distribution
	n                      int
	in                     []*gorgonia.Node
	mask, action           int // positions in in
	number, logStd         int
	dHead, dValue, dLogStd int // positions in the result
}

// matrix adds an input [N, width] and returns its position.
func (s *surrogate) matrix(v *gorgonia.Node, width int) int {
	vs := shape("surrogate", v, 2)
	need(vs[0] == s.n && vs[1] == width, "surrogate: input %q has shape %v, want [%d %d]", v.Name(), vs, s.n, width)
	s.in = append(s.in, v)
	return len(s.in) - 1
}

// parts is the loss that all has at a position, next to the loss's gradients with respect to the nodes of: these begin
// at from and have the given shapes.
func parts(name string, at int, all *gorgonia.Node, of []*gorgonia.Node, from []int,
	shapes []tensor.Shape) *gorgonia.Node {
	return apply(spec{
		name: name + "-loss",
		out:  tensor.ScalarShape(),
		diff: len(of),
		grad: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gs gorgonia.Nodes) {
			for k := range of {
				gs = append(gs, apply(spec{name: fmt.Sprintf("%s-part %d", name, from[k]), out: shapes[k]},
					runPart[float32](from[k]), runPart[float64](from[k]), all, grad))
			}
			return gs
		},
	}, runLast[float32](at), runLast[float64](at), append(of, all)...)
}

// runLast returns the element of the last input at a position.
func runLast[T kernel.Float](at int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { out[0] = in[len(in)-1][at] }
}

func runSurrogateStats[T kernel.Float](out []T, in [][]T, _ []T) { copy(out, in[0][:PPOStats]) }

func runPart[T kernel.Float](from int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		part, g := in[0][from:from+len(out)], in[1][0]
		for i, x := range part {
			out[i] = g * x
		}
	}
}

func runSurrogate[T kernel.Float](s *surrogate) runFunc[T] {
	d, n := s.d, s.n
	l, w, f := d.Logits(), d.Head(), len(d.Sizes)
	return func(out []T, in [][]T, scratch []T) {
		head, value, old, adv, ret, oldV, weight, c := in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7]
		logp, p := scratch[:n*l], scratch[n*l:2*n*l]
		scratch = scratch[2*n*l:]
		lr, ratio, inv := scratch[:n], scratch[n:2*n], scratch[2*n:2*n+d.Dims]
		var mask, action, number, logStd []T
		var normal T // entropy of the normal distributions
		if f > 0 {
			mask, action = in[s.mask], in[s.action]
			LogProbs(d, logp, head, mask, n)
			kernel.Exp(p, logp)
		}
		if d.Dims > 0 {
			number, logStd = in[s.number], in[s.logStd]
			normal = NormalEntropy(logStd)
			Precisions(inv, logStd)
		}
		for i := range n {
			lr[i] = 0
			if weight[i] == 0 { // a row that only fills up the batch may hold anything
				continue
			}
			sum := taken(d.Sizes, logp[i*l:(i+1)*l], action, i)
			if d.Dims > 0 {
				sum += NormalLogProb(number[i*d.Dims:(i+1)*d.Dims], head[i*w+l:(i+1)*w], logStd, inv)
			}
			lr[i] = sum - old[i]
		}
		kernel.Exp(ratio, lr)

		clip, vfClip, divisor := c[PPOClip], c[PPOVFClip], c[PPODivisor]
		dHead, dValue, dLogStd := out[s.dHead:s.dValue], out[s.dValue:s.dLogStd], out[s.dLogStd:]
		clear(dLogStd)
		var policyLoss, valueLoss, entropy, kl, clipped T
		for i, wt := range weight {
			dh := dHead[i*w : (i+1)*w]
			if wt == 0 {
				clear(dh)
				dValue[i] = 0
				continue
			}
			share := wt / divisor
			// The policy, by its log-probability.
			r, a := ratio[i], adv[i]
			free, held := -a*r, -a*min(max(r, 1-clip), 1+clip)
			policyLoss += wt * max(free, held)
			var dLogP T
			if free >= held { // not held back by the clip
				dLogP = share * free
			}
			kl += wt * ((r - 1) - lr[i])
			if r < 1-clip || r > 1+clip {
				clipped += wt
			}
			// The value.
			v, dv := valueLossOf(value[i], ret[i], oldV[i], vfClip)
			valueLoss += wt * v
			dValue[i] = share * c[PPOVFCoef] * dv
			// From there to the head.
			dEntropy := -share * c[PPOEntCoef]
			sum, at := normal, 0
			for k, size := range d.Sizes {
				from, to := i*l+at, i*l+at+size
				sum += factorGrad(dh[at:at+size], logp[from:to], p[from:to], mask[from:to], int(action[i*f+k]), dLogP, dEntropy)
				at += size
			}
			entropy += wt * sum
			for k := range d.Dims {
				z := (number[i*d.Dims+k] - head[i*w+l+k]) * inv[k]
				dh[l+k] = dLogP * z * inv[k]
				dLogStd[k] += dLogP*(z*z-1) + dEntropy
			}
		}
		out[PPOPolicyLoss], out[PPOValueLoss] = policyLoss/divisor, valueLoss/divisor
		out[PPOEntropy], out[PPOApproxKL], out[PPOClipFraction] = entropy/divisor, kl/divisor, clipped/divisor
		out[PPOStats] = out[PPOPolicyLoss] + c[PPOVFCoef]*out[PPOValueLoss] - c[PPOEntCoef]*out[PPOEntropy]
	}
}

// taken returns the sum of the log-probabilities of row i's actions.
func taken[T kernel.Float](sizes []int, logp, action []T, i int) (sum T) {
	for k, size := range sizes {
		sum += logp[pick(action[i*len(sizes)+k], i, size)]
		logp = logp[size:]
	}
	return sum
}

// factorGrad sets g to the gradient with respect to a factor's logits, whose action was taken, and returns the factor's
// entropy. p are the probabilities whose logarithms are logp.
func factorGrad[T kernel.Float](g, logp, p, mask []T, taken int, dLogP, dEntropy T) (h T) {
	for j, x := range p {
		h -= x * logp[j]
	}
	for j, x := range p {
		g[j] = -x * (dLogP + dEntropy*(logp[j]+h))
	}
	g[taken] += dLogP
	for j, legal := range mask {
		if legal == 0 {
			g[j] = 0
		}
	}
	return h
}

// valueLossOf returns half the squared error of a value, and its derivative; with a clip, the larger of that and the
// same with the value kept within clip of the old one.
func valueLossOf[T kernel.Float](value, ret, old, clip T) (loss, d T) {
	e := value - ret
	if clip <= 0 {
		return e * e / 2, e
	}
	move := value - old
	k := old + min(max(move, -clip), clip) - ret
	if k*k <= e*e {
		return e * e / 2, e
	}
	if move > -clip && move < clip { // only rounding made the clipped error larger
		return k * k / 2, e
	}
	return k * k / 2, 0 // the clip holds the value, so it has no gradient
}
