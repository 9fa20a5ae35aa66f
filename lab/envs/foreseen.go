package envs

import (
	"sync"

	"clustergym/env/sched"
	"clustergym/lab/predictors"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// foreseen are windows with predictors of run times, which know what had ended before an episode. What makes them is
// made when it is first asked for, and shared by all environments.
type foreseen struct {
	*traces.Windows
	model *predictors.Model // of gbdt:FILE, by the name that the settings give it; nil = none
	mu    sync.Mutex
	made  map[sim.Estimates]func() (predict.Maker, error)
}

var _ sched.Foresight = (*foreseen)(nil)

// Predictor implements sched.Foresight.
func (f *foreseen) Predictor(est sim.Estimates) (predict.Maker, error) {
	est.Seed = 0
	f.mu.Lock()
	if f.made == nil {
		f.made = map[sim.Estimates]func() (predict.Maker, error){}
	}
	if f.made[est] == nil {
		f.made[est] = sync.OnceValues(func() (predict.Maker, error) {
			if f.model != nil && est.File == f.model.File {
				return f.model.Maker(f.All()), nil
			}
			return predictors.Maker(est, f.All())
		})
	}
	of := f.made[est]
	f.mu.Unlock()
	return of()
}
