package arena

import (
	"context"
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
func (w *Scenario) looking(r config.Rival) func(env.Env) (player, error) {
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
func (w *Scenario) futures() (*rollout.Recorded, error) {
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
func (w *Scenario) load() float64 {
	load, _ := envs.Setting(w.judged(), "load")
	x, _ := load.(float64)
	return x
}
