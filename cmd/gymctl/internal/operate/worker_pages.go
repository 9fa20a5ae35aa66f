package operate

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"clustergym/distributed/workqueue"
	"clustergym/pages"
)

// workerPages counts what a worker does, for its page.
type workerPages struct {
	mu    sync.Mutex
	state pages.WorkerState
}

func (w *workerPages) get() *pages.WorkerState {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state
	s.Tasks = slices.Clone(s.Tasks)
	if s.Tasks == nil {
		s.Tasks = []string{}
	}
	return &s
}

// watch returns handlers that count.
func (w *workerPages) watch(handlers map[string]workqueue.Handler) map[string]workqueue.Handler {
	out := map[string]workqueue.Handler{}
	for kind, h := range handlers {
		out[kind] = func(ctx context.Context, j *workqueue.Job) (workqueue.Outcome, error) {
			w.mu.Lock()
			w.state.Tasks = append(w.state.Tasks, j.Task.Name)
			w.mu.Unlock()
			o, err := h(ctx, j)
			w.mu.Lock()
			defer w.mu.Unlock()
			if i := slices.Index(w.state.Tasks, j.Task.Name); i >= 0 {
				w.state.Tasks = slices.Delete(w.state.Tasks, i, i+1)
			}
			switch {
			case err == nil:
				w.state.Done++
			case ctx.Err() == nil:
				w.state.Fails++
			}
			return o, err
		}
	}
	return out
}

// scratchOf returns the folder in which a worker works: that of its name below dir.
func scratchOf(dir, name string) string {
	if dir == "" {
		dir = os.TempDir()
	}
	return filepath.Join(dir, workqueue.ScratchPrefix+name)
}
