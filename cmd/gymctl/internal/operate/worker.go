package operate

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/distributed/workqueue"
	"clustergym/experiments/papers"
	"clustergym/internal/fault"
	"clustergym/internal/secret"
	"clustergym/internal/texttable"
	"clustergym/lab/config"
	"clustergym/nets/kernel"
	"clustergym/pages"
)

// TaskKinds returns what a worker can do, by the kind of task; tests replace it.
var TaskKinds = papers.Handlers

func workerVerb(a *cli.App) *cobra.Command {
	var (
		opt       workqueue.WorkOptions
		tokenFile string
		data      string
		status    bool
		asJSON    bool
		untilEOF  bool
		web       options.UIFlags
	)
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
			opt.URL = urls[0]
			if err := options.ReadToken(tokenFile, &opt.Token); err != nil {
				return err
			}
			if status {
				list, err := workqueue.AskStatus(c.Context(), opt)
				if err != nil {
					return err
				}
				return workersTable(a, list, asJSON)
			}
			switch {
			case opt.Slots < 1:
				return fault.Mistakef("--slots: got %d, want 1 or more", opt.Slots)
			case opt.Workers < 1:
				return fault.Mistakef("--workers: got %d, want 1 or more", opt.Workers)
			case opt.Patience <= 0:
				return fault.Mistakef("--patience: got %v, want a time such as 10m", opt.Patience)
			}
			opt.Build, opt.Kernels, opt.UseKernels = options.BuildIdentity(), kernel.Sets(), config.UseKernels
			opt.Mistake, opt.Say = cli.IsMistake, a.Say
			opt.Handlers = TaskKinds(data)
			ctx, stop := untilLeft(c.Context(), untilEOF)
			defer stop()
			opt.Name = workqueue.NewName()
			w := &workerPages{state: pages.WorkerState{Name: opt.Name, URL: secret.Without(opt.URL), Slots: opt.Slots}}
			closePages, err := web.Show(ctx, a, c, pages.Options{Paths: []string{scratchOf(opt.Dir, opt.Name)}, Worker: w.get})
			if err != nil {
				return err
			}
			defer closePages()
			if web.Addr != "" {
				opt.Handlers = w.watch(opt.Handlers)
			}
			return workqueue.Work(ctx, opt)
		},
	}
	f := c.Flags()
	f.StringVar(&tokenFile, "token-file", "", "`FILE` with the token of the command: one line of 16 characters or more")
	f.StringVar(&opt.TLSCA, "tls-ca", "", "PEM `FILE` of the authorities that sign the command's certificate (default those of the system)")
	f.IntVar(&opt.Slots, "slots", 1, "`N` tasks at once")
	f.IntVar(&opt.Workers, "workers", runtime.GOMAXPROCS(0), "`N` goroutines in total, shared by the slots; affects only speed")
	f.StringVar(&data, "data", "", "`DIR` of recorded workloads on this machine, for commands with --data")
	f.StringVar(&opt.Job, "job", "", "`NAME` of the command's tasks, where several share a NATS (default the only one)")
	f.StringVar(&opt.Dir, "dir", "", "`DIR` for scratch files (default a temporary folder)")
	f.BoolVar(&opt.Stay, "stay", false, "wait for the next command when one is done")
	f.DurationVar(&opt.Patience, "patience", 10*time.Minute, "`TIME` to wait for a command that does not answer")
	f.BoolVar(&status, "status", false, "print who works on what, and end")
	f.BoolVar(&asJSON, "json", false, "print one JSON document (--status)")
	f.BoolVar(&untilEOF, "until-eof", false, "save and end when standard input ends, for a program that starts this one and may be killed")
	web.Flags(c)
	cli.Apart(c, []string{"status"}, "ui", "ui-token-file")
	cli.Needs(c, []string{"status"}, "json")
	cli.CompleteDir(c, "data", "dir")
	return c
}

// untilLeft returns a copy of ctx that also ends when the terminal or the connection of ssh goes from which this program was
// started, unless nohup keeps it, and with untilEOF when standard input ends.
func untilLeft(ctx context.Context, untilEOF bool) (context.Context, context.CancelFunc) {
	var stops []context.CancelFunc
	if !signal.Ignored(syscall.SIGHUP) {
		hung, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
		ctx, stops = hung, append(stops, stop)
	}
	if untilEOF {
		left, stop := options.UntilEnd(ctx, os.Stdin)
		ctx, stops = left, append(stops, stop)
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// workersTable prints what goes on: a row for each task in work, and one for each worker without.
func workersTable(a *cli.App, list []workqueue.Status, asJSON bool) error {
	if asJSON {
		return a.JSON(struct {
			Jobs []workqueue.Status `json:"jobs"`
		}{list})
	}
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
		a.Printf("job %s: %d done, %d in work (%d on the command's machine), %d waiting, %d failed, %d differ\n", s.Job, s.Done, s.Working, s.Here, s.Waiting, s.Failed, s.Differ)
		if len(rows) == 0 {
			a.Printf("no workers\n")
			continue
		}
		if err := a.Table(5, []string{"worker", "slots", "done", "state", "task", "for", "share", "try"}, rows, "share", "try", "done"); err != nil {
			return err
		}
	}
	return nil
}
