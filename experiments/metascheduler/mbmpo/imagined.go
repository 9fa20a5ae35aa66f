package mbmpo

import (
	"fmt"
	"math/rand/v2"

	"clustergym/agents/maml"
	"clustergym/env"
	"clustergym/env/workerplace"
	"clustergym/experiments/metascheduler/perfmodel"
)

// imagined is the maml.Distribution of the models: a task is a model with a workload that was seen.
type imagined struct {
	open   func() (*workerplace.Env, error)
	models *perfmodel.Ensemble
	seen   []workload
}

// workload identifies jobs that were played once.
type workload struct {
	seed   uint64
	values []float64
}

// believer is an environment in which jobs run at the speeds that one model, or all of them, predict.
type believer struct {
	*workerplace.Env
	views []*perfmodel.View // of each model, then of all
}

// Open implements maml.Distribution.
func (w *imagined) Open() (env.Env, error) {
	e, err := w.open()
	if err != nil {
		return nil, err
	}
	b := &believer{Env: e}
	for k := range w.models.Members() {
		b.views = append(b.views, w.models.View(k))
	}
	b.views = append(b.views, w.models.View())
	return b, nil
}

// Enter implements maml.Distribution: the task's variant is the index of a model; the index after the last means all of
// them.
func (w *imagined) Enter(e env.Env, t maml.Task) error {
	b, ok := e.(*believer)
	if !ok || t.Variant < 0 || t.Variant >= len(b.views) {
		return fmt.Errorf("mbmpo: model %d of %d", t.Variant, w.models.Members())
	}
	b.SetSpeeds(b.views[t.Variant])
	return nil
}

// Sample implements maml.Distribution: models in turn, beginning with a random one, each with one of the workloads.
func (w *imagined) Sample(src *rand.Rand, n int) ([]maml.Task, error) {
	if len(w.seen) == 0 {
		return nil, fmt.Errorf("mbmpo: no workload was seen")
	}
	k := w.models.Members()
	first := src.IntN(k)
	tasks := make([]maml.Task, n)
	for i := range tasks {
		tasks[i] = w.task((first+i)%k, w.seen[src.IntN(len(w.seen))])
	}
	return tasks, nil
}

// task returns a model with a workload as a task. Its episodes begin alike, so they differ only by the actions.
func (w *imagined) task(variant int, l workload) maml.Task {
	return maml.Task{Values: l.values, Variant: variant, Seed: l.seed, Same: true}
}

// free is the maml.Distribution of the real jobs: every task is a workload that is played once.
type free struct{ real *Real }

// Open implements maml.Distribution.
func (w *free) Open() (env.Env, error) { return w.real.Open() }

// Enter implements maml.Distribution.
func (w *free) Enter(env.Env, maml.Task) error { return nil }

// Sample implements maml.Distribution.
func (w *free) Sample(src *rand.Rand, n int) ([]maml.Task, error) {
	tasks := make([]maml.Task, n)
	for i := range tasks {
		tasks[i] = maml.Task{Values: w.real.Values, Seed: src.Uint64()}
	}
	return tasks, nil
}
