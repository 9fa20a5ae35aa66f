package ppo

import (
	"context"
	"testing"

	"clustergym/agents/agenttest"
	"clustergym/agents/train"
	"clustergym/env/vec"
)

// BenchmarkCartPole runs whole trainings on one thread, environments included, at settings for which others publish
// rates. On a shared machine the best run counts.
func BenchmarkCartPole(b *testing.B) {
	zoo := DefaultConfig()
	zoo.Steps, zoo.Epochs, zoo.Minibatches, zoo.LR = 32, 20, 1, 1e-3
	zoo.Gamma, zoo.Lambda, zoo.EntCoef, zoo.AnnealClip = 0.98, 0.8, 0, true
	sb3 := DefaultConfig()
	sb3.Steps, sb3.Epochs, sb3.Minibatches, sb3.LR = 2048, 10, 32, 3e-4
	sb3.EntCoef, sb3.AnnealLR = 0, false
	for _, c := range []struct {
		name  string
		cfg   Config
		rows  int
		steps int64
	}{
		{"cleanrl", DefaultConfig(), 4, 20_480},
		{"zoo", zoo, 8, 20_480},
		{"sb3", sb3, 1, 20_480},
	} {
		c.cfg.Shards = 1
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			best := 0.0
			for b.Loop() {
				v := agenttest.Envs(b, "CartPole-v1", c.rows, vec.SameStep, 1)
				a, err := New(c.cfg, v.Spec(), c.rows, 1, 1)
				if err != nil {
					b.Fatal(err)
				}
				tc := train.DefaultConfig()
				tc.Steps, tc.Envs = c.steps, c.rows
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
