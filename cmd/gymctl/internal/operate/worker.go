package operate

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/distributed/workqueue"
	"clustergym/experiments/papers"
	"clustergym/internal/secret"
	"clustergym/internal/texttable"
	"clustergym/lab/config"
	"clustergym/nets/kernel"
	"clustergym/pages"
)

// TaskKinds returns what a worker can do, by the kind of task; tests replace it.
var TaskKinds = papers.Handlers

// workerOptions are the flags of worker.
type workerOptions struct {
	opt             workqueue.WorkOptions
	tokenFile, data string
	status, atEOF   bool
	web             options.UIFlags
}

func workerVerb(a *cli.App) *cobra.Command {
	o := &workerOptions{}
	c := &cobra.Command{
		Use:   "worker URL",
		Short: "Do tasks of a command on another machine",
		Long: `worker fetches tasks from a command that was started with --listen or --queue (experiment run, sweep, eval,
train --seeds), does them and sends the results back. Results do not depend on who did which task: the command writes
the same bytes as on one machine. Start as many workers as you like, before the command or after it.

It ends with exit code 0 when the command is done; with --stay it waits for the next one. Ctrl-C saves, hands the tasks
back, and ends with 130; kill -9 costs what was not saved. A worker of another build or processor architecture, or with
a wrong token, is refused in one sentence with exit code 2. While the command is away, the worker goes on with what it
has, and ends with exit code 1 when nothing was heard for --patience.

With --status it does nothing but print who works on what.`,
		Example: `  gymctl worker nats://host:7777 --token-file token
  gymctl worker tls://host:7777 --token-file token --tls-ca ca.pem --slots 4
  gymctl worker nats://host:7777 --token-file token --status`,
		Args: cli.Args(1, 1, "one URL"),
		RunE: func(c *cobra.Command, urls []string) error {
			o.opt.URL = urls[0]
			return o.run(a, c)
		},
	}
	o.flags(c)
	return c
}

func (o *workerOptions) flags(c *cobra.Command) {
	f, opt := c.Flags(), &o.opt
	f.StringVar(&o.tokenFile, "token-file", "", "`FILE` with the token of the command: one line of 16 characters or more")
	f.StringVar(&opt.TLSCA, "tls-ca", "",
		"PEM `FILE` of the authorities that sign the command's certificate (default those of the system)")
	f.IntVar(&opt.Slots, "slots", 1, "`N` tasks at once")
	f.IntVar(&opt.Workers, "workers", runtime.GOMAXPROCS(0),
		"`N` goroutines in total, shared by the slots; affects only speed")
	f.StringVar(&o.data, "data", "", "`DIR` of recorded workloads on this machine, for commands with --data")
	f.StringVar(&opt.Job, "job", "", "`NAME` of the command's tasks, where several share a NATS (default the only one)")
	f.StringVar(&opt.Dir, "dir", "", "`DIR` for scratch files (default a temporary folder)")
	f.BoolVar(&opt.Stay, "stay", false, "wait for the next command when one is done")
	f.DurationVar(&opt.Patience, "patience", 10*time.Minute, "`TIME` to wait for a command that does not answer")
	f.BoolVar(&o.status, "status", false, "print who works on what, and end")
	f.Bool("json", false, "print one JSON document (--status)")
	f.BoolVar(&o.atEOF, "until-eof", false,
		"save and end when standard input ends, for a program that starts this one and may be killed")
	o.web.Flags(c)
	cli.Apart(c, []string{"status"}, "ui", "ui-token-file")
	cli.Needs(c, []string{"status"}, "json")
	cli.Least(c, 1, "slots", "workers")
	cli.Least(c, time.Millisecond, "patience")
	cli.CompleteDir(c, "data", "dir")
}

func (o *workerOptions) run(a *cli.App, c *cobra.Command) error {
	opt := o.opt
	if err := options.ReadToken(o.tokenFile, &opt.Token); err != nil {
		return err
	}
	if o.status {
		list, err := workqueue.AskStatus(c.Context(), opt)
		if err != nil {
			return err
		}
		return a.Show(c, cli.Keyed{"jobs": list}, func(io.Writer) error { return workersTable(a, list) })
	}
	opt.Build, opt.Kernels, opt.UseKernels = options.BuildIdentity(), kernel.Sets(), config.UseKernels
	opt.Mistake, opt.Say = cli.IsMistake, a.Say
	opt.Handlers = TaskKinds(o.data)
	ctx, stop := untilLeft(c.Context(), o.atEOF)
	defer stop()
	opt.Name = workqueue.NewName()
	w := &workerPages{state: pages.WorkerState{Name: opt.Name, URL: secret.Without(opt.URL), Slots: opt.Slots}}
	closePages, err := o.web.Show(ctx, a, c, pages.Options{Paths: []string{scratchOf(opt.Dir, opt.Name)}, Worker: w.get})
	if err != nil {
		return err
	}
	defer closePages()
	if o.web.Addr != "" {
		opt.Handlers = w.watch(opt.Handlers)
	}
	return workqueue.Work(ctx, opt)
}

// untilLeft returns a copy of ctx that also ends when the terminal or the connection of ssh goes from which this
// program was started, unless nohup keeps it, and with untilEOF when standard input ends.
func untilLeft(ctx context.Context, untilEOF bool) (context.Context, context.CancelFunc) {
	ctx, stop := options.UntilEnd(ctx, untilEOF)
	if !signal.Ignored(syscall.SIGHUP) {
		ctx, _ = signal.NotifyContext(ctx, syscall.SIGHUP) // ends with the other one
	}
	return ctx, stop
}

// workersTable prints what goes on: a row for each task in work, and one for each worker without.
func workersTable(a *cli.App, list []workqueue.Status) error {
	for _, s := range list {
		rows := [][]string{}
		for _, w := range s.Workers {
			seen := "well"
			if w.Silent > 0 {
				seen = "silent for " + texttable.Hours(w.Silent.Seconds())
			}
			head := []string{w.Name, fmt.Sprintf("%d of %d", len(w.Tasks), w.Slots), fmt.Sprint(w.Done), seen}
			for _, t := range w.Tasks {
				rows = append(rows, append(head, t.Name, texttable.Time(t.For.Seconds()), options.Share(t), fmt.Sprint(t.Try)))
				head = []string{"", "", "", ""}
			}
			if len(w.Tasks) == 0 {
				rows = append(rows, append(head, "–", "", "", ""))
			}
		}
		a.Printf("job %s: %d done, %d in work (%d on the command's machine), %d waiting, %d failed, %d differ\n", s.Job,
			s.Done, s.Working, s.Here, s.Waiting, s.Failed, s.Differ)
		if len(rows) == 0 {
			a.Printf("no workers\n")
			continue
		}
		if err := a.Table(5, []string{"worker", "slots", "done", "state", "task", "for", "share", "try"}, rows, "share",
			"try", "done"); err != nil {
			return err
		}
	}
	return nil
}
