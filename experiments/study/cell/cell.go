// Package cell trains agents in the cells of studies, and has the files that cells leave for each other.
package cell

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"clustergym/agents/train"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/run"
	"clustergym/lab/rundir"
	"clustergym/lab/tune"
	"clustergym/traces"
	"clustergym/traces/csv"
)

// Train trains cfg in the folder run of a study's cell, in scenario, or in one of its own if scenario is nil. A
// training that was interrupted there continues. Of one that has ended, only the last checkpoint keeps its replay.
func Train(ctx context.Context, b *study.Bench, cfg config.Config, scenario *arena.Scenario) (*run.TrainResult, error) {
	dir := filepath.Join(b.Work(), "run")
	_, err := os.Stat(filepath.Join(dir, rundir.ConfigFile))
	r, err := run.Train(ctx, cfg, run.TrainOptions{
		RunDir: dir, Resume: err == nil, Workers: b.Workers, Scenario: scenario, NoEval: true, Tags: "sb3",
		Tick:  func(p train.Progress) { b.Progress(p.Step, cfg.Train.Steps) },
		Saved: b.Saved,
	})
	if errors.Is(err, fault.ErrInterrupted) && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return r, run.Thin(filepath.Join(dir, "checkpoints"))
}

// Weights returns the weights that a search in a folder has found for cfg.
func Weights(dir string, cfg *config.Config) (tune.Weights, error) {
	w := tune.Weights{Policy: tune.Fits(cfg)}
	return tune.Read(w.Policy, filepath.Join(dir, w.File()))
}

// WriteJobs writes jobs to a CSV file.
func WriteJobs(path string, jobs []traces.Job) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	var s traces.Slice
	s.ResetAt(jobs, 0)
	_, err = csv.Write(f, &s)
	return errors.Join(err, f.Close())
}
