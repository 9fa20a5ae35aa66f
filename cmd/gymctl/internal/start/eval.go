package start

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/distributed/workqueue"
	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/report"
	"clustergym/lab/run"
	"clustergym/lab/rundir"
	"clustergym/lab/stream"
	"clustergym/lab/workload"
	"clustergym/pages"
	"clustergym/pages/runpage"
)

// evalOptions are the flags of eval, and what follows from them.
type evalOptions struct {
	cfg     config.Config
	rungs   arena.Rungs // nil for the estimates of cfg
	src     options.Source
	opt     arena.EvalOptions
	late    options.Late
	budget  rollout.Budget
	weights options.Weights
	files   options.PolicyFiles
	html    string
	atEOF   bool
	onRungs []string
	queue   options.QueueFlags
	models  options.ModelFlags
	web     options.UIFlags

	door     *options.Door
	external arena.External
}

func evalVerb(a *cli.App) *cobra.Command {
	o := &evalOptions{door: options.NewDoor("")}
	o.door.Cfg.DrainTimeout = options.EvalDrain
	c := &cobra.Command{
		Use:   "eval",
		Short: "Compare checkpoints and heuristics on the same held-out jobs",
		Long: `eval plays checkpoints and heuristics on the same jobs and compares them: mean JCT with its 95 % interval, and
the paired difference from the agent, or from the first policy, with a verdict. A verdict needs ten independent
units and holds for all rivals together (Holm).

Policies play streams of jobs: unbroken arrivals on a cluster that is empty at first. The jobs of the warm-up do not
count, and arrivals continue until the counted jobs have ended. Of a generated workload there are 16 independent draws
of the generator (--draws, eval.streams.draws) with 2,000 counted jobs each (--jobs, eval.streams.jobs) after 2,000 of
warm-up or more (eval.streams.warm). Of a recorded trace there is one stream, its test part, warmed up by the part
before it and cut into blocks of time. The table marks policies whose backlog grows.

--windows N plays at most N short windows of the test part in place of streams (eval.protocol: windows): their cluster
is without a queue at first and empty at the end. That is a transient, and is there for comparisons with papers that
measure it. It is the default in environments of version 1. The table has the IQM over windows with 95 % bootstrap
intervals, paired differences and wins. Where the configuration has eval.whole: true, each policy then runs once over
the whole test part.

Workload, cluster and environment are those of the first checkpoint's run, or of a configuration (-c, default
quickstart); --trace and --cluster replace them. Without a checkpoint, sizes that are not given follow from them, as in
train. --checkpoint takes a run directory (its best checkpoint, else its newest) or a checkpoint.

Environments without the cluster simulator are played for --episodes episodes instead. DAGPlace-v1 and WorkerPlace-v1
have planners and rules of their own (gymctl envs ID); for problems such as CartPole-v1 the only policy to compare with
is random. A folder of train --seeds counts as all runs in it.

Policies are ` + config.FormsOf(envs.Find(jobselect.ID)) + `.
An order without an admission uses strict, or skip if it preempts. rollout:POLICY looks ahead from POLICY's choice
by simulation (docs/guides/look-ahead.md); --budget, or eval.rollout.budget, says how much a decision may cost.
hindsight:POLICY searches whole windows and so cannot play streams.

--rungs plays everything once with each of several estimates of run times (none, trace, history, gbdt, gbdt:FILE,
exact, noisy:SIGMA) on the same jobs, and prints one table: what each policy reaches by what is known of run times, and
how much it loses against itself with exact ones, or else with the last that are named. Policies that rank by run times
are absent where there are none. Observations of checkpoints keep their shape. The run over the whole test part is left
out.

--policy-onnx plays an ONNX model, as Stable-Baselines3, PyTorch and gymctl ckpt export write them
(docs/reference/onnx.md). It must fit the environment's observations and actions. --name is its name in the table; the
first --name belongs to the first model.

--html writes a page: how the checkpoints' runs learned next to their rivals, paired differences with their intervals,
and the schedules of the first counted jobs, or of a test window, under the first checkpoint and SJF.

Policies of other programs take part over the bridge: --serve opens a server during the evaluation, and each --external
names a policy. Its program opens environment eval with the argument policy=NAME (Python: clustergym.evaluate) and
plays as many episodes as meta.windows says; each reset begins the next stream or window, whatever its seed. An episode
on a stream may have thousands of decisions, and its program sees neither which jobs count nor how many come. gymctl
measures the results. A policy that finishes no stream or window for --external-timeout, or leaves before it has played
all, gets a row "missing", and the exit code is 1.

--listen lets workers on other machines play games (gymctl worker; docs/guides/many-machines.md), except those of
policies whose budget is a time. The results are the same.`,
		Example: `  gymctl eval --checkpoint runs/mine --policies fifo+skip,sjf+skip,sjf@slots
  gymctl eval --policies fifo,sjf+skip,hold --draws 32 --json
  gymctl eval --trace jobs.csv --cluster 8x8 --policies fifo+skip,multifactor+easy,sjf+skip
  gymctl eval --policies sjf+skip,rollout:sjf+skip,rollout:sjf@slots --budget 64 --windows 4
  gymctl eval --checkpoint runs/mine --trace other.csv --cluster topdrl-2x4x4
  gymctl eval --policies sjf@slots --serve 127.0.0.1:8765 --external sb3 --external tianshou
  gymctl eval --checkpoint runs/mine --rungs none,history,exact
  gymctl eval --policy-onnx policy.onnx --name mine --policies fifo+skip,sjf+skip
  gymctl eval --checkpoint runs/cartpole --policies random --episodes 1000`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(a, c) },
	}
	o.flags(c)
	return c
}

func (o *evalOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.opt.Checkpoints, "checkpoint", nil, "run or checkpoint `DIR` (repeatable)")
	o.models.Flags(c)
	options.LateFlag(&o.late, options.PolicyListVar(f), "policies", nil, "policies to compare with, joined by commas: `POLICY`",
		func(cfg *config.Config) *[]string { return &cfg.Eval.Policies })
	o.files.Flag(c, "policies")
	options.BudgetFlag(f, &o.budget)
	o.weights.Flags(f)
	options.LateFlag(&o.late, f.IntVar, "draws", stream.DefaultDraws, "`N` draws of a generated workload",
		func(cfg *config.Config) *int { return &cfg.Eval.Streams.Draws })
	options.LateFlag(&o.late, f.IntVar, "jobs", stream.DefaultJobs, "`N` jobs that count in each draw",
		func(cfg *config.Config) *int { return &cfg.Eval.Streams.Jobs })
	options.LateFlag(&o.late, f.IntVar, "windows", 32, "at most `N` test windows in place of streams",
		func(cfg *config.Config) *int { return &cfg.Eval.Windows })
	options.LateFlag(&o.late, f.IntVar, "episodes", 100, "`N` test episodes, for environments without a workload",
		func(cfg *config.Config) *int { return &cfg.Eval.Episodes })
	options.LateFlag(&o.late, f.IntVar, "seeds", 1, "play random policies `N` times",
		func(cfg *config.Config) *int { return &cfg.Eval.Seeds })
	f.Bool("no-whole", false, "skip the run over the whole test part, where the configuration has one (eval.whole)")
	f.StringSliceVar(&o.onRungs, "rungs", nil,
		"compare with each of these estimates of run times, joined by commas: `ESTIMATES`, as none,history,exact")
	options.HtmlFlag(f, &o.html)
	o.web.Flags(c)
	cli.JSONFlag(c)
	f.BoolVar(&o.atEOF, "until-eof", false,
		"end when standard input ends, for a program that starts this one and may be killed")
	o.src.Flags(c, "the first checkpoint's, else quickstart")
	o.door.Flags(c)
	o.queue.Flags(c)
	f.StringArrayVar(&o.external.Names, "external", nil,
		"wait for a policy called `NAME` to play through --serve (repeatable)")
	cli.CompleteList(c, "policies", options.RivalNames)
	cli.CompleteList(c, "rungs", func(*cobra.Command, string) []string { return options.EstimateNames() })
	cli.CompleteDir(c, "checkpoint")
	f.DurationVar(&o.external.Timeout, "external-timeout", 10*time.Minute,
		"give up on policies of --external when none of them has finished a stream or window for this long")
	options.ExternalRules(c)
	cli.Needs(c, []string{"checkpoint"}, "ui")
	cli.Apart(c, []string{"listen", "queue"}, "serve", "policy-onnx")
	cli.Apart(c, []string{"rungs"}, "serve", "estimates")
	cli.Apart(c, []string{"checkpoint"}, "env")
	cli.Apart(c, []string{"windows"}, "draws", "jobs")
	options.Sections(c)
}

// complete reads the configuration and what belongs to it, and reports mistakes in them.
func (o *evalOptions) complete(c *cobra.Command) (err error) {
	if err := o.queue.Check(c); err != nil {
		return err
	}
	o.opt.Workers = o.queue.Workers
	if o.opt.Checkpoints, err = runsOf(o.opt.Checkpoints); err != nil {
		return err
	}
	if o.opt.Models, err = o.models.Read(); err != nil {
		return err
	}
	if o.cfg, err = o.src.EvalConfig(c, o.opt.Checkpoints, o.opt.Models); err != nil {
		return err
	}
	o.late.Apply(c, &o.cfg)
	if o.files.Given() {
		if o.cfg.Eval.Policies, err = o.files.Read(slices.Clone(o.cfg.Policies())); err != nil {
			return err
		}
	}
	if err := o.protocol(c); err != nil {
		return err
	}
	if c.Flags().Changed("no-whole") {
		o.cfg.Eval.Whole = false
	}
	if err := options.BudgetOf(c, o.budget, o.cfg.Policies(), &o.cfg.Eval.Rollout); err != nil {
		return err
	}
	if err := o.weights.Read(c, o.cfg.Policies(), &o.cfg.Eval.Hold, &o.cfg.Eval.Index); err != nil {
		return err
	}
	if o.rungs, err = rungsOf(c, o.onRungs, &o.cfg); err != nil {
		return err
	}
	if err := o.cfg.Validate(); err != nil {
		flags := map[string]string{
			"eval.policies": "policies", "eval.windows": "windows", "eval.seeds": "seeds", "eval.episodes": "episodes",
			"eval.whole": "no-whole", "env.estimates": "estimates", "eval.streams.draws": "draws", "eval.streams.jobs": "jobs",
		}
		if o.rungs != nil {
			flags["env.estimates"] = "rungs"
		}
		return cli.GivenFaults(c, err, flags)
	}
	return nil
}

// protocol sets what is played to what the flags are about: windows, or streams.
func (o *evalOptions) protocol(c *cobra.Command) error {
	given, windows := options.Changed(c, "draws", "jobs"), c.Flags().Changed("windows")
	switch {
	case given == "" && !windows || windows && !o.cfg.Simulated():
		return nil
	case windows:
		o.cfg.Eval.Protocol = config.OnWindows
		return nil
	case !o.cfg.Simulated():
		return fault.Mistakef("--%s is for draws of a workload: %s has none; use --episodes", given, o.cfg.Env.ID)
	case o.cfg.Trace.File != "":
		return fault.Mistakef("--%s is for draws of a generator: %s is recorded, and its test part is the one stream that "+
			"is played", given, o.cfg.Trace.File)
	}
	o.cfg.Eval.Protocol = config.OnStreams
	return nil
}

// run plays all policies, and prints the comparison.
func (o *evalOptions) run(a *cli.App, c *cobra.Command) (err error) {
	if err := o.complete(c); err != nil {
		return err
	}
	if o.queue.Given() {
		if !o.cfg.Simulated() {
			return fault.Mistakef("--listen and --queue share out windows of a workload: %s has none", o.cfg.Env.ID)
		}
		if err := config.UseKernels(o.cfg.Kernels); err != nil { // before the queue tells workers which
			return err
		}
		o.opt.Queue = func(ctx context.Context, dir string) (*workqueue.Coordinator, error) {
			return o.queue.Opener(options.NewQueueProgress(a), "eval", dir)(ctx)
		}
	} else if err := options.Join(a, c, o.door, &o.external, &o.opt); err != nil {
		return err
	}
	if err := options.CheckPage(o.html, ""); err != nil {
		return err
	}
	ui := options.NewProgress(a, 0)
	var chosen []string
	if len(o.opt.Checkpoints) == 0 {
		if o.opt.Scenario, chosen, err = o.src.Fit(c, &o.cfg); err != nil {
			return err
		}
	}
	if o.opt.Queue == nil { // which shows the progress of all machines
		o.opt.Game = ui.Game
	}
	ctx, stop := options.UntilEnd(c.Context(), o.atEOF)
	defer stop()
	closePages, err := o.web.Show(ctx, a, c, pages.Options{Paths: runsIn(o.opt.Checkpoints), Queue: o.queue.Status})
	if err != nil {
		return err
	}
	defer closePages()
	var r arena.Comparison
	if o.rungs == nil {
		r, err = arena.Compare(ctx, o.cfg, o.opt)
	} else {
		r, err = arena.CompareRungs(ctx, o.cfg, o.rungs, o.opt)
	}
	ui.Clear()
	if err != nil && ctx.Err() != nil && o.queue.Given() {
		return fmt.Errorf("%w: %w", fault.ErrInterrupted, err)
	}
	if err = o.queue.Disputed(err); err != nil {
		return err
	}
	if left := leftOut(r); left != nil {
		chosen = append(chosen, workload.LeftOut(left, o.cfg.Cluster, "env.max_gpus")...)
	}
	a.Notes(chosen)
	err = a.Show(c, r, r.WriteTable)
	if err == nil && o.html != "" {
		err = options.WritePage(ctx, a, o.html, &runpage.Page{
			Config: o.cfg, Evaluated: o.opt, Runs: runsIn(o.opt.Checkpoints), Sheets: r.Sheets(), Results: runpage.ResultsOf(r,
				o.cfg.Estimates()),
		})
	}
	if err != nil {
		return err
	}
	if o.web.Addr != "" && !o.atEOF {
		a.Notef("the pages stay until Ctrl-C")
		<-ctx.Done()
	}
	return absent(r)
}

// rungsOf reads --rungs, nil if it is not given, and sets cfg to the estimates with which it is checked.
func rungsOf(c *cobra.Command, list []string, cfg *config.Config) (arena.Rungs, error) {
	if !c.Flags().Changed("rungs") {
		return nil, nil
	}
	rungs, err := arena.ParseRungs(list)
	if err != nil {
		return nil, fault.Mistakef("--rungs: %w", err)
	}
	*cfg, err = rungs.Base(*cfg)
	return rungs, err
}

// leftOut returns the jobs that the environment of a comparison does not take, nil for none.
func leftOut(c arena.Comparison) *sched.LeftOut {
	switch r := c.(type) {
	case *report.Report:
		return r.LeftOut
	case *report.StreamReport:
		return r.LeftOut
	case *report.StreamLadder:
		return r.LeftOut
	case *report.Ladder:
		return r.LeftOut
	}
	return nil
}

// absent returns an error that names the policies of --external which did not play everything.
func absent(c arena.Comparison) error {
	var names []string
	add := func(name, missing string) {
		if missing != "" {
			names = append(names, fmt.Sprintf("%s (%s)", name, missing))
		}
	}
	unit := "windows"
	switch r := c.(type) {
	case *report.Report:
		for i := range r.Policies {
			add(r.Policies[i].Name, r.Policies[i].Missing)
		}
	case *report.StreamReport:
		unit = "streams"
		for i := range r.Policies {
			add(r.Policies[i].Name, r.Policies[i].Missing)
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("external policies are missing: %s; each must play all %s within --external-timeout",
		strings.Join(names, ", "), unit)
}

// runsOf returns checkpoints with the runs in folders of several seeds in place of these.
func runsOf(checkpoints []string) (all []string, err error) {
	for _, dir := range checkpoints {
		runs, err := run.RunsOf(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, runs...)
	}
	return all, nil
}

// runsIn returns the run directories of checkpoints, each once.
func runsIn(checkpoints []string) []string {
	var all []string
	for _, dir := range checkpoints {
		if _, run, err := rundir.CheckpointDir(dir); err == nil && !slices.Contains(all, run) {
			all = append(all, run)
		}
	}
	return all
}
