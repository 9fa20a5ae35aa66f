package rltune_test

import (
	"context"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/queuerank"
	"clustergym/env/queuerank/rltune"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

var ctx = context.Background()

// windows are the jobs of every episode.
type windows []traces.Job

func (w windows) At(traces.Part, uint64, int) (traces.Window, error) {
	return traces.Window{Jobs: w, Counted: len(w)}, nil
}

func job(submit, work time.Duration, gpus int) traces.Job {
	return traces.Job{ID: "j", Submit: submit, Work: work, Estimate: work, GPUs: gpus, GPUMilli: 1000}
}

func open(t *testing.T, cfg rltune.Config, spec cluster.Spec, jobs ...traces.Job) (*queuerank.Env, *env.TimeStep) {
	t.Helper()
	e, err := rltune.New(rltune.ID, cfg, spec, windows(jobs), traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
		t.Fatal(err)
	}
	return e, ts
}
