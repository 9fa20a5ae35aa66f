package agents

import (
	"context"
	"math/rand/v2"

	"clustergym/env"
)

// Player plays whole episodes of one environment with one policy. Not safe for concurrent use.
type Player struct {
	env    env.Env
	policy Policy
	batch  *env.Batch // of one row
	action *env.Actions
	ts     env.TimeStep // views of batch
	src    [1]*rand.Rand
}

// NewPlayer returns a player of e with p. Its buffers are used for all episodes.
func NewPlayer(e env.Env, p Policy) *Player {
	b := env.NewBatch(e.Spec(), 1)
	return &Player{
		env: e, policy: p, batch: b, action: env.NewActions(e.Spec(), 1),
		ts: env.TimeStep{Obs: b.Obs, Mask: b.Mask, Info: b.Info},
	}
}

// Play plays episode ep to its end. The policy draws from src, which may be nil for one that does not draw. Play
// returns the sum of the rewards and the number of steps; the last time step is TimeStep.
func (p *Player) Play(ctx context.Context, ep env.Episode, src *rand.Rand) (ret float64, steps int, err error) {
	p.src[0] = src
	return env.Play(ctx, p.env, ep, &p.ts, func(ts *env.TimeStep, a env.Action) error {
		p.batch.Kind[0] = ts.Kind
		if err := p.policy.Act(ctx, p.batch, p.action, p.src[:]); err != nil {
			return err
		}
		copy(a.Disc, p.action.Disc)
		copy(a.Cont, p.action.Cont)
		return nil
	})
}

// TimeStep returns the current time step, whose slices belong to the player.
func (p *Player) TimeStep() *env.TimeStep { return &p.ts }
