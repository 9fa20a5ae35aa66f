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
	var futures struct {
		sync.Mutex
		of map[sched.Mode]*rollout.Recorded
	}
	return func(e env.Env) (player, error) {
		futures.Lock()
		defer futures.Unlock()
		mode := operating(e).Mode
		src := futures.of[mode]
		if src == nil {
			var err error
			if src, err = w.futures(e); err != nil {
				return nil, err
			}
			futures.of = map[sched.Mode]*rollout.Recorded{mode: src}
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

// operates is an environment that says how its episodes begin and end.
type operates interface {
	Config() sched.Config
	Parts() sched.Parts
}

// operating returns the settings of e, those of windows if it does not say.
func operating(e env.Env) sched.Config {
	if o, ok := e.(operates); ok {
		return o.Config()
	}
	return sched.Config{}
}

// futures returns stretches of the training part: at the load of the workload where e is a cluster in operation, else
// each at the load of the environment's windows.
func (w *Scenario) futures(e env.Env) (*rollout.Recorded, error) {
	if c := operating(e); c.Mode != sched.Drained {
		return rollout.RecordedIn(e.(operates).Parts().Windows, c)
	}
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
