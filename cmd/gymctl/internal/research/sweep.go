package research

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/lab/config"
	"clustergym/lab/rundir"
	"clustergym/lab/sweep"
	"clustergym/pages"
)

// sweepOptions are the flags of sweep.
type sweepOptions struct {
	opt                   sweep.Options
	file, resume, kernels string
	queue                 options.QueueFlags
	web                   options.UIFlags
}

func sweepVerb(a *cli.App) *cobra.Command {
	o := &sweepOptions{}
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
		RunE: func(c *cobra.Command, _ []string) error { return o.run(a, c) },
	}
	f := c.Flags()
	f.StringVarP(&o.file, "config", "c", "", "YAML `FILE` of the sweep")
	f.StringVar(&o.opt.Dir, "dir", "", "`DIR` of the sweep (default runs/NAME-TIME)")
	f.StringVar(&o.resume, "resume", "", "continue the sweep in `DIR`")
	o.queue.Flags(c)
	cli.JSONFlag(c)
	options.KernelsFlag(c, &o.kernels)
	o.web.Flags(c)
	cli.One(c, "config", "resume")
	c.MarkFlagsMutuallyExclusive("dir", "resume")
	cli.CompleteDir(c, "dir", "resume")
	options.Sections(c)
	return c
}

func (o *sweepOptions) run(a *cli.App, c *cobra.Command) error {
	if err := o.queue.Check(c); err != nil {
		return err
	}
	ui, opt := options.NewQueueProgress(a), &o.opt
	opt.Workers, opt.Now, opt.Say = o.queue.Workers, a.Now, ui.Say
	cfg, base, err := o.config(c)
	if err != nil {
		return err
	}
	opt.Dir = cmp.Or(opt.Dir, rundir.Default(cfg.Name, a.Now()))
	if c.Flags().Changed("kernels") {
		base.Kernels = o.kernels
	}
	if err := config.UseKernels(base.Kernels); err != nil { // before the queue tells workers which
		return err
	}
	closePages, err := o.web.Show(c.Context(), a, c, pages.Options{Paths: []string{opt.Dir}, Queue: o.queue.Status})
	if err != nil {
		return err
	}
	defer closePages()
	opt.Queue = o.queue.Opener(ui, filepath.Base(opt.Dir), opt.Dir)
	r, err := sweep.Run(c.Context(), cfg, base, *opt)
	if err = o.queue.Disputed(err); err != nil {
		return err
	}
	return a.Show(c, r, r.WriteTable)
}

// config returns the sweep and its base, from a file or from the folder of a sweep to resume.
func (o *sweepOptions) config(c *cobra.Command) (cfg sweep.Config, base config.Config, err error) {
	if c.Flags().Changed("resume") {
		o.opt.Resume, o.opt.Dir = true, o.resume
		return sweep.Read(o.resume)
	}
	v, _, err := options.Load(o.file, "sweep")
	if err != nil {
		return cfg, base, err
	}
	cfg = *v.(*sweep.Config)
	name := cfg.Base
	if beside := filepath.Join(filepath.Dir(o.file), name); !filepath.IsAbs(name) {
		if st, err := os.Stat(beside); err == nil && st.Mode().IsRegular() {
			name = beside
		}
	}
	base, given, err := options.LoadRun(name)
	if err != nil {
		return cfg, base, err
	}
	return cfg, base, cfg.Fit(c.Context(), &base, given, o.opt.Say)
}
