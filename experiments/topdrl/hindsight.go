package topdrl

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"clustergym/env/sched"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
	"clustergym/lab/arena"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// sigmas are the deviations of the noise on the logarithm of run times, in turn.
var sigmas = []float64{.1, .2, .4, .7, 1, 1.5}

// noisy returns schedule k of the schedules in hindsight: by run time, by run time × GPUs, or by the tuned rule, in
// turn, the first three without noise. order says that it is an order alone, which starts whatever fits.
func (st *stage) noisy(k int, rule *schedulers.Config) (c schedulers.Config, order bool) {
	c = schedulers.DefaultConfig()
	c.Admission, c.Placement, c.Estimates = "skip", "closest-b", sim.Estimates{Mode: sim.EstimateExact}
	orders := []string{"sjf", "area"}
	if st.Preempt {
		orders = []string{"srtf", "srsf"}
	}
	if order = k%3 < 2; order {
		c.Order = orders[k%3]
	} else {
		c = *rule
	}
	if k > 2 {
		c.Estimates = sim.Estimates{Mode: sim.EstimateNoisy, Sigma: sigmas[(k/3-1)%len(sigmas)]}
	}
	return c, order
}

// bestOf are the schedules of a window that are best by throughput and by JCT.
type bestOf struct{ fast, short figures }

func (b *bestOf) add(f figures, first bool) {
	if first || f.throughput > b.fast.throughput {
		b.fast = f
	}
	if first || f.jct < b.short.jct {
		b.short = f
	}
}

func (b *bestOf) rows(labels map[string]string) []study.Row {
	f := b.short.with(b.fast)
	return f.rows(labels)
}

// playHindsight plays many schedules on each test window and reports the best ones, by throughput and by JCT: what
// there is to gain, which nobody could know before. rule is the tuned rule.
func (s *settings) playHindsight(ctx context.Context, b *study.Bench, w *arena.Scenario, st *stage,
	rule *schedulers.Config) ([]study.Row, error) {
	cfg, err := s.config(st, nil, 1)
	if err != nil {
		return nil, err
	}
	in := inScenario(w, &cfg)
	n := min(s.Windows, w.Count(traces.Test))
	var done atomic.Int64 // windows
	rows, err := arena.EachWindow(ctx, in, traces.Test, n, b.Workers,
		func(on sched.Arena) (func(i int) ([]study.Row, error), error) {
			e := on.(*sched.Env)
			return func(i int) ([]study.Row, error) {
				ep := testEpisode(i)
				var all, orders bestOf
				for k := range s.Hindsight.Noisy {
					c, order := st.noisy(k, rule)
					p, err := schedulers.New(c)
					if err != nil {
						return nil, err
					}
					p.Reseed(rng.At(ep.Seed, uint64(k)))
					var m measure
					m.begin(e)
					if err := e.Simulate(ctx, ep, p, &m); err != nil {
						return nil, fmt.Errorf("schedule %d: %w", k, err)
					}
					f, err := m.figures()
					if err != nil {
						return nil, err
					}
					all.add(f, k == 0)
					if order {
						orders.add(f, k == 0)
					}
				}
				labels := func(policy string) map[string]string {
					return map[string]string{"stage": st.Name, "policy": policy, "window": fmt.Sprint(i)}
				}
				b.Progress(done.Add(1), int64(n))
				return append(all.rows(labels(best)), orders.rows(labels(bestOrder))...), nil
			}, nil
		})
	return slices.Concat(rows...), err
}
