package options

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/distributed/workqueue"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/nets/kernel"
)

// QueueFlags are the flags of a verb whose work other machines may share.
type QueueFlags struct {
	Listen, URL    string
	TokenFile      string
	cert, key, ca  string
	job            string
	Data           string // folder of recorded workloads that workers need too, "" = none
	Tries          int
	Workers        int // goroutines of this machine
	AckWait, Saves time.Duration

	c     *workqueue.Coordinator // nil = not opened
	shown atomic.Pointer[workqueue.Coordinator]
}

// Flags adds the flags.
func (q *QueueFlags) Flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&q.Listen, "listen", "",
		"let workers on other machines help (gymctl worker): `HOST:PORT` to listen at, with --token-file; port 0 picks one")
	f.StringVar(&q.URL, "queue", "", "`URL` of a NATS with JetStream that exists already, instead of --listen")
	// Some verbs have flags of these names already, for another server of theirs.
	Once(f, "token-file",
		"`FILE` with the token that workers must present, or that the NATS asks for: one line of 16 characters or more")
	Once(f, "tls-cert", "PEM `FILE` of the certificate of --listen; with --tls-key, TLS only")
	Once(f, "tls-key", "PEM `FILE` of the certificate's key")
	Once(f, "tls-ca", "PEM `FILE` of the authorities that sign the certificate of --queue (default those of the system)")
	f.IntVar(&q.Workers, "workers", runtime.GOMAXPROCS(0),
		"`N` goroutines in total; affects only speed; 0 with --listen: none here")
	f.StringVar(&q.job, "job", "", "`NAME` of this command's tasks in the queue (default that of its folder)")
	f.IntVar(&q.Tries, "tries", 3, "a task has failed after `N` tries on workers since it last saved")
	f.DurationVar(&q.AckWait, "ack-wait", time.Minute, "`TIME` of silence after which a worker's tasks go to others")
	f.DurationVar(&q.Saves, "save-every", 2*time.Minute,
		"least `TIME` between two saved folders of a task that workers upload")
	c.MarkFlagsMutuallyExclusive("listen", "queue")
	cli.Filled(c, "listen", "queue")
	cli.Needs(c, []string{"listen", "queue"}, "tries", "ack-wait", "save-every")
	if c.Name() != "eval" && c.Name() != "train" { // there the others can be of another server
		cli.Needs(c, []string{"listen", "queue"}, "tls-ca", "job", "token-file", "tls-cert", "tls-key")
	}
}

// Once adds a flag for a text unless the verb has it.
func Once(f *pflag.FlagSet, name, usage string) {
	if f.Lookup(name) == nil {
		f.String(name, "", usage)
	}
}

// Given reports whether other machines may help.
func (q *QueueFlags) Given() bool { return q.Listen != "" || q.URL != "" }

// Check checks the flags. This machine may have no goroutine if others do all.
func (q *QueueFlags) Check(c *cobra.Command) error {
	text := func(name string) string { return c.Flag(name).Value.String() }
	q.TokenFile, q.cert, q.key, q.ca = text("token-file"), text("tls-cert"), text("tls-key"), text("tls-ca")
	switch {
	case q.Workers < 0 && q.Given():
		return fault.Mistakef("--workers: got %d, want 0 or more", q.Workers)
	case q.Workers < 1 && !q.Given():
		return fault.Mistakef("--workers: got %d, want 1 or more, or 0 with --listen or --queue", q.Workers)
	case q.Listen != "" && q.TokenFile == "":
		return workqueue.NoToken(q.Listen)
	}
	return nil
}

// Open starts the coordinator of the work in a folder, with as many tasks at once on this machine as it has workers;
// nil if no other machine may help. Its tasks are called name in the queue, unless --job says otherwise. The caller
// closes it.
func (q *QueueFlags) Open(ctx context.Context, ui *QueueProgress, name, dir string) (*workqueue.Coordinator, error) {
	if !q.Given() {
		return nil, nil
	}
	opt := workqueue.Options{
		Listen: q.Listen, Queue: q.URL, Job: q.job, TLSCert: q.cert, TLSKey: q.key, TLSCA: q.ca, Build: BuildIdentity(),
		Kernels: kernel.Set(),
		Here:    q.Workers, Workers: q.Workers, Tries: q.Tries, AckWait: q.AckWait, SaveEvery: q.Saves, Say: ui.Say,
		Progress: ui.show,
	}
	if q.Listen != "" {
		opt.Dir = filepath.Join(dir, "queue")
	}
	if opt.Job == "" {
		opt.Job = workqueue.JobName(name)
	}
	if err := ReadToken(q.TokenFile, &opt.Token); err != nil {
		return nil, err
	}
	c, err := workqueue.Listen(ctx, opt)
	if err != nil {
		return nil, err
	}
	hint := "gymctl worker " + c.URL()
	if q.TokenFile != "" {
		hint += " --token-file " + q.TokenFile
	}
	if q.URL != "" {
		hint += " --job " + opt.Job
	}
	if q.Data != "" {
		hint += " --data " + q.Data
	}
	ui.Say("queue     %s, for workers: %s", c.URL(), hint)
	q.shown.Store(c)
	return c, nil
}

// Status returns what goes on in the queue, for pages; nil while it is not open.
func (q *QueueFlags) Status() *workqueue.Status {
	c := q.shown.Load()
	if c == nil {
		return nil
	}
	s := c.Status()
	return &s
}

// Opener returns what opens the queue when the folder is there, nil if no other machine may help. ui shows its
// progress.
func (q *QueueFlags) Opener(ui *QueueProgress, name, dir string) workqueue.Opener {
	if !q.Given() {
		return nil
	}
	return func(ctx context.Context) (_ *workqueue.Coordinator, err error) {
		q.c, err = q.Open(ctx, ui, name, dir)
		return q.c, err
	}
}

// Disputed returns err, and an error if machines gave different results for one task.
func (q *QueueFlags) Disputed(err error) error {
	if q.c == nil || len(q.c.Disputes()) == 0 {
		return err
	}
	all := q.c.Disputes()
	d := all[0]
	return errors.Join(err, fmt.Errorf("%s done twice with different results, %s by workers %s and %s; "+
		"the first result was kept, and one of the machines cannot be trusted",
		plain.Count(len(all), "task was", "tasks were"), d.Task.Name, d.First.Worker, d.Second.Worker))
}

// ReadToken reads a token file, if there is one.
func ReadToken(path string, token *string) (err error) {
	if path != "" {
		*token, err = workqueue.ReadToken(path)
	}
	return err
}

// BuildIdentity identifies this program: by the commit and the Go version that it was built from, or by the sum of the
// executable if the commit does not say all.
var BuildIdentity = sync.OnceValue(func() string {
	v := cli.About()
	if v.Commit != "" && !v.Modified {
		return v.Commit[:min(12, len(v.Commit))] + " " + v.Go
	}
	sum, err := executableSum()
	if err != nil {
		return "unknown " + v.Go + " " + err.Error() // equals no other machine's unless that has the same fault
	}
	return "executable " + sum[:16]
})

func executableSum() (string, error) {
	f, err := os.Open("/proc/self/exe") // the program that runs, although its file may have been replaced
	if err != nil {
		if f, err = os.Open(cli.Self()); err != nil {
			return "", err
		}
	}
	defer func() { _ = f.Close() }() // open for reading only
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// QueueProgress shows the work of all machines as one line on a terminal. Other output must go through
// say, or clear this line first.
type QueueProgress struct {
	A    *cli.App
	Line *cli.Status
}

// NewQueueProgress returns the line on standard error; without a terminal it shows nothing.
func NewQueueProgress(a *cli.App) *QueueProgress { return &QueueProgress{a, cli.NewStatus(a, 0)} }

// Say prints a line.
func (p *QueueProgress) Say(format string, args ...any) {
	p.Line.Clear() // it is drawn again within a second
	p.A.Say(format, args...)
}

// show draws the line.
func (p *QueueProgress) show(s workqueue.Status) {
	p.Line.Show(func(int) []string { return QueueParts(s) })
}

// QueueParts are the parts of the line, the most important first.
func QueueParts(s workqueue.Status) []string {
	all := s.Done + s.Failed + s.Working + s.Waiting
	parts := []string{fmt.Sprintf("%d of %d tasks", s.Done, all), fmt.Sprintf("%d in work, %d here", s.Working, s.Here)}
	if s.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", s.Failed))
	}
	if s.Differ > 0 {
		parts = append(parts, fmt.Sprintf("%d DIFFER", s.Differ))
	}
	silent := 0
	for _, w := range s.Workers {
		if w.Silent > 0 {
			silent++
		}
	}
	text := plain.Count(len(s.Workers), "worker", "workers")
	if silent > 0 {
		text += fmt.Sprintf(", %d silent", silent)
	}
	parts = append(parts, text)
	for _, w := range s.Workers {
		for _, t := range w.Tasks {
			parts = append(parts, w.Name+": "+t.Name+Share(t))
		}
	}
	return parts
}

// Share is how far a task is, as " 45 %", if that is known.
func Share(t workqueue.TaskStatus) string {
	if t.All <= 0 {
		return ""
	}
	return fmt.Sprintf(" %.0f %%", 100*min(1, float64(t.Done)/float64(t.All)))
}
