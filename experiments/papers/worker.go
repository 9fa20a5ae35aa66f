package papers

import (
	"context"
	"errors"

	"clustergym/distributed/workqueue"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/lab/arena"
	"clustergym/lab/run"
	"clustergym/lab/workload"
)

// Handlers returns what a worker can do, by the kind of the task: cells of studies, trainings, and games of
// evaluations. data is the folder of recorded workloads on this machine, "" = none.
func Handlers(data string) map[string]workqueue.Handler {
	return map[string]workqueue.Handler{
		study.CellKind:  unquoted(study.Handler(find, data)),
		run.TrainKind:   run.TrainHandler(),
		arena.GamesKind: arena.GamesHandler(),
	}
}

// unquoted returns h with errors that do not quote the recorded workloads of this machine: they go to the coordinator.
func unquoted(h workqueue.Handler) workqueue.Handler {
	return func(ctx context.Context, j *workqueue.Job) (workqueue.Outcome, error) {
		out, err := h(ctx, j)
		if _, quoting := errors.AsType[*workload.QuotingError](err); quoting {
			err = &fault.Mistake{Err: workload.Unquoted(err, "a recorded workload")}
		}
		return out, err
	}
}
