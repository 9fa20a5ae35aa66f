package ddqn

import (
	"context"

	"clustergym/agents"
	"clustergym/env"
)

var _ agents.Pupil = (*Agent)(nil)

// margin is by how much the value of a teacher's action is to exceed those of all others, in the unit of scaled
// rewards, and the loss that asks for it has weight 1: Hester et al. 2018, "Deep Q-learning from Demonstrations" (arXiv
// 1704.03732), which takes both from Piot et al. 2014.
const margin = 0.8

// Foresee implements agents.Pupil. Q-learning makes its own targets and ignores returns.
func (a *Agent) Foresee([]float32) {}

// Watch implements agents.Pupil: it adds a step to the replay, as Observe does. The teacher must be the one that acted,
// because a replay keeps the actions that were taken.
func (a *Agent) Watch(b *env.Batch, _, act *env.Actions, _ []float32, next *env.Batch) error {
	return a.Observe(b, act, next)
}

// Pace implements agents.Pupil.
func (a *Agent) Pace(lr float64) { a.pace = lr }

// Study implements agents.Pupil: every update that has become due, as Learn makes them, with the large-margin loss of
// DQfD beside the temporal-difference loss:
//
//	max over legal k of (Q(s, k) + margin·[k ≠ teacher's]) − Q(s, teacher's)
//
// It differs from DQfD: demonstrations have no part of the replay that is theirs for ever, and no loss after the
// imitation; they leave the replay as the learner's own steps fill it. Steps that were watched count for
// learning_starts. The statistics are those of Learn, as imitation/NAME.
func (a *Agent) Study(ctx context.Context, _ bool) (agents.Stats, error) {
	for _, w := range a.own {
		if w.taught != nil {
			break
		}
		l, err := newLoss(a.net, a.spec.ObsLen(), (a.cfg.Batch+a.cfg.Shards-1)/a.cfg.Shards, true)
		if err != nil {
			return nil, err
		}
		w.taught = l
	}
	a.teaching = true
	stats, err := a.Learn(ctx)
	a.teaching = false
	for i := range stats {
		stats[i].Name = "imitation/" + stats[i].Name
	}
	return stats, err
}
