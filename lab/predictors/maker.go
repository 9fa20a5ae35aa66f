// Package predictors makes predictors of run times by name, and measures how well they predict.
package predictors

import (
	"context"
	"runtime"

	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// ArchiveBytes is what an archive holds for a job, at most: its keys, and twice that while it is made.
const ArchiveBytes = 5 * (16 + 24) * 2

// Maker returns what makes the predictors behind est, nil if est asks none. archive are the jobs of the trace in order
// of submit, if runs begin in its middle; else nil.
func Maker(est sim.Estimates, archive []traces.Job) (predict.Maker, error) {
	switch est.Mode {
	case sim.EstimateHistory:
		return history.NewArchive(archive), nil
	case sim.EstimateGBDT:
		if est.File != "" {
			m, err := ReadModel(context.Background(), nil, est.File, est.File)
			if err != nil {
				return nil, err
			}
			return m.Maker(archive), nil
		}
		if archive == nil {
			return gbdt.New(runtime.GOMAXPROCS(0)), nil
		}
		return gbdt.NewArchive(archive, runtime.GOMAXPROCS(0)), nil
	}
	return nil, nil
}
