package improper

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/nets"
)

// mixture is a softmax over controllers whose logits are linear in features: a constant, and the observation or
// nothing.
type mixture struct {
	obs, controllers int
	width            int // of a controller's row of theta: 1, or 1 + obs
	params           *nets.Params
}

// newMixture returns a mixture of all controllers alike.
func newMixture(cfg Config, s env.Spec) (*mixture, error) {
	if len(s.Action.Sizes) != 1 || len(s.Action.Low) > 0 {
		return nil,
			fmt.Errorf(
				"improper: %s has %d discrete factors and %d continuous actions, want one factor, whose actions are the base "+
					"controllers, and no continuous actions",
				s.ID, len(s.Action.Sizes), len(s.Action.Low))
	}
	m := &mixture{obs: s.ObsLen(), controllers: s.Action.Sizes[0], width: 1}
	if m.obs == 0 {
		return nil, fmt.Errorf("improper: %s has no observation", s.ID)
	}
	if cfg.Features == "observation" {
		m.width += m.obs
	}
	m.params = nets.NewParams([]nets.View{{Name: "theta", Shape: []int{m.controllers, m.width}}})
	return m, nil
}

// scatter sets theta to random numbers of a deviation.
func (m *mixture) scatter(deviation float64, seed uint64) {
	src := rng.Stream(seed, "improper/init")
	for i := range m.params.Data {
		m.params.Data[i] = float32(deviation * src.NormFloat64())
	}
}

// weights fills p with the probabilities of controllers under theta. Illegal ones have probability 0; if none is legal,
// all have. mask nil = all are legal.
func (m *mixture) weights(p []float64, theta []float32, obs []float32, mask []bool) {
	most := math.Inf(-1)
	for k := range p {
		row := theta[k*m.width : (k+1)*m.width]
		logit := float64(row[0])
		for i, w := range row[1:] {
			logit += float64(w) * float64(obs[i])
		}
		if p[k] = logit; (mask == nil || mask[k]) && logit > most {
			most = logit
		}
	}
	sum := 0.0
	for k := range p {
		if mask != nil && !mask[k] {
			p[k] = 0
			continue
		}
		p[k] = math.Exp(p[k] - most)
		sum += p[k]
	}
	if sum > 0 {
		for k := range p {
			p[k] /= sum
		}
	}
}

// draw returns a controller with probability p, or the likeliest without a stream, -1 if none is legal or a weight is
// NaN. One number is drawn from src.
func draw(p []float64, mask []bool, src *rand.Rand) int {
	if src == nil {
		at := -1
		for k, w := range p {
			if mask[k] && w == w && (at < 0 || w > p[at]) {
				at = k
			}
		}
		return at
	}
	left, last := src.Float64(), -1
	for k, w := range p {
		if !mask[k] || w != w {
			continue
		}
		last = k // the last legal one where rounding leaves something
		if left -= w; left < 0 {
			break
		}
	}
	return last
}

// fits checks a batch and the room for its actions.
func (m *mixture) fits(b *env.Batch, dst *env.Actions) error {
	n := b.N
	if dst.N != n || len(dst.Disc) < n || len(b.Obs) < n*m.obs || len(b.Mask) < n*m.controllers || len(b.Kind) < n {
		return fmt.Errorf(
			"improper: a batch of %d rows with %d observations, %d mask bits and room for %d actions does not fit %d "+
				"observations and %d controllers",
			n, len(b.Obs), len(b.Mask), dst.N, m.obs, m.controllers)
	}
	return nil
}

// act chooses for row i under theta, with scratch p.
func (m *mixture) act(p []float64, theta []float32, b *env.Batch, i int, src *rand.Rand) (int32, error) {
	mask := m.row(p, theta, b, i)
	return chosen(b, i, draw(p, mask, src))
}

// row fills p with the weights of row i under theta, and returns its mask.
func (m *mixture) row(p []float64, theta []float32, b *env.Batch, i int) (mask []bool) {
	mask = b.Mask[i*m.controllers : (i+1)*m.controllers]
	m.weights(p, theta, b.Obs[i*m.obs:(i+1)*m.obs], mask)
	return mask
}

// chosen turns a result of draw or agents.Choose into row i's action.
func chosen(b *env.Batch, i, k int) (int32, error) {
	if k < 0 {
		if b.Kind[i].Last() { // an ended row, whose action is ignored
			return 0, nil
		}
		return 0, fmt.Errorf("improper: row %d has no legal controller, or a weight that is NaN", i)
	}
	return int32(k), nil
}

// Policy plays the mixture: it draws controllers from the streams that Act is given, and takes the likeliest where
// there are none, or it chooses by another rule (By). It takes batches of any size and shares its parameters: use one
// per goroutine, and none while an agent learns.
type Policy struct {
	*mixture
	p    []float64 // [controllers], scratch
	noop int       // of agents.NoOp
	rule agents.Rule
}

var _ agents.Chooser = (*Policy)(nil)

func newPolicy(m *mixture, s env.Spec) *Policy {
	return &Policy{m, make([]float64, m.controllers), agents.NoOp(s), agents.BySample}
}

// NewPolicy returns the mixture of saved weights ("weights.safetensors" of a checkpoint) for environments of spec s.
// cfg's Features must be that of the training.
func NewPolicy(cfg Config, s env.Spec, weights io.Reader) (*Policy, error) {
	m, err := newMixture(cfg, s)
	if err != nil {
		return nil, err
	}
	if _, err := m.params.ReadFrom(weights); err != nil {
		return nil, fmt.Errorf("improper: weights for %s: %w", s.ID, err)
	}
	return newPolicy(m, s), nil
}

// By implements agents.Chooser: "" is agents.BySample, as the mixture is what is learned.
func (p *Policy) By(r agents.Rule) agents.Rule {
	if p.rule = r; r == "" {
		p.rule = agents.BySample
	}
	return p.rule
}

// Act chooses one legal controller for every row of b.
func (p *Policy) Act(_ context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if err := p.fits(b, dst); err != nil {
		return err
	}
	for i := range b.N {
		var own *rand.Rand
		if i < len(src) {
			own = src[i]
		}
		mask := p.row(p.p, p.params.Data, b, i)
		var k int
		if p.rule == agents.BySample {
			k = draw(p.p, mask, own)
		} else {
			k = agents.Choose(p.rule, agents.Probabilities, p.p, mask, p.noop, nil)
		}
		var err error
		if dst.Disc[i], err = chosen(b, i, k); err != nil {
			return err
		}
	}
	return nil
}

// Weights returns the probabilities of the controllers in a state in which all are legal. Without features obs may be
// nil. The slice is valid until the next call.
func (p *Policy) Weights(obs []float32) []float64 {
	p.weights(p.p, p.params.Data, obs, nil)
	return p.p
}
