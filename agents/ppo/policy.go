package ppo

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/nets/model"
	"clustergym/replay"
)

// Policy acts by a network's parameters, by one of the rules of agents.Rules. It takes batches of any size. It has its
// own buffers and shares the parameters: use one per goroutine, and none while an agent learns.
type Policy struct {
	cfg  Config
	fwd  *model.ACBatches
	act  actor
	net  *model.ActorCritic
	rule agents.Rule
}

var _ agents.Chooser = (*Policy)(nil)

func newPolicy(cfg Config, net *model.ActorCritic, s env.Spec, scale *replay.ObsScale, workers int) *Policy {
	return &Policy{cfg: cfg, fwd: net.Batches(workers), act: newActor(cfg, s, net.LogStd(), scale), net: net,
		rule: agents.ByShare}
}

// NewPolicy returns the policy of saved weights ("weights.safetensors" of a checkpoint) for environments of spec s. It
// chooses by agents.ByShare. cfg.Network, cfg.NormObs and the other keys that decide how a network acts must be those
// of the training; errors name the first tensor that does not fit.
func NewPolicy(cfg Config, s env.Spec, weights io.Reader) (*Policy, error) {
	net, err := newNet(cfg, s, 0)
	if err != nil {
		return nil, err
	}
	scale := newObsScale(cfg, s)
	if _, err := (&weightsPart{net.Params(), scale}).ReadFrom(weights); err != nil {
		return nil, fmt.Errorf("ppo: weights for %s: %w", s.ID, err)
	}
	return newPolicy(cfg, net, s, scale, 1), nil
}

// Sampling returns the policy that draws from the distribution instead of taking its most likely action. It shares
// p's parameters.
func (p *Policy) Sampling() *Policy {
	q := newPolicy(p.cfg, p.net, p.act.spec, p.act.scale, p.fwd.Workers())
	q.rule = agents.BySample
	return q
}

// By implements agents.Chooser: "" is agents.ByShare. agents.BySample draws the numbers of actions too, and the other
// rules take their means.
func (p *Policy) By(r agents.Rule) agents.Rule {
	p.rule = r.For(agents.Logits)
	return p.rule
}

// Act chooses one legal action for every row of b. Only agents.BySample draws; for the other rules src may be nil.
func (p *Policy) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	samples := p.rule == agents.BySample
	if err := p.act.fit(b, dst, src, samples); err != nil {
		return err
	}
	if err := p.fwd.Run(ctx, p.act.seen(b.Obs, b.N), b.N, p.act.head, nil); err != nil {
		return err
	}
	if samples {
		p.act.distribution(b.N)
	}
	for i := range b.N {
		var err error
		if samples {
			err = p.act.sample(b, i, src[i], dst)
		} else {
			err = p.act.best(p.rule, b, i, dst)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
