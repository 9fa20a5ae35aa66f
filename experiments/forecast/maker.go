// Package forecast makes predictors of run times by name, and measures how well they predict.
package forecast

import (
	"os"
	"runtime"

	"clustergym/env/predict"
	"clustergym/env/predict/gbdt"
	"clustergym/env/predict/history"
	"clustergym/env/sim"
	"clustergym/experiments/workload"
	"clustergym/traces"
)

// ArchiveBytes is what an archive holds for a job, at most: its keys, and twice that while it is made.
const ArchiveBytes = 5 * (16 + 24) * 2

// Maker returns what makes the predictors behind est, nil if est asks none. archive are the jobs of the trace in order of
// submit, if runs begin in its middle; else nil.
func Maker(est sim.Estimates, archive []traces.Job) (predict.Maker, error) {
	switch est.Mode {
	case sim.EstimateHistory:
		return history.NewArchive(archive), nil
	case sim.EstimateGBDT:
		if est.File != "" {
			return read(est.File, archive)
		}
		if archive == nil {
			return gbdt.New(runtime.GOMAXPROCS(0)), nil
		}
		return gbdt.NewArchive(archive, runtime.GOMAXPROCS(0)), nil
	}
	return nil, nil
}

// read reads a model of gymctl predict fit.
func read(file string, archive []traces.Job) (predict.Maker, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, workload.Mistake("model %s: %w", file, workload.Reason(err))
	}
	m, err := gbdt.Read(b, archive, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, workload.Mistake("model %s: %w", file, err)
	}
	return m, nil
}
