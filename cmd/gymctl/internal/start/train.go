package start

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/distributed/ranks"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/lab/run"
	"clustergym/pages"
)

// trainOptions are the flags of train, and what follows from them.
type trainOptions struct {
	cfg     config.Config
	meeting *ranks.Config // nil for one process
	src     options.Source
	opt     run.TrainOptions
	resume  string
	seeds   int
	html    string
	weights options.Weights
	queue   options.QueueFlags
	group   rankFlags
	web     options.UIFlags
	track   mlflowFlags
}

func trainVerb(a *cli.App) *cobra.Command {
	o := &trainOptions{}
	c := &cobra.Command{
		Use:   "train",
		Short: "Train an agent, then compare it with the heuristics",
		Long: `train trains an agent to schedule a cluster, then prints a table that compares it with heuristics on windows of
the workload that it was not trained on.

Without arguments it runs the preset quickstart: PPO on a workload generated from the published statistics of the
Philly cluster, on 32 GPUs. Agent and rules do not know run times; they have forecasts from the jobs that have ended
(env.estimates: history). -c quickstart-exact shows them the run times. --trace trains on your own trace instead,
--cluster on another cluster; -c takes another preset (gymctl config list) or a YAML file, and --set changes single
keys of it. --env trains in another environment, by its own preset: gymctl envs lists them, and gymctl envs ID says
what --trace and --cluster mean there. Presets such as cartpole-ppo train on problems with known answers, which have
no workload: their agents are judged by the returns of 100 episodes.

With --trace or --cluster, sizes that you give neither by --set nor in a file of your own follow from the workload:
env.max_gpus is the largest gang that fits the cluster, env.window and env.warm give every part of the trace windows.

A run lives in a directory: config.yaml (everything that affects results), progress.jsonl, event files for
TensorBoard (with the evaluation, and all keys as hyper-parameters), checkpoints, best.json (the best checkpoint on the
validation windows) and eval/test.json. Ctrl-C saves and ends with exit code 130; --resume continues bit for bit. --workers
affects only speed.

--hold FILE gives the weights of gymctl tune to the teacher hold@slots, which the quick start imitates, and to the rival hold;
--index FILE likewise those of index, where jobs can be stopped (--set train.imitate=index@slots).

--html writes a page at the end: learning curves with the rivals as lines, paired differences with their intervals, and the
agent's schedule of a test window beside SJF's.

--ui shows the run in a browser while it trains, with replays of its decisions, and has /metrics for Prometheus
(docs/guides/dashboard.md).
--mlflow sends parameters and metrics to a tracking server of MLflow (docs/guides/train.md, "Looking at a run").

--rank R --world N --rendezvous HOST:PORT, or --ranks, makes this process one of N that train one agent together, a replica
each (--set ppo.replicas=N), on one machine or on many. Rank 0 keeps the run, whose bytes are those of one process. If a rank
is lost all end; --resume at all ranks goes on (docs/guides/train.md, "Over several machines").

--seeds N trains N runs side by side, on --workers goroutines in total, with consecutive seeds from --seed on. Their
runs share one folder, which --resume also accepts, and the table at the end combines them. With --listen, workers on
other machines train some of them (gymctl worker; docs/guides/many-machines.md); the run directories are the same,
byte for byte.`,
		Example: `  gymctl train
  gymctl train --trace jobs.csv.gz --cluster 4x8 --run-dir runs/mine
  gymctl train --agent ddqn --seed 2 --set train.steps=200000 --set env.reward=slowdown
  gymctl train --env QueueRank-v1 --trace jobs.csv --cluster pool:64 --set env.estimates=exact
  gymctl train --resume runs/mine
  gymctl train -c cartpole-ppo --seeds 5
  gymctl train -c cartpole-ppo --seeds 5 --listen 0.0.0.0:7777 --token-file token
  gymctl train --run-dir runs/mine --html runs/mine/page.html
  gymctl train --run-dir runs/mine --ui :6006 --mlflow http://127.0.0.1:5000`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(a, c) },
	}
	o.flags(c)
	return c
}

func (o *trainOptions) flags(c *cobra.Command) {
	f := c.Flags()
	o.src.Flags(c, "quickstart")
	agents := config.AgentNames()
	choose := func(agent *string, name, _, usage string) { cli.Choice(c, agent, name, usage, agents...) }
	options.LateFlag(&o.src.Late, choose, "agent", "", strings.Join(agents, ", "),
		func(cfg *config.Config) *string { return &cfg.Agent })
	options.LateFlag(&o.src.Late, f.Uint64Var, "seed", 1, "seed of everything drawn during training",
		func(cfg *config.Config) *uint64 { return &cfg.Seed })
	f.StringVar(&o.opt.RunDir, "run-dir", "", "`DIR` of the run (default runs/NAME-TIME)")
	f.StringVar(&o.resume, "resume", "", "continue the run in `DIR`")
	f.BoolVar(&o.opt.Continue, "continue", false,
		"continue the run in --run-dir if there is one, else begin it: the same command for launchers that start it again")
	f.IntVar(&o.seeds, "seeds", 0, "train `N` runs side by side, with consecutive seeds from --seed on")
	o.queue.Flags(c)
	o.opt.Tags = "sb3"
	cli.Choice(c, &o.opt.Tags, "tags", "names in TensorBoard: sb3 or cleanrl", "sb3", "cleanrl")
	f.BoolVar(&o.opt.NoEval, "no-eval", false, "skip the comparison at the end")
	o.weights.Flags(f)
	o.group.flags(c)
	options.HtmlFlag(f, &o.html)
	o.web.Flags(c)
	o.track.flags(c)
	f.Bool("json", false, "print one JSON document: the last line of progress, the checkpoint and the comparison")
	cli.Apart(c, []string{"seeds", "listen"}, ranksOnly...)
	cli.Apart(c, []string{"resume"}, "config", "env", "trace", "format", "columns", "limit", "sort",
		"accept-left-out", "cluster", "estimates", "agent", "seed", "run-dir", "hold", "index", "continue")
	cli.Needs(c, []string{"run-dir"}, "continue")
	cli.Filled(c, "resume", "run-dir")
	cli.CompleteDir(c, "run-dir", "resume")
	cli.Least(c, 1, "seeds")
	options.Sections(c)
}

// complete reads the flags that say where the training takes place.
func (o *trainOptions) complete(a *cli.App, c *cobra.Command) (err error) {
	o.opt.Now, o.opt.Workers = a.Now, o.queue.Workers
	if options.Changed(c, ranksOnly...) != "" {
		o.group.nats, o.queue.Listen, o.queue.URL = o.queue.URL, "", "" // --queue gives out ranks, not tasks
		if o.opt.Workers < 1 {
			return fault.Mistakef("--workers: got %d, want 1 or more", o.opt.Workers)
		}
	} else if err := o.queue.Check(c); err != nil {
		return err
	}
	o.meeting, err = o.group.read(c, a, os.Getenv)
	return err
}

// prepare reads the configuration and what belongs to it, and reports mistakes in them.
func (o *trainOptions) prepare(c *cobra.Command) (err error) {
	if o.cfg, err = o.src.TrainConfig(c, o.resume, &o.opt); err != nil {
		return err
	}
	players := o.cfg.Policies()
	if o.cfg.Train.Imitate != "" {
		players = append(players, o.cfg.Train.Imitate)
	}
	if err := o.weights.Read(c, players, &o.cfg.Eval.Hold, &o.cfg.Eval.Index); err != nil {
		return err
	}
	if o.seeds, err = seedsOf(c, o.seeds, &o.opt); err != nil {
		return err
	}
	if o.meeting != nil {
		if o.seeds > 0 {
			return fault.Mistakef("--resume %s: it holds several seeds, each a training of its own, which ranks do not share",
				o.opt.RunDir)
		}
		if err := run.CheckRanks(&o.cfg, o.meeting.World); err != nil {
			return err
		}
	}
	if o.seeds == 0 && o.queue.Given() {
		return fault.Mistakef("--listen and --queue go with --seeds N: workers train whole runs")
	}
	return options.CheckPage(o.html, o.opt.RunDir)
}

// run trains, as one process or as a rank, and prints the result.
func (o *trainOptions) run(a *cli.App, c *cobra.Command) (err error) {
	if err := o.complete(a, c); err != nil {
		return err
	}
	// What ranks cannot do, or cannot read, is refused before the others are waited for. What rank 0 alone has, as the
	// folder of a run to resume, it tells the others.
	early := o.meeting == nil || o.resume == ""
	if early {
		if err := o.prepare(c); err != nil {
			return err
		}
	}
	follows := false
	meet := func() (err error) {
		if o.opt.Ranks, err = o.group.join(c, a, *o.meeting); err == nil {
			follows = o.opt.Ranks.Rank() > 0
		}
		return err
	}
	defer func() {
		if o.opt.Ranks != nil {
			o.opt.Ranks.Close(err)
		}
	}()
	if !early {
		if err := meet(); err != nil {
			return err
		}
		if follows {
			return follow(c, a, &o.src, config.Config{}, o.resume, &o.opt)
		}
		if err := o.prepare(c); err != nil {
			return err
		}
	}
	ui := options.NewProgress(a, o.cfg.Train.Steps*int64(max(1, o.seeds)))
	o.opt.Say, o.opt.Tick, o.opt.Log, o.opt.Best, o.opt.Game = ui.Say, ui.Tick, ui.Log, ui.Best, ui.Game
	if !o.opt.Resume {
		if o.opt.Scenario, o.opt.Chosen, err = o.src.Fit(c, &o.cfg); err != nil {
			return err
		}
		o.opt.Chosen = append(o.src.Adapted, o.opt.Chosen...)
	}
	o.opt.Changes = o.src.Set
	if early && o.meeting != nil {
		if err := o.cfg.Validate(); err != nil {
			return &fault.Mistake{Err: err}
		}
		if err := meet(); err != nil {
			return err
		}
	}
	if follows {
		return follow(c, a, &o.src, o.cfg, "", &o.opt)
	}
	if o.opt.Continue {
		if o.opt.Resume, err = run.Begun(o.opt.RunDir, o.seeds); err != nil {
			return err
		}
	}
	closePages, err := o.web.Show(c.Context(), a, c, pages.Options{Paths: []string{o.opt.RunDir}, Queue: o.queue.Status})
	if err != nil {
		return err
	}
	defer closePages()
	sent, err := o.track.start(c, a, ui, o.cfg, o.seeds, o.opt.RunDir)
	if err != nil {
		return err
	}
	defer func() { sent(err) }()
	return o.train(a, c, ui)
}

// train trains one run, or one for each seed, and prints the result.
func (o *trainOptions) train(a *cli.App, c *cobra.Command, ui *options.Progress) error {
	if o.seeds > 0 {
		if err := config.UseKernels(o.cfg.Kernels); err != nil { // before the queue tells workers which
			return err
		}
		line := &options.QueueProgress{A: a, Line: ui.Status}
		if o.opt.Queue = o.queue.Opener(line, filepath.Base(o.opt.RunDir), o.opt.RunDir); o.opt.Queue != nil {
			o.opt.Tick = nil // the queue shows the progress of all machines
		}
		report, err := run.TrainSeeds(c.Context(), o.cfg, o.seeds, o.opt)
		ui.Clear()
		if err = o.queue.Disputed(err); err != nil {
			return err
		}
		err = a.Show(c, report, report.WriteTable)
		if err != nil || o.html == "" {
			return err
		}
		return options.WritePage(c.Context(), a, o.html, pageOfSeeds(o.cfg, report, &o.opt))
	}
	result, err := run.Train(c.Context(), o.cfg, o.opt)
	ui.Clear()
	if err != nil {
		return err
	}
	err = a.Show(c, result, func(io.Writer) error { return trained(a, result) })
	if err != nil || o.html == "" {
		return err
	}
	return options.WritePage(c.Context(), a, o.html, pageOf(o.cfg, result, &o.opt))
}

// follow is the training at a rank other than 0, which keeps no run and says little.
func follow(c *cobra.Command, a *cli.App, src *options.Source, cfg config.Config, resume string,
	opt *run.TrainOptions) error {
	if resume != "" {
		opt.Resume, opt.RunDir = true, resume
	}
	opt.Changes = src.Set
	opt.Say, opt.Tick, opt.Log, opt.Best, opt.Game = a.Say, nil, nil, nil, nil
	r, err := run.Train(c.Context(), cfg, *opt)
	if err == nil {
		a.Say("rank      %d of %d has taken part in %d steps", opt.Ranks.Rank(), opt.Ranks.World(), r.Step)
	}
	return err
}

// trained prints the result of a run.
func trained(a *cli.App, r *run.TrainResult) error {
	if r.Eval == nil {
		a.Printf("checkpoint %s\n", r.Checkpoint)
		return nil
	}
	a.Printf("\n")
	if err := r.Eval.WriteTable(a.People()); err != nil {
		return err
	}
	a.Printf("\nThe agent is %s, the best checkpoint of the validations.\n", r.Checkpoint)
	return nil
}

// seedsOf returns the number of seeds to train side by side, 0 = a single run. A folder that is resumed has its own
// number.
func seedsOf(c *cobra.Command, seeds int, opt *run.TrainOptions) (int, error) {
	given := c.Flags().Changed("seeds")
	if !opt.Resume {
		return seeds, nil
	}
	had, err := run.SeedsOf(opt.RunDir)
	if err == nil && given && seeds != had {
		if had == 0 {
			return 0, fault.Mistakef("--seeds: %s holds a single run", opt.RunDir)
		}
		return 0, fault.Mistakef("--seeds: got %d, want the %d that %s began with", seeds, had, opt.RunDir)
	}
	return had, err
}
