// Package forecast makes predictors of run times by name, and measures how well they predict.
package forecast

import (
	"errors"

	"clustergym/env/predict"
	"clustergym/env/predict/history"
	"clustergym/env/sim"
	"clustergym/traces"
)

// Maker returns what makes the predictors behind est, nil if est asks none. archive are the jobs of the trace in order of
// submit, if runs begin in its middle; else nil.
func Maker(est sim.Estimates, archive []traces.Job) (predict.Maker, error) {
	switch est.Mode {
	case sim.EstimateHistory:
		return history.NewArchive(archive), nil
	case sim.EstimateGBDT:
		return nil, errors.New("gbdt: not yet")
	}
	return nil, nil
}
