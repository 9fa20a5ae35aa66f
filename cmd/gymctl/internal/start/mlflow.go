package start

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/lab/mlflow"
	"clustergym/lab/run"
	"clustergym/lab/rundir"
)

// mlflowFlags are the flags of a training that sends what it reports to a tracking server.
type mlflowFlags struct{ url, experiment string }

func (m *mlflowFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&m.url, "mlflow", "",
		"send parameters and metrics to the MLflow tracking server at `URL` (docs/guides/train.md); the training never "+
			"waits for it")
	f.StringVar(&m.experiment, "mlflow-experiment", "",
		"`NAME` of the experiment there (default the configuration's name)")
	cli.Filled(c, "mlflow")
	cli.Needs(c, []string{"mlflow"}, "mlflow-experiment")
}

// start sends the runs that are to be trained, if --mlflow was given: one, or one for each seed. done is called with
// the training's error.
func (m *mlflowFlags) start(c *cobra.Command, a *cli.App, ui *options.Progress, cfg config.Config, seeds int,
	dir string) (done func(err error), err error) {
	if m.url == "" {
		return func(error) {}, nil
	}
	if m.experiment == "" {
		m.experiment = cfg.Name
	}
	opt := mlflow.Options{
		URL: m.url, Token: os.Getenv("MLFLOW_TRACKING_TOKEN"), Experiment: m.experiment, Say: ui.Say, Now: a.Now,
		Tags: map[string]string{"gymctl.version": cli.About().Version, "gymctl.env": cfg.Env.ID, "gymctl.agent": cfg.Agent},
	}
	var all []*mlflow.Sender
	begin := func(cfg config.Config, dir, name string) error {
		o := opt
		o.RunDir, o.Name = dir, name
		params, err := rundir.Params(&cfg)
		if err != nil {
			return err
		}
		for _, p := range params {
			o.Params = append(o.Params, [2]string{p.Name, rundir.ParamText(p)})
		}
		s, err := mlflow.Start(o)
		if err == nil {
			all = append(all, s)
		}
		return err
	}
	name := filepath.Base(dir)
	if seeds == 0 {
		err = begin(cfg, dir, name)
	}
	for i := range seeds {
		one := cfg
		one.Seed = cfg.Seed + uint64(i)
		path := run.SeedDir(dir, one.Seed)
		if err = errors.Join(err, begin(one, path, name+"/"+filepath.Base(path))); err != nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return func(err error) {
		status := mlflow.Finished
		switch {
		case errors.Is(err, fault.ErrInterrupted) || errors.Is(err, context.Canceled):
			status = mlflow.Killed
		case err != nil:
			status = mlflow.Failed
		}
		var wait sync.WaitGroup
		for _, s := range all {
			wait.Go(func() { s.Close(status) })
		}
		wait.Wait()
	}, nil
}
