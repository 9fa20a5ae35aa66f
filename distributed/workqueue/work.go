package workqueue

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/safefile"
)

// Handler does the tasks of one kind on a worker. The same task must give the same proof, whatever Job.Workers is and
// however often it was interrupted. If ctx ends, the handler saves what it has into Job.Dir, calls Job.Save if that is
// worth going on from, and returns the context's error: the task then goes on elsewhere.
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
	// whether a handler's error is the user's mistake; nil = it is a *fault.Mistake
	Mistake func(error) bool
	Say     func(format string, args ...any) // one line for people; nil = silent
}

// Work does tasks until the coordinator says that all is done; with Stay it then waits for the next one. If ctx ends,
// the worker lets its handlers save, hands their tasks back, and returns the context's error. If it is refused, the
// error is a *fault.Mistake of one sentence; if no coordinator answers for longer than Patience, it says so.
func Work(ctx context.Context, opt WorkOptions) (err error) {
	if err := opt.fill(); err != nil {
		return err
	}
	dir, remove, err := scratch(opt.Dir, opt.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	w := &crew{opt: opt, dir: dir, needs: newCache(filepath.Join(dir, NeedsDir), opt.Cache), wakers: map[int]func(){}}
	if err := w.connect(ctx); err != nil {
		return err
	}
	defer w.nc.Close()
	for patience := opt.Patience; ; {
		welcome, err := w.introduce(ctx, patience)
		if err != nil {
			return err
		}
		switch err := w.session(ctx, welcome); {
		case errors.Is(err, errBye) && opt.Stay:
			opt.Say("%s: all is done; waiting for the next coordinator", opt.Name)
			patience = 1 << 62
		case errors.Is(err, errBye):
			opt.Say("%s: all is done", opt.Name)
			return nil
		case errors.Is(err, errRenew):
		default:
			return err
		}
	}
}

// fill checks the options and fills in the defaults.
func (o *WorkOptions) fill() error {
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	o.Say = cleaned(o.Say)
	o.Slots, o.Patience, o.Cache = cmp.Or(o.Slots, 1), cmp.Or(o.Patience, 10*time.Minute), cmp.Or(o.Cache, 8<<30)
	if o.Name == "" {
		o.Name = NewName()
	}
	if o.Mistake == nil {
		o.Mistake = fault.IsMistake
	}
	switch {
	case o.Slots < 1 || o.Slots > 1<<12:
		return fault.Mistakef("%s: got %d, want 1 to %d", fault.Key("slots"), o.Slots, 1<<12)
	case o.Patience < 0:
		return fault.Mistakef("%s: got %v, want a time such as 10m", fault.Key("patience"), o.Patience)
	case o.Job != "" && !jobName.MatchString(o.Job):
		return fault.Mistakef("%s: got %q, want at most 64 letters, digits, - and _", fault.Key("job"), o.Job)
	case !workerName.MatchString(o.Name):
		return fault.Mistakef("a worker's name: got %q, want at most 100 letters, digits, dots, - and _", o.Name)
	}
	return nil
}

// NewName returns a name for a worker: host, process and a random part.
func NewName() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return fmt.Sprintf("%s-%d-%s", name, os.Getpid(), strings.ToLower(rand.Text()[:4]))
}

// ScratchPrefix begins the name of a worker's folder in WorkOptions.Dir; the worker's name follows.
const ScratchPrefix = "gymctl-worker-"

// NeedsDir is the folder in it with copies of what tasks read.
const NeedsDir = "needs"

var workerName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// ownFolder returns an error unless dir is a folder, not a link to one, that other users cannot write: in a folder for
// everybody's temporary files, one of that name may have been there.
func ownFolder(dir string) error {
	st, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !st.IsDir(), runtime.GOOS != "windows" && st.Mode().Perm()&0o022 != 0:
		return fault.Errorf("it is a link, or other users may write it; use another %s", fault.Key("dir"))
	}
	return nil
}

// scratch makes a worker's folder, and removes those that killed workers left beside it. The folder is locked while its
// worker lives.
func scratch(base, name string) (dir string, remove func() error, err error) {
	if base == "" {
		base = os.TempDir()
	}
	dir = filepath.Join(base, ScratchPrefix+name)
	// Until it is locked, another worker that begins takes it for one of those and removes it.
	var unlock func()
	for range 1000 {
		if err = os.MkdirAll(dir, 0o700); err != nil {
			return "", nil, err
		}
		if unlock, err = safefile.Lock(dir); err == nil {
			if err = ownFolder(dir); err == nil {
				break
			}
			unlock()
		}
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", dir, err)
	}
	if old, err := filepath.Glob(filepath.Join(base, ScratchPrefix+"*")); err == nil { // the pattern is ours
		for _, o := range old {
			if u, err := safefile.Lock(o); o != dir && err == nil {
				_ = os.RemoveAll(o) // the next worker tries again
				u()
			}
		}
	}
	return dir, func() error { defer unlock(); return os.RemoveAll(dir) }, nil
}
