package research

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/lab/config"
	"clustergym/lab/rundir"
	"clustergym/lab/sweep"
	"clustergym/pages"
)

func sweepVerb(a *cli.App) *cobra.Command {
	var (
		file, resume, dir, kernels string
		workers                    int
		asJSON                     bool
		queue                      options.QueueFlags
		web                        options.UIFlags
	)
	c := &cobra.Command{
		Use:   "sweep",
		Short: "Search for settings: random draws, of which the better ones continue",
		Long: `sweep draws settings from a space around a run's configuration, trains them and ranks them by the validation
result of the best checkpoint of each, IQM over seeds. With halving, all trials are trained part of the way and only
the better ones continue (successive halving). A sweep is a YAML file:

  base: cartpole-ppo              # preset or file
  set: [train.steps=50000]        # changes for all trials
  space:
    ppo.lr: {min: 1e-4, max: 1e-2, log: true}
    ppo.gamma: {min: 0.95, max: 0.999}
    ppo.epochs: [4, 10, 20]
  trials: 16
  seeds: 2
  seed: 1                         # for the draws
  halving: {rungs: 3, keep: 2}    # a quarter of train.steps, a half, all; one of two continues

Its folder holds trials.jsonl, with one line for each trial on each rung, from which --resume continues, and the runs
in trial-N/seed-K. Ctrl-C saves and ends with exit code 130.

--listen lets workers on other machines train (gymctl worker; docs/guides/many-machines.md). The results are the same.`,
		Example: `  gymctl sweep -c sweep.yaml --dir runs/search
  gymctl sweep --resume runs/search
  gymctl sweep --resume runs/search --listen 0.0.0.0:7777 --token-file token
  gymctl eval --checkpoint runs/search/trial-3/seed-1`,
		Args: cli.Args(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := queue.Check(c, workers); err != nil {
				return err
			}
			ui := options.NewQueueProgress(a)
			opt := sweep.Options{Dir: dir, Workers: workers, Now: a.Now, Say: ui.Say}
			cfg, base, err := sweepConfig(c, file, resume, &opt)
			if err != nil {
				return err
			}
			if opt.Dir == "" {
				opt.Dir = rundir.Default(cfg.Name, a.Now())
			}
			if c.Flags().Changed("kernels") {
				if err := options.UseKernels(kernels); err != nil {
					return err
				}
				base.Kernels = kernels
			}
			if err := config.UseKernels(base.Kernels); err != nil { // before the queue tells workers which
				return err
			}
			closePages, err := web.Show(c.Context(), a, c, pages.Options{Paths: []string{opt.Dir}, Queue: queue.Status})
			if err != nil {
				return err
			}
			defer closePages()
			opt.Queue = queue.Opener(ui, filepath.Base(opt.Dir), opt.Dir, workers)
			r, err := sweep.Run(c.Context(), cfg, base, opt)
			if err = errors.Join(err, queue.Disputes()); err != nil {
				return err
			}
			return a.Show(asJSON, r, r.WriteTable)
		},
	}
	f := c.Flags()
	f.StringVarP(&file, "config", "c", "", "YAML `FILE` of the sweep")
	f.StringVar(&dir, "dir", "", "`DIR` of the sweep (default runs/NAME-TIME)")
	f.StringVar(&resume, "resume", "", "continue the sweep in `DIR`")
	f.IntVar(&workers, "workers", runtime.GOMAXPROCS(0), "`N` goroutines in total; affects only speed; 0 with --listen: none here")
	queue.Flags(c)
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	options.KernelsFlag(c, &kernels)
	web.Flags(c)
	cli.One(c, "config", "resume")
	cli.Rivals(c, "dir", "resume")
	cli.CompleteDir(c, "dir", "resume")
	options.Sections(c)
	return c
}

// sweepConfig returns the sweep and its base, from a file or from the folder of a sweep to resume.
func sweepConfig(c *cobra.Command, file, resume string, opt *sweep.Options) (cfg sweep.Config, base config.Config, err error) {
	if c.Flags().Changed("resume") {
		opt.Resume, opt.Dir = true, resume
		return sweep.Read(resume)
	}
	v, _, err := options.Load(file, "sweep")
	if err != nil {
		return cfg, base, err
	}
	cfg = *v.(*sweep.Config)
	name := cfg.Base
	if beside := filepath.Join(filepath.Dir(file), name); !filepath.IsAbs(name) {
		if st, err := os.Stat(beside); err == nil && st.Mode().IsRegular() {
			name = beside
		}
	}
	base, given, err := options.LoadRun(name)
	if err != nil {
		return cfg, base, err
	}
	return cfg, base, cfg.Fit(c.Context(), &base, given, opt.Say)
}
