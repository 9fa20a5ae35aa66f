package arena

import (
	"context"
	"slices"
	"sync"

	"clustergym/env"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/simulator/predict"
	"clustergym/traces"
)

// looking makes players of a heuristic that looks ahead, in futures of w's training part.
func (w *World) looking(r config.Rival) func(env.Env) (player, error) {
	futures := sync.OnceValues(w.futures)
	return func(e env.Env) (player, error) {
		src, err := futures()
		if err != nil {
			return nil, err
		}
		s, err := rollout.New(rollout.Setup{Config: *r.Rollout, Source: src, Workers: 1, Clock: config.Clock()}, r.Sched)
		if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		return func(ctx context.Context, ep env.Episode, _ uint64, seen audience) (outcome, error) {
			s.Reseed(ep.Seed)
			s.Cancel(ctx)
			return unacted, e.(sched.Arena).Simulate(ctx, ep, s, seen)
		}, nil
	}
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
