package arena

import (
	"context"

	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/heuristic"
	"clustergym/env/hindsight"
	"clustergym/env/sched"
	"clustergym/env/sim"
	"clustergym/experiments/config"
)

// hindsight returns a contestant that searches each window for a good schedule with all its jobs known, and plays it.
func (w *World) hindsight(cfg *config.Config, p config.Rival) contestant {
	search := hindsight.Config{Tries: cfg.Eval.Hindsight}
	if search.Tries == 0 {
		search.Tries = config.DefaultHindsight
	}
	if w.About.Metric.Key == "bounded_slowdown" {
		search.Objective = hindsight.BoundedSlowdown
	}
	return contestant{name: p.Name, kind: "hindsight", knows: true, player: func(e sched.Arena) (player, error) {
		base, err := heuristic.New(p.Sched)
		if err != nil {
			return nil, err
		}
		place, err := cluster.NewPlacement(p.Sched.Placement)
		if err != nil {
			return nil, err
		}
		s := hindsight.New(search, place)
		return func(ctx context.Context, ep env.Episode, _ uint64, c audience) ([]float64, error) {
			base.Reseed(ep.Seed)
			_, err := s.Play(ctx, ep.Seed, base, func(ctx context.Context, sch sim.Scheduler, o sim.Observer) error {
				return e.Simulate(ctx, ep, sch, o)
			}, c)
			return nil, err
		}, nil
	}}
}
