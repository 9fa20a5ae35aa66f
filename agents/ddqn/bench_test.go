package ddqn

import (
	"context"
	"testing"

	"clustergym/agents/agenttest"
	"clustergym/agents/train"
	"clustergym/env/vec"
)

// zoo is RL Zoo's setting for CartPole: the preset cartpole-ddqn.
func zoo() Config {
	c := DefaultConfig()
	c.Duelling, c.Prioritized, c.NStep = false, false, 1
	c.Buffer, c.LR, c.Batch, c.Shards = 100_000, 2.3e-3, 64, 1
	c.LearningStarts, c.TrainEvery, c.GradientSteps, c.TargetEvery = 1000, 256, 128, 10
	c.EpsEnd, c.EpsShare = 0.04, 0.16
	c.Network.Hidden = []int{256, 256}
	return c
}

// BenchmarkCartPole runs whole trainings on one thread, environments included, at settings for which others publish
// rates. On a shared machine the best run counts.
func BenchmarkCartPole(b *testing.B) {
	single := zoo()
	single.Double = false
	cleanrl := DefaultConfig()
	cleanrl.Double, cleanrl.Duelling, cleanrl.Prioritized, cleanrl.NStep = false, false, false, 1
	cleanrl.Buffer, cleanrl.Shards, cleanrl.Huber = 10_000, 1, 0
	for _, c := range []struct {
		name  string
		cfg   Config
		steps int64
	}{{"zoo", zoo(), 10_000}, {"zoo, not double", single, 10_000}, {"cleanrl", cleanrl, 20_000}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			best := 0.0
			for b.Loop() {
				v := agenttest.Envs(b, "CartPole-v1", 1, vec.SameStep, 1)
				a, err := New(c.cfg, v.Spec(), 1, 1, 1)
				if err != nil {
					b.Fatal(err)
				}
				tc := train.DefaultConfig()
				tc.Steps, tc.Envs = c.steps, 1
				t, err := train.New(tc, v, a, 1)
				if err != nil {
					b.Fatal(err)
				}
				at := b.Elapsed()
				if err := t.Run(context.Background(), train.Hooks{}); err != nil {
					b.Fatal(err)
				}
				best = max(best, float64(c.steps)/(b.Elapsed()-at).Seconds())
			}
			b.ReportMetric(best, "best-steps/s")
		})
	}
}

// BenchmarkGradientStep is one gradient step at the zoo's setting: drawing a batch, targets, loss, gradient, clipping
// and Adam.
func BenchmarkGradientStep(b *testing.B) {
	l := newLoop(b, "CartPole-v1", 1, 1, vec.SameStep, zoo(), 1, 100_000)
	for l.Steps < 1000 {
		l.Step()
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Agent.update(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
