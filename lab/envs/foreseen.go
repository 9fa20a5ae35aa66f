package envs

import (
	"sync"

	"clustergym/env/sched"
	"clustergym/lab/predictors"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// foreseen are windows with predictors of run times, which know what had ended before an episode. What makes them is made
// when it is first asked for, and shared by all environments.
type foreseen struct {
	*traces.Windows
	model *predictors.Model // of gbdt:FILE, by the name that the settings give it; nil = none
	mu    sync.Mutex
	made  map[sim.Estimates]*made
}

type made struct {
	once  sync.Once
	maker predict.Maker
	err   error
}

var _ sched.Foresight = (*foreseen)(nil)

// Predictor implements sched.Foresight.
func (f *foreseen) Predictor(est sim.Estimates) (predict.Maker, error) {
	est.Seed = 0
	f.mu.Lock()
	if f.made == nil {
		f.made = map[sim.Estimates]*made{}
	}
	m := f.made[est]
	if m == nil {
		m = new(made)
		f.made[est] = m
	}
	f.mu.Unlock()
	m.once.Do(func() {
		if f.model != nil && est.File == f.model.File {
			m.maker = f.model.Maker(f.All())
			return
		}
		m.maker, m.err = predictors.Maker(est, f.All())
	})
	return m.maker, m.err
}
