package op

import "gorgonia.org/gorgonia"

// PPO names the inputs of PPOLoss. All but Coef are [N], one element per transition. LogP, Entropy and Value
// depend on the parameters; for several action factors LogP and Entropy are sums over the factors. Entropy may be a
// single number, the same for all rows.
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
//
// It is composed of operations that know their gradients, so another loss needs only another formula.
func PPOLoss(x PPO) (loss, stats *gorgonia.Node) {
	n := shape("ppo", x.LogP, 1)[0]
	for _, v := range []*gorgonia.Node{x.LogP, x.Entropy, x.Value, x.OldLogP, x.Advantage, x.Return, x.OldValue,
		x.Weight} {
		if v == x.Entropy && size(v.Shape()) == 1 {
			continue
		}
		s := shape("ppo", v, 1)
		need(s[0] == n, "ppo: input %q has shape %v, want [%d]", v.Name(), s, n)
	}
	need(shape("ppo", x.Coef, 1)[0] == PPOCoefs, "ppo: %d coefficients, want %d", x.Coef.Shape()[0], PPOCoefs)
	clip := element(x.Coef, PPOClip)
	low, high := Affine(clip, -1, 1), Affine(clip, 1, 1)
	// A row that only fills up the batch may hold anything, even NaN; Keep makes it count 0.
	live := func(v *gorgonia.Node) *gorgonia.Node { return Keep(v, x.Weight) }

	logRatio, advantage := live(Sub(x.LogP, x.OldLogP)), live(x.Advantage)
	ratio := Exp(logRatio)
	gain := Min(Mul(ratio, advantage), Mul(Clamp(ratio, low, high), advantage))
	policy := Affine(gain, -1, 0)

	value := x.valueLoss()

	entropy := x.Entropy
	if size(entropy.Shape()) == n {
		entropy = live(Reshape(entropy, n))
	}

	share := Div(x.Weight, element(x.Coef, PPODivisor))
	mean := func(v *gorgonia.Node) *gorgonia.Node { return Sum(Mul(share, v)) }
	policyLoss, valueLoss, bonus := mean(policy), mean(value), mean(entropy)
	loss = Sub(Add(policyLoss, Mul(valueLoss, element(x.Coef, PPOVFCoef))), Mul(bonus, element(x.Coef, PPOEntCoef)))

	kl := Sub(Affine(ratio, 1, -1), logRatio)
	stats = list(policyLoss, valueLoss, bonus, mean(kl), mean(outside(ratio, low, high)))
	return loss, stats
}

// valueLoss is half the squared error of every row's value, 0 in rows that only fill up the batch.
func (x *PPO) valueLoss() *gorgonia.Node {
	live := func(v *gorgonia.Node) *gorgonia.Node { return Keep(v, x.Weight) }
	vfClip := orInf(element(x.Coef, PPOVFClip))
	miss := live(Sub(x.Value, x.Return))
	move := Clamp(live(Sub(x.Value, x.OldValue)), Affine(vfClip, -1, 0), vfClip)
	keptMiss := live(Sub(Add(x.OldValue, move), x.Return))
	return Affine(Max(Square(miss), Square(keptMiss)), 0.5, 0)
}

// ValueLoss is the part of PPOLoss that depends on Value: VFCoef times the value loss. Of x it needs Value, Return,
// OldValue, Weight and Coef. The second result is the value loss before its coefficient, in shape [1].
func ValueLoss(x PPO) (loss, stats *gorgonia.Node) {
	n := shape("value", x.Value, 1)[0]
	for _, v := range []*gorgonia.Node{x.Return, x.OldValue, x.Weight} {
		s := shape("value", v, 1)
		need(s[0] == n, "value: input %q has shape %v, want [%d]", v.Name(), s, n)
	}
	share := Div(x.Weight, element(x.Coef, PPODivisor))
	mean := Sum(Mul(share, x.valueLoss()))
	return Mul(mean, element(x.Coef, PPOVFCoef)), list(mean)
}

// ComposedLoss is SurrogateLoss as a composition of single operations: PPOLoss of PolicyLogProb. It is slower, and
// differs in the last bits.
func ComposedLoss(x Surrogate) (loss, stats *gorgonia.Node) {
	logp, entropy := PolicyLogProb(x.Dist, x.Head, x.LogStd, x.Mask, x.Action, x.Number)
	return PPOLoss(PPO{LogP: logp, Entropy: entropy, Value: x.Value, OldLogP: x.OldLogP, Advantage: x.Advantage,
		Return:   x.Return,
		OldValue: x.OldValue, Weight: x.Weight, Coef: x.Coef})
}

// PolicyLogProb is the log-probability [N] of every row's action under a distribution, and the distribution's entropy:
// [N], or a single number if there are no discrete factors, because it is then the same for every row. The inputs are
// as in Surrogate.
func PolicyLogProb(d Distribution, head, logStd, mask, action, number *gorgonia.Node) (logp, entropy *gorgonia.Node) {
	n := shape("policy", head, 2)[0]
	plus := func(sum, x *gorgonia.Node) *gorgonia.Node {
		if sum == nil {
			return x
		}
		return Add(sum, x)
	}
	at := 0
	for k, size := range d.Sizes {
		legal := Columns(mask, at, at+size)
		lp := MaskedLogSoftmax(Columns(head, at, at+size), legal)
		logp = plus(logp, Gather(lp, Reshape(Columns(action, k, k+1), n)))
		entropy = plus(entropy, Entropy(lp, legal))
		at += size
	}
	if d.Dims > 0 {
		z := Mul(Sub(number, Columns(head, at, at+d.Dims)), Exp(Affine(logStd, -1, 0)))
		logp = plus(logp, RowSum(Sub(Affine(Square(z), -0.5, -halfLog2Pi), logStd)))
		entropy = plus(entropy, Sum(Affine(logStd, 1, halfLog2PiE)))
	}
	return logp, entropy
}
