package workqueue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"clustergym/internal/plain"
)

// Task is a unit of work that any worker can do. NewTask makes one.
type Task struct {
	// Digest is what sum returns: the SHA-256, in hex, of everything on which the result depends. It is the identity of
	// the task, and a worker refuses a task of another digest.
	Digest string          `json:"digest"`
	Kind   string          `json:"kind"`            // which Handler does it, as "cell"
	Name   string          `json:"name"`            // for people, as a cell's key
	Input  json.RawMessage `json:"input,omitempty"` // for the handler
	// files and folders that the handler reads: name → digest that Put returned
	Needs map[string]string `json:"needs,omitempty"`
}

// NewTask returns a task with its digest.
func NewTask(kind, name string, input any, needs map[string]string) (Task, error) {
	text, err := json.Marshal(input)
	if err != nil {
		return Task{}, err
	}
	t := Task{Kind: kind, Name: name, Input: text, Needs: needs}
	if t.Digest, err = t.sum(); err != nil {
		return Task{}, err
	}
	return t, t.check()
}

// sum returns the digest of a task: of its kind, its name, its input and its needs.
func (t *Task) sum() (string, error) {
	needs := t.Needs
	if len(needs) == 0 {
		needs = nil // a message does not tell an empty map from none
	}
	of, err := json.Marshal([]any{t.Kind, plain.Line(t.Name), t.Input, needs})
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(of)
	return hex.EncodeToString(digest[:]), nil
}

// Result is what a task came to.
type Result struct {
	Digest string          `json:"digest"`          // of the task
	Value  json.RawMessage `json:"value,omitempty"` // of the handler
	Files  string          `json:"files,omitempty"` // name in the store of the packed folder, for Unpack; "" = none
	Proof  string          `json:"proof"`           // SHA-256 of what must be equal whenever the task is done again
	Worker string          `json:"worker"`
	Wall   time.Duration   `json:"wall_ns"` // that the handler took
}

// Options configures a Coordinator. Exactly one of Listen and Queue must be given.
type Options struct {
	Listen string // HOST:PORT at which the server in this process listens; port 0 picks one
	Queue  string // URL of an existing NATS with JetStream, nats://… or tls://…
	Dir    string // folder of the server in this process, made if it does not exist; removed when all is done
	Job    string // name of the command's tasks: letters, digits, - and _

	Token   string // that workers must present, or that the existing NATS asks for; "" = none, with Queue only
	TLSCert string // PEM files of the certificate of Listen, "" = no TLS
	TLSKey  string
	TLSCA   string // PEM file of the authorities that sign the certificate of Queue; "" = those of the system

	Build   string // identity of the program; workers of another build are refused
	Kernels string // the kernel set in which everything is computed, "" = any

	Here    int // tasks that run on this machine at once; 0 = it only coordinates
	Workers int // goroutines on this machine, shared by the tasks that run here; at least 1 each

	Tries     int           // deliveries of a task, since it last saved, until it fails; 0 = 3
	AckWait   time.Duration // silence of a worker until its tasks go to others; 0 = 60 s
	SaveEvery time.Duration // least time between two uploads of one task's folder; 0 = 2 min, negative = none

	Say func(format string, args ...any) // called with one line for people, from one goroutine; nil = silent
	// called about once a second while anything changes, from one goroutine; nil = never
	Progress func(Status)
}

// Opener starts a coordinator. Who gets one calls it when the folder of the work is theirs and there is work to do, and
// closes the coordinator at the end. A nil Opener means that no other machine may help.
type Opener func(ctx context.Context) (*Coordinator, error)

// Dispute is a task with two results that differ.
type Dispute struct {
	Task          Task
	First, Second Result // First was taken
}

// TaskError is the error of a task that failed on workers.
type TaskError struct {
	Task   string // its name
	Worker string // the last one that had it
	Tries  int
	Text   string // what the worker said, or that workers fell silent
}

// Error implements error.
func (e *TaskError) Error() string { return e.Text }

// Status is what goes on, for progress and gymctl worker --status.
type Status struct {
	Job     string         `json:"job"`
	Done    int            `json:"done"`    // tasks whose results are in
	Working int            `json:"working"` // in work, here or on workers
	Waiting int            `json:"waiting"` // asked for and not begun
	Here    int            `json:"here"`    // of Working, on the coordinator's machine
	Failed  int            `json:"failed"`
	Equal   int            `json:"equal"`  // results that came a second time and proved equal
	Differ  int            `json:"differ"` // results that came a second time and differ
	Workers []WorkerStatus `json:"workers"`
	Own     []TaskStatus   `json:"own"`  // in work on the coordinator's machine, which does not say how far they are
	Lost    []LostWorker   `json:"lost"` // the last ones, the latest first; a worker that comes back stays here
}

// LostWorker is a worker that went away or fell silent. One that said that it leaves is none.
type LostWorker struct {
	Name  string        `json:"name"`
	Why   string        `json:"why"`
	Ago   time.Duration `json:"ago_ns"`
	Tasks []string      `json:"tasks"` // names of those that it had and that go to others
}

// WorkerStatus is what a worker does. The coordinator's own machine is not among the workers.
type WorkerStatus struct {
	Name   string        `json:"name"`
	Slots  int           `json:"slots"`
	Done   int           `json:"done"`      // results that were taken from it
	Silent time.Duration `json:"silent_ns"` // how long nothing was heard of it; 0 = it is well
	Tasks  []TaskStatus  `json:"tasks"`
}

// TaskStatus is a task in work.
type TaskStatus struct {
	Name   string        `json:"name"`
	Digest string        `json:"digest"`
	Done   int64         `json:"done"` // as its handler said, of All
	All    int64         `json:"all"`
	For    time.Duration `json:"for_ns"` // since it began
	Try    int           `json:"try"`    // 1 = first
}
