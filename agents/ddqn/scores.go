package ddqn

import (
	"context"
	"fmt"

	"clustergym/agents"
	"clustergym/env"
)

var _ agents.Scorer = (*Policy)(nil)

// Scores implements agents.Scorer: the value of every action, in the unit of returns; that of an action that is not
// legal means nothing.
func (p *Policy) Scores(ctx context.Context, b *env.Batch, dst []float32) (agents.ScoreKind, error) {
	if err := fits(p.spec, b, env.NewActions(p.spec, b.N)); err != nil {
		return "", err
	}
	n := b.N * p.spec.MaskLen()
	if len(dst) < n {
		return "", fmt.Errorf("ddqn: room for %d scores, want %d", len(dst), n)
	}
	return agents.Values, p.fwd.Run(ctx, b.Obs, b.Mask, b.N, dst[:n])
}
