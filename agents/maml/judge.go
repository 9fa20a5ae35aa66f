package maml

import (
	"context"
	"errors"
	"fmt"

	"clustergym/agents"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/replay"
)

// Outcome is what policies return on one task after a number of inner steps: mean returns of episodes that are not
// learnt from.
type Outcome struct {
	Sampled float64 // by the policy as it learns
	Greedy  float64 // by its most likely actions
	Length  float64 // steps of a sampled episode
}

// Judge adapts from theta to n tasks drawn from seed and measures the policies after each of the given numbers of
// inner steps, which must ascend: results are [len(steps)][n]. Every inner step learns from Config.Before new
// episodes; the measured episodes are others. Nothing is learnt across tasks. done, which may be nil, is called as
// tasks are finished.
func (l *Learner) Judge(ctx context.Context, theta []float32, seed uint64, n int, steps []int, episodes int,
	done func()) ([][]Outcome, error) {
	for k, s := range steps {
		if s < 0 || k > 0 && s <= steps[k-1] {
			return nil, fmt.Errorf("maml: inner steps %v, want numbers that ascend from 0 or more", steps)
		}
	}
	if len(theta) != len(l.theta.Data) {
		return nil, fmt.Errorf("maml: %d parameters, want %d", len(theta), len(l.theta.Data))
	}
	tasks, err := l.world.Sample(rng.Stream(seed, "maml/judge"), n)
	if err != nil {
		return nil, err
	}
	out := make([][]Outcome, len(steps))
	for k := range out {
		out[k] = make([]Outcome, n)
	}
	err = par.For(ctx, l.workers, n, func(worker, i int) error {
		if err := l.judge(ctx, l.workerStates[worker], tasks[i], theta, steps, episodes,
			func(k int, o Outcome) { out[k][i] = o }); err != nil {
			return fmt.Errorf("task %d: %w", i, err)
		}
		if done != nil {
			done()
		}
		return nil
	})
	return out, err
}

// Adapt returns theta after the given number of inner steps on a task, each from Config.Before new episodes. Nothing
// is learnt across tasks. The episodes of the same task, phase and theta are the same.
func (l *Learner) Adapt(ctx context.Context, theta []float32, t Task, phase, steps int) ([]float32, error) {
	h := l.workerStates[0]
	x := append([]float32(nil), theta...)
	e, err := replay.NewEpisodes(h.spec, l.cfg.Gamma)
	if err != nil {
		return nil, err
	}
	for k := range steps {
		if err := h.experience(ctx, e, t, phaseAdapt+phase<<8+k, l.cfg.Before, x, l.cfg.Lambda); err != nil {
			return nil, err
		}
		if err := h.surrogate(e, 0, 0)(h.g, x); err != nil {
			return nil, err
		}
		Step(x, x, h.g, l.cfg.InnerLR)
	}
	return x, nil
}

func (l *Learner) judge(ctx context.Context, h *workerState, t Task, theta []float32, steps []int, episodes int,
	tell func(k int, o Outcome)) error {
	x := append([]float32(nil), theta...)
	e, err := replay.NewEpisodes(h.spec, l.cfg.Gamma)
	if err != nil {
		return err
	}
	taken := 0
	for k, s := range steps {
		for ; taken < s; taken++ {
			if err := h.experience(ctx, e, t, taken, l.cfg.Before, x, l.cfg.Lambda); err != nil {
				return err
			}
			if err := h.surrogate(e, 0, 0)(h.g, x); err != nil {
				return err
			}
			Step(x, x, h.g, l.cfg.InnerLR)
		}
		var o Outcome
		h.set(x)
		for _, p := range []struct {
			policy agents.Policy
			to     *float64
		}{{h.model, &o.Sampled}, {h.model.Greedy(), &o.Greedy}} {
			if err := h.play(ctx, e, t, phaseJudge, episodes, p.policy); err != nil {
				return err
			}
			if e.Episodes() == 0 {
				return errors.New("no episode was played")
			}
			*p.to = e.MeanReturn()
			if p.to == &o.Sampled {
				o.Length = float64(e.Len()) / float64(e.Episodes())
			}
		}
		tell(k, o)
	}
	return nil
}
