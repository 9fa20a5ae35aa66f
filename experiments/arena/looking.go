package arena

import (
	"context"
	"slices"
	"sync"

	"clustergym/env"
	"clustergym/env/predict"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/experiments/config"
	"clustergym/experiments/envs"
	"clustergym/internal/fault"
	"clustergym/traces"
)

// looking returns a contestant that plays a heuristic which looks ahead, in futures of w's training part.
func (w *World) looking(p config.Rival) contestant {
	futures := sync.OnceValues(w.futures)
	return contestant{name: p.Name, kind: "heuristic", player: func(e sched.Arena) (player, error) {
		src, err := futures()
		if err != nil {
			return nil, err
		}
		s, err := rollout.New(rollout.Setup{Config: *p.Rollout, Source: src, Workers: 1, Clock: config.Clock()}, p.Sched)
		if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		return func(ctx context.Context, ep env.Episode, _ uint64, c audience) ([]float64, error) {
			s.Reseed(ep.Seed)
			s.Cancel(ctx)
			return nil, e.Simulate(ctx, ep, s, c)
		}, nil
	}}
}

// futures returns stretches of the training part, at the load of the environment's windows.
func (w *World) futures() (*rollout.Recorded, error) {
	cut := w.About.Cut(w.judged())
	var maker predict.Maker
	var err error
	if cut.Estimates.Causal() {
		if maker, err = sched.Predictor(w.Source.Windows, cut.Estimates, cut.Forecast); err != nil {
			return nil, err
		}
	}
	return rollout.NewRecorded(w.Source.Windows.Jobs(traces.Training), cut.Window, w.load(), maker), nil
}

// load returns the setting load of the environment, 0 where it has none.
func (w *World) load() float64 {
	a := w.About.Args()
	a.Settings = w.judged()
	all := a.Kwargs()
	i := slices.IndexFunc(all, func(k envs.Kwarg) bool { return k.Name == "load" })
	if i < 0 {
		return 0
	}
	load, _ := all[i].Default.(float64)
	return load
}
