package ddqn

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/nets/model"
)

// checkSpec returns why this algorithm cannot act in an environment, or nil if it can.
func checkSpec(s env.Spec) error {
	if len(s.Action.Sizes) != 1 || len(s.Action.Low) > 0 {
		return fmt.Errorf(
			"ddqn: %s has %d discrete factors and %d continuous actions, want one factor and no continuous actions",
			s.ID, len(s.Action.Sizes), len(s.Action.Low))
	}
	if s.ObsLen() == 0 {
		return fmt.Errorf("ddqn: %s has no observation", s.ID)
	}
	return nil
}

// newNet builds a network; its initial weights follow from seed alone.
func newNet(cfg Config, s env.Spec, seed uint64) (*model.QNet, error) {
	if err := checkSpec(s); err != nil {
		return nil, err
	}
	in := make(model.Input, len(s.Obs))
	for i, f := range s.Obs {
		in[i] = model.Field{Name: f.Name, Shape: f.Shape, Group: f.Group, Filled: f.Filled, Critic: f.Critic}
	}
	net, err := model.NewQNet(cfg.Network, in, s.Action.Sizes[0], cfg.Duelling, rng.Stream(seed, "ddqn/init"))
	if err != nil {
		var l fault.List
		l.Join("network", err)
		return nil, l.Err()
	}
	return net, nil
}

// pick draws one legal action uniformly; -1 if none is legal.
func pick(mask []bool, src *rand.Rand) int {
	if !slices.Contains(mask, true) {
		return -1
	}
	return env.Uniform(mask, src)
}

// chosen turns a result of agents.Best or pick into row i's action. An ended row, whose mask may be empty and whose
// action is ignored, gets 0.
func chosen(b *env.Batch, i, k int) (int32, error) {
	if k >= 0 {
		return int32(k), nil
	}
	if b.Kind[i].Last() {
		return 0, nil
	}
	return 0, fmt.Errorf("ddqn: row %d has no legal action, or a value that is NaN", i)
}

// fits checks a batch and the room for its actions.
func fits(s env.Spec, b *env.Batch, dst *env.Actions) error {
	n := b.N
	if dst.N != n || len(dst.Disc) < n {
		return fmt.Errorf("ddqn: a batch of %d rows and room for %d actions, want as many", n, len(dst.Disc))
	}
	if len(b.Obs) < n*s.ObsLen() || len(b.Mask) < n*s.MaskLen() || len(b.Kind) < n {
		return fmt.Errorf("ddqn: a batch of %d rows with %d observations and %d mask bits does not fit %s", n, len(b.Obs),
			len(b.Mask), s.ID)
	}
	return nil
}

// Policy takes the legal action of the largest value. It takes batches of any size. It has its own buffers and shares
// the parameters: use one per goroutine, and none while an agent learns.
type Policy struct {
	spec env.Spec
	fwd  *model.QBatches
	q    []float32 // grows with the largest batch seen
	net  *model.QNet
}

var _ agents.Chooser = (*Policy)(nil)

// NewPolicy returns the greedy policy of saved weights ("weights.safetensors" of a checkpoint) for environments of
// spec s. cfg's Network and Duelling must be those of the training; errors name the first tensor that does not fit.
func NewPolicy(cfg Config, s env.Spec, weights io.Reader) (*Policy, error) {
	net, err := newNet(cfg, s, 0)
	if err != nil {
		return nil, err
	}
	if _, err := net.Params().ReadFrom(weights); err != nil {
		return nil, fmt.Errorf("ddqn: weights for %s: %w", s.ID, err)
	}
	return &Policy{spec: s, fwd: net.Batches(1), net: net}, nil
}

// By implements agents.Chooser: values have agents.ByArgMax alone, whatever r.
func (*Policy) By(r agents.Rule) agents.Rule { return r.For(agents.Values) }

// Act chooses one legal action for every row of b. It draws nothing, and src may be nil.
func (p *Policy) Act(ctx context.Context, b *env.Batch, dst *env.Actions, _ []*rand.Rand) error {
	if err := fits(p.spec, b, dst); err != nil {
		return err
	}
	a := p.spec.MaskLen()
	if len(p.q) < b.N*a {
		p.q = make([]float32, b.N*a)
	}
	if err := p.fwd.Run(ctx, b.Obs, b.Mask, b.N, p.q); err != nil {
		return err
	}
	for i := 0; i < b.N; i++ {
		var err error
		if dst.Disc[i], err = chosen(b, i, agents.Best(p.q[i*a:(i+1)*a], b.Mask[i*a:(i+1)*a])); err != nil {
			return err
		}
	}
	return nil
}
