package papers

import (
	"clustergym/experiments/arena"
	"clustergym/experiments/run"
	"clustergym/experiments/study"
	"clustergym/experiments/workqueue"
)

// Handlers returns what a worker can do, by the kind of the task: cells of studies, trainings, and games of evaluations. data is
// the folder of recorded workloads on this machine, "" = the path that the coordinator names.
func Handlers(data string) map[string]workqueue.Handler {
	return map[string]workqueue.Handler{
		study.CellKind:  study.Handler(find, data),
		run.TrainKind:   run.TrainHandler(),
		arena.GamesKind: arena.GamesHandler(),
	}
}
