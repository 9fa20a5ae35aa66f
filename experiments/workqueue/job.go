package workqueue

import "context"

// Job is a task in the hands of a handler.
type Job struct {
	Task    Task
	Dir     string            // folder of its own; holds what an earlier worker saved of the same task
	Needs   map[string]string // name → local path; read only
	Workers int               // goroutines that it may use; must not influence the result
}

// Save uploads Dir.
func (j *Job) Save() error { return nil }

// Progress tells how far the task is.
func (j *Job) Progress(_, _ int64) {}

// Log says a line.
func (j *Job) Log(_ string, _ ...any) {}

// Work is the loop of a worker.
func Work(ctx context.Context, _ WorkOptions) error { <-ctx.Done(); return ctx.Err() }
