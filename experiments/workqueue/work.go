package workqueue

import (
	"context"
	"time"
)

// Handler does the tasks of one kind on a worker. The same task must give the same proof, whatever Job.Workers is and however
// often it was interrupted. If ctx ends, the handler saves what it has into Job.Dir, calls Job.Save if that is worth going on
// from, and returns the context's error: the task then goes on elsewhere.
type Handler func(ctx context.Context, j *Job) (Outcome, error)

// Outcome is what a handler returns.
type Outcome struct {
	Value any    // encoded as JSON
	Keep  bool   // upload Job.Dir as the result's files
	Proof []byte // what must be equal whenever the task is done again; nil = the encoded Value
}

// WorkOptions configures a worker.
type WorkOptions struct {
	URL   string // of the coordinator or the NATS: nats://HOST:PORT, tls://HOST:PORT or HOST:PORT
	Token string
	TLSCA string // PEM file of the authorities that sign the certificate; "" = those of the system
	Job   string // whose tasks to do, "" = the only one there
	Name  string // "" = host, process and a random part

	Slots   int // tasks at once; 0 = 1
	Workers int // goroutines, shared by the slots; at least 1 each

	Dir      string        // scratch; "" = a temporary folder
	Stay     bool          // wait for the next coordinator when all is done
	Patience time.Duration // how long to wait for a coordinator that does not answer; 0 = 10 min
	Cache    int64         // bytes of needs to keep between tasks; 0 = 8 GiB

	Build      string
	Kernels    []string                // kernel sets that this machine can run
	UseKernels func(name string) error // selects the coordinator's kernel set, while no task runs; nil = nothing to do

	Handlers map[string]Handler
	Mistake  func(error) bool                 // whether a handler's error is the user's mistake; nil = it is a *MistakeError
	Say      func(format string, args ...any) // one line for people; nil = silent
}
