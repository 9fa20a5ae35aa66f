package op

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// PPO names the inputs of PPOLoss. All but Coef are [N], one element per transition. LogP, Entropy and Value
// depend on the parameters; for several action factors LogP and Entropy are sums over the factors.
type PPO struct {
	LogP      *gorgonia.Node // log-probability of the action taken, now
	Entropy   *gorgonia.Node // of the policy, now
	Value     *gorgonia.Node // estimate, now
	OldLogP   *gorgonia.Node // log-probability when the action was taken
	Advantage *gorgonia.Node // normalised or not, as the caller likes
	Return    *gorgonia.Node // what Value should become
	OldValue  *gorgonia.Node // estimate when the action was taken, for value clipping
	Weight    *gorgonia.Node // of the row: 1, or 0 for rows that only fill up the batch
	Coef      *gorgonia.Node // [PPOCoefs], see the constants
}

// Positions in PPO.Coef. They are inputs, so schedules may change them between runs.
const (
	PPOClip    = iota // range of the ratio, as 0.2
	PPOVFClip         // range of the value's change, 0 = no value clipping
	PPOVFCoef         // weight of the value loss
	PPOEntCoef        // weight of the entropy bonus
	PPODivisor        // rows of the whole minibatch; shards of it use the same, so that their gradients add up to its
	PPOCoefs          // length of Coef
)

// Positions in the statistics of PPOLoss. Each is sum(Weight·x)/divisor over the rows, so shards add up as well.
const (
	PPOPolicyLoss   = iota // clipped surrogate, before coefficients
	PPOValueLoss           // half the squared error, before coefficients
	PPOEntropy             // in nats
	PPOApproxKL            // (ratio - 1) - log ratio, Schulman's k3
	PPOClipFraction        // share of rows whose ratio is out of range
	PPOStats               // number of statistics
)

// PPOLoss is the scalar loss of proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347, eq. 7 and 9),
//
//	sum over rows of Weight·(policy + VFCoef·value - EntCoef·Entropy) / divisor,
//
// with policy = -min(r·A, clip(r, 1±Clip)·A), r = exp(LogP - OldLogP), and value = (Value - Return)²/2, or with
// value clipping the larger of that and the same with Value kept within VFClip of OldValue, as in OpenAI's
// baselines (Stable-Baselines3 has no factor 1/2). The second result is the vector of PPOStats statistics; it is
// meant as an output and has no gradient.
func PPOLoss(x PPO) (loss, stats *gorgonia.Node) {
	in := []*gorgonia.Node{x.LogP, x.Entropy, x.Value, x.OldLogP, x.Advantage, x.Return, x.OldValue, x.Weight, x.Coef}
	n := shape("ppo", x.LogP, 1)[0]
	for _, v := range in[:8] {
		s := shape("ppo", v, 1)
		need(s[0] == n, "ppo: input %q has shape %v, want [%d]", v.Name(), s, n)
	}
	need(shape("ppo", x.Coef, 1)[0] == PPOCoefs, "ppo: %d coefficients, want %d", x.Coef.Shape()[0], PPOCoefs)
	loss = apply(spec{
		name:    "ppo",
		out:     tensor.ScalarShape(),
		scratch: n,
		diff:    []bool{true, true, true, false, false, false, false, false, false},
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			gs := make(gorgonia.Nodes, len(in))
			gs[0] = apply(spec{name: "ppo-dlogp", out: tensor.Shape{n}, scratch: n}, runPPOLogP[float32], runPPOLogP[float64], in[0], in[3], in[4], in[7], in[8], grad)
			gs[1] = apply(spec{name: "ppo-dentropy", out: tensor.Shape{n}}, runPPOEntropy[float32], runPPOEntropy[float64], in[7], in[8], grad)
			gs[2] = apply(spec{name: "ppo-dvalue", out: tensor.Shape{n}}, runPPOValue[float32], runPPOValue[float64], in[2], in[5], in[6], in[7], in[8], grad)
			return gs
		},
	}, runPPO[float32], runPPO[float64], in...)
	stats = apply(spec{name: "ppo-stats", out: tensor.Shape{PPOStats}, scratch: n}, runPPOStats[float32], runPPOStats[float64], in...)
	return loss, stats
}

func runPPO[T kernel.Float](out []T, in [][]T, ratio []T) {
	var stats [PPOStats]T
	runPPOStats(stats[:], in, ratio)
	c := in[8]
	out[0] = stats[PPOPolicyLoss] + c[PPOVFCoef]*stats[PPOValueLoss] - c[PPOEntCoef]*stats[PPOEntropy]
}

// ratios sets ratio to exp(logp - old).
func ratios[T kernel.Float](ratio, logp, old []T) []T {
	ratio = ratio[:len(logp)]
	for i, x := range logp {
		ratio[i] = x - old[i]
	}
	kernel.Exp(ratio, ratio)
	return ratio
}

func runPPOStats[T kernel.Float](out []T, in [][]T, ratio []T) {
	logp, ent, value, old, adv, ret, oldV, weight, c := in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], in[8]
	clip, vfClip := c[PPOClip], c[PPOVFClip]
	ratio = ratios(ratio, logp, old)
	clear(out[:PPOStats])
	for i, w := range weight {
		if w == 0 { // whatever stands in a row that only fills up the batch
			continue
		}
		lr, r := logp[i]-old[i], ratio[i]
		a := adv[i]
		out[PPOPolicyLoss] += w * max(-a*r, -a*min(max(r, 1-clip), 1+clip))
		e := value[i] - ret[i]
		v := e * e
		if vfClip > 0 {
			e = oldV[i] + min(max(value[i]-oldV[i], -vfClip), vfClip) - ret[i]
			v = max(v, e*e)
		}
		out[PPOValueLoss] += w * v / 2
		out[PPOEntropy] += w * ent[i]
		out[PPOApproxKL] += w * ((r - 1) - lr)
		if r < 1-clip || r > 1+clip {
			out[PPOClipFraction] += w
		}
	}
	for k := range out[:PPOStats] {
		out[k] /= c[PPODivisor]
	}
}

func runPPOLogP[T kernel.Float](out []T, in [][]T, ratio []T) {
	logp, old, adv, weight, c, g := in[0], in[1], in[2], in[3], in[4], in[5][0]
	clip := c[PPOClip]
	ratio = ratios(ratio, logp, old)
	for i, w := range weight {
		out[i] = 0
		if w == 0 {
			continue
		}
		r := ratio[i]
		a := adv[i]
		if -a*r >= -a*min(max(r, 1-clip), 1+clip) { // not held back by the clip
			out[i] = g * w * -a * r / c[PPODivisor]
		}
	}
}

func runPPOEntropy[T kernel.Float](out []T, in [][]T, _ []T) {
	weight, c, g := in[0], in[1], in[2][0]
	for i, w := range weight {
		out[i] = -g * w * c[PPOEntCoef] / c[PPODivisor]
	}
}

func runPPOValue[T kernel.Float](out []T, in [][]T, _ []T) {
	value, ret, oldV, weight, c, g := in[0], in[1], in[2], in[3], in[4], in[5][0]
	clip := c[PPOVFClip]
	for i, w := range weight {
		out[i] = 0
		if w == 0 {
			continue
		}
		e := value[i] - ret[i]
		d := e
		if clip > 0 {
			move := value[i] - oldV[i]
			k := oldV[i] + min(max(move, -clip), clip) - ret[i]
			if k*k > e*e { // then the clip is at work, and the kept value does not move
				d = 0
				if move > -clip && move < clip { // only rounding made it larger
					d = e
				}
			}
		}
		out[i] = g * w * c[PPOVFCoef] * d / c[PPODivisor]
	}
}
