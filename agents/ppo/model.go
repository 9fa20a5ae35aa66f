package ppo

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/nets"
	"clustergym/nets/kernel"
	"clustergym/nets/model"
	"clustergym/replay"
)

// modelRows is the number of rows that a Model's losses work on at a time.
const modelRows = 256

// ModelConfig decides how a Model acts.
type ModelConfig struct {
	// LogStd is the logarithm of the deviation that continuous actions begin with.
	LogStd float64 `yaml:"log_std"`
	// ScaleActions has the policy count continuous actions with finite bounds in half widths from the middle of
	// their box, -1 to 1, instead of in their own unit.
	ScaleActions bool         `yaml:"scale_actions"`
	Network      model.Config `yaml:"network"`
}

func (c ModelConfig) config() Config {
	return Config{LogStd: c.LogStd, ScaleActions: c.ScaleActions, Network: c.Network}
}

// Model is a policy network with the gradients of its losses over whole episodes, for callers that make the updates
// themselves, such as package maml. It learns nothing by itself. Not safe for concurrent use.
type Model struct {
	cfg    Config
	spec   env.Spec
	net    *model.ActorCritic
	fwd    *model.ACBatches
	act    actor
	greedy *Policy

	loss   *loss
	kl     *klShard
	values []float32 // scratch
}

// NewModel returns a policy for environments of spec s, with weights that follow from seed. Errors name every key of
// cfg that does not fit, or say why the policy cannot act in the environment.
func NewModel(c ModelConfig, s env.Spec, seed uint64) (*Model, error) {
	cfg := c.config()
	net, err := newNet(cfg, s, seed)
	if err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg, spec: s, net: net, fwd: net.Batches(1), act: newActor(cfg, s, net.LogStd(), nil)}
	m.greedy = newPolicy(cfg, net, s, nil, 1)
	if m.loss, err = newLoss(Fused, net, m.act.dist, s.ObsLen(), modelRows, lossParts{}); err != nil {
		return nil, fmt.Errorf("ppo: %w", err)
	}
	if m.kl, err = newKL(net, m.act.dist, s.ObsLen()); err != nil {
		return nil, fmt.Errorf("ppo: %w", err)
	}
	return m, nil
}

// Params returns the network's parameters. Changing them changes the policy.
func (m *Model) Params() *nets.Params { return m.net.Params() }

// Spec returns the spec of the environments that it acts in.
func (m *Model) Spec() env.Spec { return m.spec }

// Greedy returns the policy of the most likely actions. It shares the parameters.
func (m *Model) Greedy() agents.Policy { return m.greedy }

// By has Greedy choose by another rule, as Policy.By does.
func (m *Model) By(r agents.Rule) { m.greedy.By(r) }

// Part returns what a checkpoint keeps of it: "weights.safetensors".
func (m *Model) Part() agents.Part {
	return agents.NewPart("weights.safetensors", &weightsPart{m.net.Params(), nil})
}

// Load reads what Part wrote.
func (m *Model) Load(weights io.Reader) error {
	if _, err := (&weightsPart{m.net.Params(), nil}).ReadFrom(weights); err != nil {
		return fmt.Errorf("ppo: weights for %s: %w", m.spec.ID, err)
	}
	return nil
}

// Act draws one legal action for every row of b, row i from src[i].
func (m *Model) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if err := m.act.fit(b, dst, src, true); err != nil {
		return err
	}
	if err := m.fwd.Run(ctx, b.Obs, b.N, m.act.head, nil); err != nil {
		return err
	}
	m.act.distribution(b.N)
	for i := range b.N {
		if err := m.act.sample(b, i, src[i], dst); err != nil {
			return err
		}
	}
	return nil
}

// LogProbs returns the log-probabilities [N, Spec.MaskLen()] of all actions of the last Act, very negative for
// illegal ones. They belong to the model.
func (m *Model) LogProbs() []float32 { return m.act.logp }

// Numbers returns the continuous actions [N, len(Spec.Action.Low)] of the last Act as they were drawn, before they
// were clipped to the box. They belong to the model.
func (m *Model) Numbers() []float32 { return m.act.number }

// Score fills in what e keeps of the policy that acted, as if this policy had acted: LogProb, Head and LogStd.
func (m *Model) Score(e *replay.Episodes) error {
	d, n := m.act.dist, e.Len()
	e.LogProb, e.Head = slices.Grow(e.LogProb[:0], n)[:n], slices.Grow(e.Head[:0], n*d.Head())[:n*d.Head()]
	e.LogStd = append(e.LogStd[:0], m.net.LogStd()...)
	w := d.Head()
	return m.each(e, func(i int, head, logp []float32) {
		copy(e.Head[i*w:(i+1)*w], head)
		e.LogProb[i] = m.logProb(e, i, head, logp)
	})
}

// Surrogate returns the mean over all transitions of −min(r·A, clip(r, 1±clip)·A) − ent·H at the current parameters,
// where r is the current probability of the action divided by that of e.LogProb, A is e.Advantage and H the entropy;
// clip 0 does not clip. At the policy that acted, its gradient is that of the policy-gradient theorem and, without a
// clip, its Hessian that of the expected return (Rothfuss et al. 2019, arXiv 1810.06784, section 5.2: the objective J
// of ProMP). The gradient overwrites g; nil means that it is not wanted.
func (m *Model) Surrogate(g *nets.Params, e *replay.Episodes, clip, ent float64) (loss float64, err error) {
	d, n, s := m.act.dist, e.Len(), m.loss
	if n == 0 || len(e.Advantage) != n || len(e.LogProb) != n {
		return 0,
			fmt.Errorf("ppo: %d transitions with %d advantages and %d log-probabilities, want as many of each and at least one",
				n, len(e.Advantage), len(e.LogProb))
	}
	if clip == 0 {
		clip = 1e30
	}
	if g == nil {
		return m.surrogateValue(e, clip, ent)
	}
	s.set(coefs{clip: clip, ent: ent, divisor: float64(n)})
	o, l, f, c := m.act.obsLen, d.Logits(), len(d.Sizes), d.Dims
	sum := stats{}
	for from := 0; from < n; from += modelRows {
		k := min(modelRows, n-from)
		copy(s.obs, e.Obs[from*o:(from+k)*o])
		model.Legal(s.mask[:k*l], e.Mask[from*l:])
		for i, a := range e.Action.Disc[from*f : (from+k)*f] {
			s.action[i] = float32(a)
		}
		copy(s.number, e.Number[from*c:(from+k)*c])
		copy(s.logp, e.LogProb[from:from+k])
		copy(s.advantage, e.Advantage[from:from+k])
		weigh(s.weight, k)
		if err := s.run(); err != nil {
			return 0, err
		}
		sum.add(s.stats())
		accumulate(g, s.grad(), from == 0)
	}
	loss = sum.policy - ent*sum.entropy
	if loss-loss != 0 {
		return 0, fmt.Errorf("ppo: the surrogate loss is %v", loss)
	}
	return loss, nil
}

// Divergence returns the mean over all transitions of KL(the policy of e.Head and e.LogStd ‖ this one). Its gradient
// overwrites g; nil means that it is not wanted.
func (m *Model) Divergence(g *nets.Params, e *replay.Episodes) (kl float64, err error) {
	d, n, s := m.act.dist, e.Len(), m.kl
	if n == 0 || len(e.Head) != n*d.Head() {
		return 0, fmt.Errorf("ppo: %d transitions with %d outputs of the policy that acted, want %d", n, len(e.Head),
			n*d.Head())
	}
	if g == nil {
		return m.divergenceValue(e)
	}
	s.divisor[0] = float32(n)
	copy(s.oldStd, e.LogStd)
	o, l, w := m.act.obsLen, d.Logits(), d.Head()
	for from := 0; from < n; from += modelRows {
		k := min(modelRows, n-from)
		copy(s.obs, e.Obs[from*o:(from+k)*o])
		model.Legal(s.mask[:k*l], e.Mask[from*l:])
		copy(s.old, e.Head[from*w:(from+k)*w])
		weigh(s.weight, k)
		if err := s.prog.Run(); err != nil {
			return 0, err
		}
		kl += s.prog.Loss()
		accumulate(g, s.prog.Grad(), from == 0)
	}
	if kl-kl != 0 {
		return 0, fmt.Errorf("ppo: the divergence is %v", kl)
	}
	return kl, nil
}

// weigh sets the weights of the first k rows to 1 and of the others to 0.
func weigh(weight []float32, k int) {
	for i := range weight[:k] {
		weight[i] = 1
	}
	clear(weight[k:])
}

// accumulate adds part, the gradient of some of the rows, to g.
func accumulate(g, part *nets.Params, first bool) {
	switch {
	case g == nil:
	case first:
		copy(g.Data, part.Data)
	default:
		kernel.Add(g.Data, g.Data, part.Data)
	}
}
