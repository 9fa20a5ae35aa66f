package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"clustergym/env/bridge/server"
	"clustergym/experiments/config"
	"clustergym/experiments/envs"
	"clustergym/experiments/pages"
	"clustergym/experiments/workqueue"
	"clustergym/internal/fault"
)

// uiFlags are the flags of verbs that can show pages while they work.
type uiFlags struct {
	addr      string
	tokenFile string
	flag      string // that has the address
}

const tokenHelp = "`FILE` of the tokens that the pages want, one \"ROLE TOKEN\" per line; those of role read or admin count"

// flags adds --ui and --ui-token-file.
func (u *uiFlags) flags(c *cobra.Command) {
	u.flag = "ui"
	f := c.Flags()
	f.StringVar(&u.addr, "ui", "", "show live pages and /metrics at `HOST:PORT` meanwhile (docs/live.md); :PORT is this machine alone, port 0 picks a free one")
	f.StringVar(&u.tokenFile, "ui-token-file", "", tokenHelp)
}

// given reports whether one of the flags was given.
func (u *uiFlags) given(c *cobra.Command) bool {
	return c.Flags().Changed("ui") || c.Flags().Changed("ui-token-file")
}

// listen opens the address, before the work begins: a port in use must not be found out afterwards.
func (u *uiFlags) listen(a *app) (net.Listener, []server.Token, error) {
	tokenFlag := "--" + u.flag + "-token-file"
	if u.flag == "addr" {
		tokenFlag = "--token-file"
	}
	var tokens []server.Token
	if u.tokenFile != "" {
		var warning string
		var err error
		if tokens, warning, err = envs.ReadTokens(u.tokenFile); err != nil {
			return nil, nil, err
		}
		if warning != "" {
			a.notef("%s", warning)
		}
		if !slices.ContainsFunc(tokens, func(t server.Token) bool { return t.Role == server.RoleRead || t.Role == server.RoleAdmin }) {
			return nil, nil, fault.Mistakef("%s %s: no token has role read or admin, so nobody could look", tokenFlag, u.tokenFile)
		}
	}
	addr := u.addr
	if strings.HasPrefix(addr, ":") {
		addr = "127.0.0.1" + addr
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("--%s: %w", u.flag, notListening(addr, err))
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && len(tokens) == 0 {
		_ = l.Close() // nobody knows the address yet
		return nil, nil, fault.Mistakef("--%s: %s can be reached from other machines, and nothing is asked of readers; want %s FILE, or an address such as 127.0.0.1:6006", u.flag, addr, tokenFlag)
	}
	return l, tokens, nil
}

// show serves pages about paths while the command works, if --ui was given. The caller calls stop at the end.
func (u *uiFlags) show(ctx context.Context, a *app, c *cobra.Command, opt pages.Options) (stop func(), err error) {
	if u.addr == "" {
		if c.Flags().Changed("ui") {
			return nil, fault.Mistakef(`--ui: got "", want HOST:PORT, as 127.0.0.1:6006`)
		}
		if u.tokenFile != "" {
			return nil, fault.Mistakef("--ui-token-file goes with --ui")
		}
		return func() {}, nil
	}
	l, tokens, err := u.listen(a)
	if err != nil {
		return nil, err
	}
	opt.Tokens, opt.Version = tokens, about().Version
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	s := pages.New(opt)
	go func() { ended <- s.Serve(ctx, l) }()
	a.say("pages     http://%s/", l.Addr())
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			a.notef("the pages ended: %v", err)
		}
	}), nil
}

func uiVerb(a *app) *cobra.Command {
	u := uiFlags{addr: "127.0.0.1:6006", flag: "addr"}
	var asJSON bool
	c := &cobra.Command{
		Use:   "ui PATH...",
		Short: "Show runs, sweeps and experiments in a browser, and replay decisions",
		Long: `ui serves pages about what it finds in folders, while it goes on and afterwards: runs with their curves and
configurations, runs laid over each other, sweeps, experiments, and replays of validation windows in which one sees the
cluster, the queue and at each decision the agent's probabilities or values beside what SJF would do. A PATH is the folder
of a run, of runs, of a sweep or of an experiment, or a log of decisions that any program has written (docs/live.md).

The first line on standard output is the address. The pages only read; the server may be killed and started again at any
time, and pages that are open go on. /metrics has the same figures for Prometheus. Nothing is loaded from elsewhere.

By default only this machine reaches the pages. Other addresses want --token-file; a browser then shows a form for the
token, and Prometheus sends the token as a bearer token. train, sweep, experiment run, eval and worker show the same
pages about their own work with --ui.`,
		Example: `  gymctl ui runs
  gymctl ui runs/mine runs/other --addr :8080
  gymctl ui decisions.jsonl
  gymctl ui runs --addr 0.0.0.0:6006 --token-file tokens`,
		Args: args(1, 1<<10, "one PATH or more"),
		RunE: func(c *cobra.Command, paths []string) error {
			for i := range paths {
				paths[i] = filepath.Clean(paths[i])
			}
			if err := pages.Check(paths); err != nil {
				return err
			}
			l, tokens, err := u.listen(a)
			if err != nil {
				return err
			}
			s := pages.New(pages.Options{Paths: paths, Tokens: tokens, Kernels: config.UseKernels, Version: about().Version})
			if asJSON {
				err = a.json(struct {
					Addr string `json:"addr"`
				}{l.Addr().String()})
			} else {
				_, err = fmt.Fprintf(a.stdout, "http://%s/\n", l.Addr())
			}
			if err != nil {
				_ = l.Close() // nobody knows the address
				return err
			}
			return s.Serve(c.Context(), l)
		},
	}
	f := c.Flags()
	f.StringVar(&u.addr, "addr", u.addr, "`HOST:PORT` to listen at; :PORT is this machine alone, port 0 picks a free one")
	f.StringVar(&u.tokenFile, "token-file", "", tokenHelp)
	f.BoolVar(&asJSON, "json", false, `print the address as {"addr":"…"}`)
	return c
}

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
