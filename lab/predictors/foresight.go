package predictors

import (
	"sync"

	"clustergym/env/sched"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Foresight are windows with predictors of run times, which know what had ended before an episode. What makes them is
// made when it is first asked for, and shared by all environments. Safe for concurrent use.
type Foresight struct {
	*traces.Windows
	Model *Model // of gbdt:FILE, by the name that the settings give it; nil = none
	// Load returns the GPU time that the workload asks for, of that of the cluster in the time over which it arrives.
	Load func() float64

	mu   sync.Mutex
	made map[sim.Estimates]func() (predict.Maker, error)
}

var (
	_ sched.Foresight = (*Foresight)(nil)
	_ sched.Offering  = (*Foresight)(nil)
)

// Fresh makes predictors for runs before which nothing has ended.
type Fresh struct {
	Model *Model // as in Foresight
}

// Predictor implements sched.Foresight.
func (f Fresh) Predictor(est sim.Estimates) (predict.Maker, error) {
	if f.Model != nil && est.File == f.Model.File {
		return f.Model.Maker(nil), nil
	}
	return Maker(est, nil)
}

// Offered implements sched.Offering.
func (f *Foresight) Offered() float64 { return f.Load() }

// Predictor implements sched.Foresight.
func (f *Foresight) Predictor(est sim.Estimates) (predict.Maker, error) {
	est.Seed = 0
	f.mu.Lock()
	if f.made == nil {
		f.made = map[sim.Estimates]func() (predict.Maker, error){}
	}
	if f.made[est] == nil {
		f.made[est] = sync.OnceValues(func() (predict.Maker, error) {
			if f.Model != nil && est.File == f.Model.File {
				return f.Model.Maker(f.All()), nil
			}
			return Maker(est, f.All())
		})
	}
	of := f.made[est]
	f.mu.Unlock()
	return of()
}
