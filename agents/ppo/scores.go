package ppo

import (
	"context"
	"fmt"
	"math"

	"clustergym/agents"
	"clustergym/env"
)

var _ agents.Scorer = (*Policy)(nil)

// Scores implements agents.Scorer: the probability of every action after masking, 0 for one that is not legal.
// Environments whose action has several factors or numbers are an error.
func (p *Policy) Scores(ctx context.Context, b *env.Batch, dst []float32) (agents.ScoreKind, error) {
	if len(p.act.dist.Sizes) != 1 || p.act.dist.Dims > 0 {
		return "", fmt.Errorf("ppo: an action of %s has %d factors and %d numbers, and scores want one factor", p.act.spec.ID,
			len(p.act.dist.Sizes), p.act.dist.Dims)
	}
	if err := p.act.fit(b, env.NewActions(p.act.spec, b.N), nil, false); err != nil {
		return "", err
	}
	n := b.N * p.act.dist.Logits()
	if len(dst) < n {
		return "", fmt.Errorf("ppo: room for %d scores, want %d", len(dst), n)
	}
	if err := p.fwd.Run(ctx, p.act.seen(b.Obs, b.N), b.N, p.act.head, nil); err != nil {
		return "", err
	}
	p.act.distribution(b.N)
	for k := range n {
		dst[k] = 0
		if p.act.mask[k] != 0 {
			dst[k] = float32(math.Exp(float64(p.act.logp[k])))
		}
	}
	return agents.Probabilities, nil
}
