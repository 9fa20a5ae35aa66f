package rollout_test

import (
	"context"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/rollout"
)

// BenchmarkWindow plays a window of 256 generated jobs at the default settings, on one core.
func BenchmarkWindow(b *testing.B) {
	jobs := generated(b, 10_000, 77)
	for _, estimates := range []string{"exact", "history"} {
		b.Run(estimates, func(b *testing.B) {
			e := environment(b, jobs, estimates, 256)
			s := scheduler(b, rollout.DefaultConfig(), e, base("sjf", "skip", estimates), 1)
			var done rollout.Tally
			b.ReportAllocs()
			b.ResetTimer()
			begin := time.Now()
			for k := range b.N {
				if err := e.Simulate(context.Background(), env.Episode{Seed: uint64(k), Window: k % 7}, s, &log{from: 1 << 30}); err != nil {
					b.Fatal(err)
				}
				t := s.Tally()
				done.Decisions, done.Rollouts, done.Deviated = done.Decisions+t.Decisions, done.Rollouts+t.Rollouts, done.Deviated+t.Deviated
			}
			b.ReportMetric(float64(done.Rollouts)/time.Since(begin).Seconds(), "rollouts/s")
			b.ReportMetric(float64(done.Decisions)/float64(b.N), "decisions/window")
			b.ReportMetric(100*float64(done.Deviated)/float64(done.Decisions), "%deviated")
		})
	}
}
