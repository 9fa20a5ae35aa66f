package look

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/lab/config"
	"clustergym/pages"
)

func uiVerb(a *cli.App) *cobra.Command {
	u := options.UIFlags{Addr: "127.0.0.1:6006", Flag: "addr"}
	c := &cobra.Command{
		Use:   "ui PATH...",
		Short: "Show runs, sweeps and experiments in a browser, and replay decisions",
		Long: `ui serves pages about what it finds in folders, while it goes on and afterwards: runs with their curves and
configurations, runs laid over each other, sweeps, experiments, and replays of validation windows in which one sees the
cluster, the queue and at each decision the agent's probabilities or values beside what SJF would do. A PATH is the folder
of a run, of runs, of a sweep or of an experiment, or a log of decisions that any program has written (docs/guides/dashboard.md).

The first line on standard output is the address. The pages only read; the server may be killed and started again at any
time, and pages that are open go on. /metrics has the same figures for Prometheus. Nothing is loaded from elsewhere.

By default only this machine reaches the pages. Other addresses want --token-file; a browser then shows a form for the
token, and Prometheus sends the token as a bearer token. train, sweep, experiment run, eval and worker show the same
pages about their own work with --ui.`,
		Example: `  gymctl ui runs
  gymctl ui runs/mine runs/other --addr :8080
  gymctl ui decisions.jsonl
  gymctl ui runs --addr 0.0.0.0:6006 --token-file tokens`,
		Args: cli.Args(1, 1<<10, "one PATH or more"),
		RunE: func(c *cobra.Command, paths []string) error {
			for i := range paths {
				paths[i] = filepath.Clean(paths[i])
			}
			if err := pages.Check(paths); err != nil {
				return err
			}
			l, tokens, err := u.Listen(a)
			if err != nil {
				return err
			}
			s := pages.New(pages.Options{Paths: paths, Tokens: tokens, Kernels: config.UseKernels, Version: cli.About().Version})
			err = a.Show(c, cli.Keyed{"addr": l.Addr().String()}, func(io.Writer) error {
				_, err := fmt.Fprintf(a.Stdout, "http://%s/\n", l.Addr())
				return err
			})
			if err != nil {
				_ = l.Close() // nobody knows the address
				return err
			}
			return s.Serve(c.Context(), l)
		},
	}
	f := c.Flags()
	f.StringVar(&u.Addr, "addr", u.Addr, "`HOST:PORT` to listen at; :PORT is this machine alone, port 0 picks a free one")
	f.StringVar(&u.TokenFile, "token-file", "", options.TokenHelp)
	f.Bool("json", false, `print the address as {"addr":"…"}`)
	return c
}
