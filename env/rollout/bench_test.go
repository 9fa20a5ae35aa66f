package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/rollout"
)

// BenchmarkWindow plays windows of 256 generated jobs at the default settings, as rollout:sjf+skip over the whole
// queue. Its rate is in rollouts for each second of one processor's time, which other programs on the machine hardly
// change.
func BenchmarkWindow(b *testing.B) {
	jobs := generated(b, 10_000, 77)
	for _, c := range []struct {
		estimates string
		ahead     int
		order     string
	}{{"exact", 64, "sjf"}, {"history", 64, "sjf"}, {"exact", 256, "sjf"}, {"exact", 64, "hold"},
		{"history", 64, "hold"}} {
		estimates := c.estimates
		b.Run(fmt.Sprintf("%s/%d-ahead/%s", estimates, c.ahead, c.order), func(b *testing.B) {
			cfg := rollout.DefaultConfig()
			cfg.Ahead = c.ahead
			e := environment(b, jobs, estimates, 256)
			admission := "skip"
			if c.order == "hold" {
				admission = ""
			}
			s := scheduler(b, cfg, e, base(c.order, admission, estimates), 1)
			var sum rollout.Tally
			var used time.Duration
			b.ReportAllocs()
			for k := 0; b.Loop(); k++ {
				begin := cpuTime()
				if err := e.Simulate(ctx, env.Episode{Seed: uint64(k), Window: k % 7}, s, discard{}); err != nil {
					b.Fatal(err)
				}
				used += cpuTime() - begin
				t := s.Tally()
				sum.Decisions, sum.Rollouts, sum.Deviated = sum.Decisions+t.Decisions, sum.Rollouts+t.Rollouts,
					sum.Deviated+t.Deviated
			}
			b.ReportMetric(float64(sum.Rollouts)/used.Seconds(), "rollouts/s")
			b.ReportMetric(float64(sum.Decisions)/float64(b.N), "decisions/window")
			b.ReportMetric(used.Seconds()*1e3/float64(sum.Decisions), "ms/decision")
			b.ReportMetric(100*float64(sum.Deviated)/float64(sum.Decisions), "%deviated")
		})
	}
}

// BenchmarkStopping plays windows of 256 generated jobs through the slots where gangs can be stopped.
func BenchmarkStopping(b *testing.B) {
	jobs := generated(b, 10_000, 77)
	for _, order := range []string{"srtf", "gittins", "las"} {
		b.Run(order, func(b *testing.B) {
			e := stoppable(b, jobs, "history", 256)
			s := stopper(b, rollout.DefaultConfig(), e, order, 1)
			var used time.Duration
			ts := env.NewTimeStep(e.Spec())
			b.ReportAllocs()
			for k := 0; b.Loop(); k++ {
				begin := cpuTime()
				if err := e.Reset(ctx, env.Episode{Seed: uint64(k), Window: k % 7}, ts); err != nil {
					b.Fatal(err)
				}
				for !ts.Kind.Last() {
					a, err := s.Action(ctx, ts.Mask)
					if err != nil {
						b.Fatal(err)
					}
					if err := e.Step(ctx, env.Action{Disc: []int32{a}}, ts); err != nil {
						b.Fatal(err)
					}
				}
				used += cpuTime() - begin
			}
			sum := s.Tally()
			b.ReportMetric(float64(sum.Rollouts)/used.Seconds(), "rollouts/s")
			b.ReportMetric(float64(sum.Decisions)/float64(b.N), "decisions/window")
			b.ReportMetric(used.Seconds()*1e3/float64(sum.Decisions), "ms/decision")
			b.ReportMetric(100*float64(sum.Deviated)/float64(sum.Decisions), "%deviated")
		})
	}
}
