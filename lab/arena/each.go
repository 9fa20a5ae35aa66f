package arena

import (
	"context"
	"fmt"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/par"
	"clustergym/traces"
)

// EachWindow plays the first n windows of a part of w, or all if there are fewer, on workers goroutines, for studies
// that measure more than a runner does. open returns what plays window i in an environment; every goroutine has its
// own. The results are in the order of windows, for any number of workers.
func EachWindow[T any](ctx context.Context, w *Scenario, part traces.Part, n, workers int,
	open func(e sched.Arena) (func(i int) (T, error), error)) ([]T, error) {
	out := make([]T, min(n, w.Count(part)))
	players := par.Local[func(i int) (T, error)]{Make: func() (func(i int) (T, error), error) {
		e, err := w.NewEnv(part, 1)
		if err != nil {
			return nil, err
		}
		return open(e)
	}}
	err := players.For(ctx, workers, len(out), func(play func(i int) (T, error), i int) (err error) {
		if out[i], err = play(i); err != nil {
			return fmt.Errorf("window %d: %w", i, err)
		}
		return nil
	})
	return out, err
}

// Trained returns the greedy policy of the checkpoint in dir, or of the run in dir, for environments with specification
// spec.
func Trained(dir string, spec env.Spec) (agents.Policy, error) {
	c, err := OpenCheckpoint(dir, spec)
	if err != nil {
		return nil, err
	}
	return c.Policy(spec)
}
