package ppo

// PPO's loss is written down twice, and Config.Loss says which one trains:
//
//   - fused (the default): op.SurrogateLoss in nets/op/surrogate.go, one operation from the network's head and value to
//     the loss, whose gradient is derived by hand and stands beside the formula;
//   - composed: op.ComposedLoss in nets/op/ppo.go, the same formula in a dozen lines of operations that know their
//     gradients (nets/op/arith.go), differentiated by the graph library.
//
// To try another loss, change PPOLoss in nets/op/ppo.go, or call a function of your own in newLoss, and train with
// --set ppo.loss=composed: there is no gradient to derive. Inputs that the formula lacks are declared in newLoss, as
// b.Input, and filled in workShard. Tests hold the two ways equal, so a change that is to stay goes into both, or
// replaces one. The sums that shards report are op.PPOStats.

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets"
	"clustergym/nets/model"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// loss computes the loss and its gradient over up to cap rows of a minibatch. It has its own buffers and shares the
// network's parameters. It belongs to one goroutine at a time.
type loss struct {
	prog *tape.Program
	cap  int

	// Inputs, views of prog's memory: mask and action are nil without discrete factors, number without numbers.
	obs, mask, action, number, logp, advantage, target, value, weight, coef []float32

	// Of an anchored loss: the outputs of the policy to stay near, its deviations, and the steps of the minibatch over the
	// anchor's weight.
	anchor, anchorStd, anchorDivisor []float32
}

// Positions of a loss's outputs.
const (
	outStats  = 0
	outAnchor = 1 // of an anchored loss: its part, times the weight
)

// lossParts are what a loss can have and leave out.
type lossParts struct {
	anchor bool // it adds the divergence from another policy (op.KLLoss)
	alone  bool // it is the policy's alone: the critic is not computed, and its gradient is 0
}

// newLoss builds the loss of policy and critic.
func newLoss(by Loss, m *model.ActorCritic, d op.Distribution, obsLen, capacity int, parts lossParts) (*loss, error) {
	n := capacity
	prog, err := tape.Build(tensor.Float32, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		head, value := m.Graph(b, b.Input("obs", n, obsLen))
		if parts.alone {
			value = b.Input("no value", n)
		}
		x := op.Surrogate{
			Dist: d, Head: head, LogStd: m.LogStdNode(b), Value: value,
			OldLogP:   b.Input("logp", n),
			Advantage: b.Input("advantage", n),
			Return:    b.Input("return", n),
			OldValue:  b.Input("value", n),
			Weight:    b.Input("weight", n),
			Coef:      b.Input("coef", op.PPOCoefs),
		}
		if len(d.Sizes) > 0 {
			x.Mask, x.Action = b.Input("mask", n, d.Logits()), b.Input("action", n, len(d.Sizes))
		}
		if d.Dims > 0 {
			x.Number = b.Input("number", n, d.Dims)
		}
		way := op.SurrogateLoss
		if by == Composed {
			way = op.ComposedLoss
		}
		l, stats := way(x)
		if !parts.anchor {
			return l, []*gorgonia.Node{stats}
		}
		y := op.KL{
			Dist: d, Head: x.Head, LogStd: x.LogStd, OldHead: b.Input("anchor", n, d.Head()),
			Mask: x.Mask, Weight: x.Weight, Divisor: b.Input("anchor_divisor", 1),
		}
		if d.Dims > 0 {
			y.OldLogStd = b.Input("anchor_std", d.Dims)
		}
		kl := op.KLLoss(y)
		return op.Add(l, kl), []*gorgonia.Node{stats, kl}
	})
	if err != nil {
		return nil, err
	}
	l := &loss{
		prog: prog, cap: n,
		obs: prog.Input("obs"), mask: prog.Input("mask"), action: prog.Input("action"), number: prog.Input("number"),
		logp:      prog.Input("logp"),
		advantage: prog.Input("advantage"), target: prog.Input("return"), value: prog.Input("value"),
		weight: prog.Input("weight"), coef: prog.Input("coef"),
	}
	if parts.anchor {
		l.anchor, l.anchorStd, l.anchorDivisor = prog.Input("anchor"), prog.Input("anchor_std"), prog.Input("anchor_divisor")
	}
	return l, nil
}

// coefs are the coefficients of the loss; divisor is the number of steps in the whole minibatch.
type coefs struct{ clip, clipValue, vf, ent, anchor, divisor float64 }

func (l *loss) set(c coefs) {
	setCoefs(l.coef, c)
	if l.anchorDivisor != nil {
		l.anchorDivisor[0] = float32(c.divisor / c.anchor) // infinite where the anchor has no weight
	}
}

func setCoefs(dst []float32, c coefs) {
	dst[op.PPOClip] = float32(c.clip)
	dst[op.PPOVFClip] = float32(c.clipValue)
	dst[op.PPOVFCoef] = float32(c.vf)
	dst[op.PPOEntCoef] = float32(c.ent)
	dst[op.PPODivisor] = float32(c.divisor)
}

// stats are sums that add up, shard by shard, to a minibatch's means.
type stats struct{ policy, value, entropy, kl, clipped, anchor float64 }

func (s *stats) add(t stats) {
	s.policy += t.policy
	s.value += t.value
	s.entropy += t.entropy
	s.kl += t.kl
	s.clipped += t.clipped
	s.anchor += t.anchor
}

// run computes loss and gradient of the current inputs.
func (l *loss) run() error { return l.prog.Run() }

func (l *loss) grad() *nets.Params { return l.prog.Grad() }

func (l *loss) stats() stats {
	o := l.prog.Output(outStats)
	s := stats{
		policy: float64(o[op.PPOPolicyLoss]), value: float64(o[op.PPOValueLoss]), entropy: float64(o[op.PPOEntropy]),
		kl: float64(o[op.PPOApproxKL]), clipped: float64(o[op.PPOClipFraction]),
	}
	if l.anchor != nil {
		s.anchor = float64(l.prog.Output(outAnchor)[0])
	}
	return s
}
