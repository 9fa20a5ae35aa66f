package jobselect_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/vec"
	"clustergym/traces"
)

// BenchmarkTogether is random legal play of environments that are stepped together, resets included.
func BenchmarkTogether(b *testing.B) {
	jobs := philly(b, 45_000)
	for _, relative := range []string{"", "sjf"} {
		cfg := jobselect.DefaultConfig()
		cfg.Reward, cfg.Relative = "wait", relative
		w, err := jobselect.NewWorkload(cfg, topdrl(), jobs)
		if err != nil {
			b.Fatal(err)
		}
		for _, rows := range []int{1, 8, 64, 256} {
			for workers := 1; workers <= min(2, rows); workers++ {
				b.Run(fmt.Sprintf("relative=%s/rows=%d/workers=%d", relative, rows, workers), func(b *testing.B) {
					envs := make([]env.Env, rows)
					for i := range envs {
						if envs[i], err = jobselect.New(cfg, topdrl(), w.Windows, traces.Training); err != nil {
							b.Fatal(err)
						}
					}
					v, err := vec.New(vec.Config{Workers: workers, Autoreset: vec.SameStep}, envs...)
					if err != nil {
						b.Fatal(err)
					}
					defer v.Close()
					r := rand.New(rand.NewPCG(1, 1))
					batch, a, m := env.NewBatch(v.Spec(), rows), env.NewActions(v.Spec(), rows), v.Spec().MaskLen()
					if err := v.Reset(ctx, nil, nil, batch); err != nil {
						b.Fatal(err)
					}
					one := func() {
						for i := range rows {
							a.Disc[i] = int32(anyLegal(r, batch.Mask[i*m:(i+1)*m]))
						}
						if err := v.Step(ctx, nil, a, batch); err != nil {
							b.Fatal(err)
						}
					}
					for range 600 {
						one()
					}
					b.ReportAllocs()
					n := 0
					for b.Loop() {
						one()
						n += rows
					}
					b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "steps/s")
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/step")
				})
			}
		}
	}
}
