package workqueue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"clustergym/internal/packed"
)

// Job is a task in the hands of a handler. Its methods are safe for concurrent use.
type Job struct {
	Task    Task
	Dir     string            // folder of its own, empty or as an earlier worker saved it; removed afterwards
	Needs   map[string]string // name → local path; read only
	Workers int               // goroutines that it may use; must not influence the result

	crew      *crew
	ctx       context.Context
	ack       string // subject of the acknowledgement of its message
	held      bool   // the coordinator knows that this worker does it; of crew.mu
	done, all atomic.Int64
	release   []func() // of the needs

	mu      sync.Mutex
	saved   time.Time // when Dir was last uploaded, or the handler began
	inStore bool      // the store has a saved folder
}

// Save uploads Dir as it is now, so that another worker goes on from there if this one does not finish. It does so at
// most once per Options.SaveEvery, and always when the handler's context has ended; otherwise it returns at once, so it
// may be called after every checkpoint. A queue that cannot be reached is no error: the next call tries again.
func (j *Job) Save() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	w := j.crew
	leaving := j.ctx.Err() != nil
	every := w.welcome.SaveEvery
	if errors.Is(context.Cause(j.ctx), errBye) {
		return nil // nobody goes on from there
	}
	if !leaving && (every < 0 || time.Since(j.saved) < every) || !w.nc.IsConnected() {
		return nil
	}
	list, err := packed.Entries(j.Dir)
	if err != nil {
		return fmt.Errorf("the folder of %s cannot be saved: %w", j.Task.Name, err)
	}
	ctx, cancel := outlive(j.ctx, leaveTime)
	defer cancel()
	if _, err := w.store.upload(ctx, stateName(j.Task.Digest), j.Dir, packed.Folder, list); err != nil {
		w.opt.Say("%s: %s is not saved for other workers: %v", w.opt.Name, j.Task.Name, err)
		return nil
	}
	j.saved, j.inStore = time.Now(), true
	// only counts tries
	_, _ = w.ask(&call{Kind: callSaved, Worker: w.opt.Name, Tasks: []inWork{{Digest: j.Task.Digest, Ack: j.ack}}})
	return nil
}

// Progress tells how far the task is: done of all, in any unit.
func (j *Job) Progress(done, all int64) {
	j.done.Store(done)
	j.all.Store(all)
}

// Log says one line on the worker.
func (j *Job) Log(format string, args ...any) {
	j.crew.opt.Say("%s: %s: %s", j.crew.opt.Name, j.Task.Name, fmt.Sprintf(format, args...))
}

// clean removes what the task used.
func (j *Job) clean() error {
	for _, r := range j.release {
		r()
	}
	if j.Dir == "" {
		return nil
	}
	return os.RemoveAll(j.Dir)
}
