package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"clustergym/experiments/workqueue"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/nets/kernel"
)

// queueFlags are the flags of a verb whose work other machines may share.
type queueFlags struct {
	listen, url    string
	tokenFile      string
	cert, key, ca  string
	job            string
	data           string // folder of recorded workloads that workers need too, "" = none
	tries          int
	ackWait, saves time.Duration

	c     *workqueue.Coordinator // nil = not opened
	shown atomic.Pointer[workqueue.Coordinator]
}

// flags adds the flags.
func (q *queueFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&q.listen, "listen", "", "let workers on other machines help (gymctl worker): `HOST:PORT` to listen at, with --token-file; port 0 picks one")
	f.StringVar(&q.url, "queue", "", "`URL` of a NATS with JetStream that exists already, instead of --listen")
	// Some verbs have flags of these names already, for another server of theirs.
	for _, s := range [][2]string{
		{"token-file", "`FILE` with the token that workers must present, or that the NATS asks for: one line of 16 characters or more"},
		{"tls-cert", "PEM `FILE` of the certificate of --listen; with --tls-key, TLS only"},
		{"tls-key", "PEM `FILE` of the certificate's key"},
		{"tls-ca", "PEM `FILE` of the authorities that sign the certificate of --queue (default those of the system)"},
	} {
		if f.Lookup(s[0]) == nil {
			f.String(s[0], "", s[1])
		}
	}
	f.StringVar(&q.job, "job", "", "`NAME` of this command's tasks in the queue (default that of its folder)")
	f.IntVar(&q.tries, "tries", 3, "a task has failed after `N` tries on workers since it last saved")
	f.DurationVar(&q.ackWait, "ack-wait", time.Minute, "`TIME` of silence after which a worker's tasks go to others")
	f.DurationVar(&q.saves, "save-every", 2*time.Minute, "least `TIME` between two saved folders of a task that workers upload")
}

// given reports whether other machines may help.
func (q *queueFlags) given() bool { return q.listen != "" || q.url != "" }

// check checks the flags, and the number of goroutines on this machine, which may be 0 if other machines do all.
func (q *queueFlags) check(c *cobra.Command, workers int) error {
	for name, to := range map[string]*string{"token-file": &q.tokenFile, "tls-cert": &q.cert, "tls-key": &q.key, "tls-ca": &q.ca} {
		*to = c.Flag(name).Value.String()
	}
	for _, name := range []string{"listen", "queue"} {
		if c.Flags().Changed(name) && c.Flag(name).Value.String() == "" {
			return fault.Mistakef("--%s: got nothing, want %s", name, wantOf(c.Flag(name)))
		}
	}
	least := 1
	if q.given() {
		least = 0
	}
	switch {
	case workers < least && q.given():
		return fault.Mistakef("--workers: got %d, want 0 or more", workers)
	case workers < least:
		return fault.Mistakef("--workers: got %d, want 1 or more, or 0 with --listen or --queue", workers)
	case q.listen != "" && q.url != "":
		return fault.Mistakef("--listen and --queue do not go together: one starts a queue, the other uses one")
	case q.listen != "" && q.tokenFile == "":
		return workqueue.NoToken(q.listen)
	case q.given():
		return nil
	}
	own := []string{"tries", "ack-wait", "save-every"}
	if c.Flags().Lookup("serve") == nil && c.Flags().Lookup("rank") == nil { // the others can be of another server
		own = append(own, "tls-ca", "job", "token-file", "tls-cert", "tls-key")
	}
	for _, name := range own {
		if c.Flags().Changed(name) {
			return fault.Mistakef("--%s goes with --listen or --queue", name)
		}
	}
	return nil
}

// open starts the coordinator of the work in a folder, with workers tasks at once on this machine; nil if no other machine may
// help. Its tasks are called name in the queue, unless --job says otherwise. The caller closes it.
func (q *queueFlags) open(ctx context.Context, ui *queueProgress, name, dir string, workers int) (*workqueue.Coordinator, error) {
	if !q.given() {
		return nil, nil
	}
	opt := workqueue.Options{
		Listen: q.listen, Queue: q.url, Job: q.job, TLSCert: q.cert, TLSKey: q.key, TLSCA: q.ca, Build: buildIdentity(), Kernels: kernel.Set(),
		Here: workers, Workers: workers, Tries: q.tries, AckWait: q.ackWait, SaveEvery: q.saves, Say: ui.say, Progress: ui.show,
	}
	if q.listen != "" {
		opt.Dir = filepath.Join(dir, "queue")
	}
	if opt.Job == "" {
		opt.Job = workqueue.JobName(name)
	}
	if err := readToken(q.tokenFile, &opt.Token); err != nil {
		return nil, err
	}
	c, err := workqueue.Listen(ctx, opt)
	if err != nil {
		return nil, err
	}
	hint := "gymctl worker " + c.URL()
	if q.tokenFile != "" {
		hint += " --token-file " + q.tokenFile
	}
	if q.url != "" {
		hint += " --job " + opt.Job
	}
	if q.data != "" {
		hint += " --data " + q.data
	}
	ui.say("queue     %s, for workers: %s", c.URL(), hint)
	q.shown.Store(c)
	return c, nil
}

// status returns what goes on in the queue, for pages; nil while it is not open.
func (q *queueFlags) status() *workqueue.Status {
	c := q.shown.Load()
	if c == nil {
		return nil
	}
	s := c.Status()
	return &s
}

// opener returns what opens the queue when the folder is there, nil if no other machine may help. ui shows its progress.
func (q *queueFlags) opener(ui *queueProgress, name, dir string, workers int) workqueue.Opener {
	if !q.given() {
		return nil
	}
	return func(ctx context.Context) (_ *workqueue.Coordinator, err error) {
		q.c, err = q.open(ctx, ui, name, dir, workers)
		return q.c, err
	}
}

// disputes returns an error if machines gave different results for one task.
func (q *queueFlags) disputes() error {
	if q.c == nil {
		return nil
	}
	all := q.c.Disputes()
	if len(all) == 0 {
		return nil
	}
	d := all[0]
	return fmt.Errorf("%s done twice with different results, %s by workers %s and %s; the first result was kept, and one of the machines cannot be trusted",
		plain.Count(len(all), "task was", "tasks were"), d.Task.Name, d.First.Worker, d.Second.Worker)
}

// readToken reads a token file, if there is one.
func readToken(path string, token *string) (err error) {
	if path != "" {
		*token, err = workqueue.ReadToken(path)
	}
	return err
}

// buildIdentity identifies this program: by the commit and the Go version that it was built from, or by the sum of the executable
// if the commit does not say all.
var buildIdentity = sync.OnceValue(func() string {
	v := about()
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
		path, err := os.Executable()
		if err != nil {
			return "", err
		}
		if f, err = os.Open(path); err != nil {
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

// queueProgress shows the work of all machines as one line on a terminal. Other output must go through
// say, or clear this line first.
type queueProgress struct {
	a    *app
	line *status
}

func newQueueProgress(a *app) *queueProgress { return &queueProgress{a, newStatus(a, 0)} }

// say prints a line.
func (p *queueProgress) say(format string, args ...any) {
	p.line.clear() // it is drawn again within a second
	p.a.say(format, args...)
}

// show draws the line.
func (p *queueProgress) show(s workqueue.Status) {
	p.line.show(func(int) []string { return queueParts(s) })
}

// queueParts are the parts of the line, the most important first.
func queueParts(s workqueue.Status) []string {
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
			parts = append(parts, w.Name+": "+t.Name+share(t))
		}
	}
	return parts
}

// share is how far a task is, as " 45 %", if that is known.
func share(t workqueue.TaskStatus) string {
	if t.All <= 0 {
		return ""
	}
	return fmt.Sprintf(" %.0f %%", 100*min(1, float64(t.Done)/float64(t.All)))
}
