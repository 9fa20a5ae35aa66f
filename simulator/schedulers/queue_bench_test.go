package schedulers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// BenchmarkLongQueues plays workloads in which n jobs wait from the beginning, for the policies whose decisions depend
// on many jobs: the time of a decision, µs/point, must grow by much less than the queue.
func BenchmarkLongQueues(b *testing.B) {
	for _, c := range []struct {
		policy, estimates string
		known             bool // the distribution of GPU-times; one that is learned ranks all jobs anew with each that ends
	}{
		{"fifo+strict+conservative", "exact", false}, {"fifo+strict+conservative", "noisy:0.5", false},
		{"sjf+strict+conservative", "exact", false}, {"f1+strict+conservative", "noisy:0.5", false},
		{"largest+strict+conservative", "exact", false}, {"gittins-2d+skip", "exact", true},
		{"gittins-2d+skip", "exact", false},
	} {
		for _, n := range []int{1000, 10_000, 64_000} {
			b.Run(fmt.Sprintf("%s/%s/known=%t/%d", c.policy, c.estimates, c.known, n), func(b *testing.B) {
				jobs := generated(n)
				for i := range jobs {
					jobs[i].Submit = 0
					if i%16 > 0 { // as in clusters for training
						jobs[i].GPUs = 1
					}
				}
				spec, _, err := cluster.Parse("48x8")
				if err != nil {
					b.Fatal(err)
				}
				cfg := schedulers.DefaultConfig()
				called(c.policy)(&cfg)
				cfg.Estimates = sim.MustEstimates(c.estimates)
				if c.known {
					for i := range jobs {
						cfg.Service = append(cfg.Service, jobs[i].Work*time.Duration(jobs[i].GPUs))
					}
				}
				s, err := sim.New(sim.DefaultConfig(), spec)
				if err != nil {
					b.Fatal(err)
				}
				h, err := schedulers.New(cfg)
				if err != nil {
					b.Fatal(err)
				}
				points := 0
				for b.Loop() {
					if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
						b.Fatal(err)
					}
					if err := sim.Run(context.Background(), s, h, (*pointCount)(&points)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(points), "µs/point")
				b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "jobs/s")
			})
		}
	}
}

// pointCount counts the points of a run.
type pointCount int

func (c *pointCount) Observe(*sim.View, *sim.Point) error { *c++; return nil }
