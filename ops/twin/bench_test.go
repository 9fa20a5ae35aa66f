package twin

import (
	"context"
	"fmt"
	"testing"
	"time"

	"clustergym/live/livetest"
	"clustergym/ops/steer/mirror"
	"clustergym/simulator/sim"
)

// BenchmarkForecast plays draws of a queue of 10,000 jobs on 512 GPUs.
func BenchmarkForecast(b *testing.B) {
	const n = 10_000
	c := livetest.New(livetest.Machines(64, 8)...)
	for _, j := range drawn(b, 1, "j", n, 0) {
		c.Submit(j)
	}
	c.Advance(time.Second)
	est, _ := sim.ParseEstimates("history")
	e := &Eye{Estimates: est, History: drawn(b, 1, "h", 2000, 10*time.Minute),
		Mirror: mirror.Config{Limit: day, Epoch: livetest.Epoch.Add(-1000 * time.Hour)}}
	st := look(b, e, c)
	for _, draws := range []int{2, 20} {
		b.Run(fmt.Sprint("draws-", draws), func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.Draws, cfg.Workers, cfg.Predictor, cfg.Horizon = draws, 1, est, 366*day
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Forecast(context.Background(), &cfg, st, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
