package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/workload"
	"clustergym/live"
	"clustergym/live/demo"
	"clustergym/ops/steer"
	"clustergym/ops/steer/mirror"
	"clustergym/ops/twin"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// forecastFlags are the flags of forecasts, live and of the past.
type forecastFlags struct {
	cfg                                         twin.Config
	scheduler, placement, arrivals, recalibrate string
}

func (g *forecastFlags) add(c *cobra.Command) {
	g.cfg = twin.DefaultConfig()
	f := c.Flags()
	f.StringVar(&g.scheduler, "scheduler", "",
		"`RULE` that stands for the cluster's own scheduler (default fifo+easy; of Kubernetes fifo+skip)")
	f.StringVar(&g.placement, "placement", "consolidate-best",
		"where gangs are put: on one node or whole nodes, or first-fit, …")
	f.TextVar(&g.cfg.Predictor, "estimates", sim.Estimates{Mode: sim.EstimateHistory},
		"`ESTIMATES` from which run times are drawn: history, gbdt, gbdt:FILE or trace (time limits)")
	f.DurationVar(&g.cfg.Limit, "limit", g.cfg.Limit, "stands for the time limit of jobs that have none")
	cli.Choice(c, &g.arrivals, "arrivals",
		"jobs that come meanwhile: none, or history, those of earlier days at the same hour of the week "+
			"(default history where there are two days of it)",
		"none", "history")
	f.IntVar(&g.cfg.Draws, "draws", g.cfg.Draws, "`N` futures that are played")
	f.Float64Var(&g.cfg.Alike, "alike", g.cfg.Alike,
		"share of what decides over a run time that jobs of one user and name have in common")
	f.DurationVar(&g.cfg.Horizon, "horizon", g.cfg.Horizon, "how far a future is played")
	f.StringVar(&g.recalibrate, "recalibrate", "",
		"`MEDIAN,SPREAD`: factors by which forecasts are moved, as check finds them")
	f.Uint64Var(&g.cfg.Seed, "seed", g.cfg.Seed, "seed of the draws")
	options.WorkersFlag(c, &g.cfg.Workers)
	cli.Complete(c, "estimates", "history", "gbdt", "trace")
	cli.Complete(c, "placement", cluster.PlacementNames()...)
}

// read completes the configuration. kind is that of the cluster.
func (g *forecastFlags) read(kind string, history bool) (why string, err error) {
	g.cfg.Able = g.arrivals == "" && history
	g.cfg.Arrives = g.cfg.Able || g.arrivals == "history"
	if g.scheduler == "" {
		g.cfg.Scheduler, why = twin.Default(kind)
	} else if g.cfg.Scheduler, err = twin.ParseModel(g.scheduler, sim.Estimates{Mode: sim.EstimateTrace}); err != nil {
		return "", fmt.Errorf("--scheduler: %w", err)
	}
	if g.cfg.Scheduler, err = g.cfg.Scheduler.Place(g.placement); err != nil {
		return "", err
	}
	if m := g.cfg.Predictor.Mode; m != sim.EstimateHistory && m != sim.EstimateGBDT && m != sim.EstimateTrace {
		return "",
			fault.Mistakef("--estimates: got %q, which a cluster does not tell; want history, gbdt, gbdt:FILE or trace",
				g.cfg.Predictor)
	}
	if g.recalibrate != "" {
		if g.cfg.Stretch, err = twin.ParseStretch(g.recalibrate); err != nil {
			return "", err
		}
	}
	return why, g.cfg.Validate()
}

// twinFlags are the flags of twin.
type twinFlags struct {
	ClusterFlags
	forecastFlags
	past                      PastFlags
	adds, drains, rules, jobs []string
	log, html                 string
	every, timeout            time.Duration
	looks, top                int
}

func twinVerb(a *cli.App) *cobra.Command {
	g := &twinFlags{}
	c := &cobra.Command{
		Use:   "twin",
		Short: "Forecast when jobs of a real cluster start, and what would change that",
		Long: `twin looks at a real cluster, brings its state into a simulator and plays on from there many times, with run times drawn
from what a predictor says of each job, given for how long it has run. It prints when each waiting job starts and each
running job ends, with intervals over the draws, and when how many GPUs are free. It writes nothing into the cluster.

What-ifs play the same draws again, and print what differs:

  --add 4x8[:TYPE]       four more nodes of eight GPUs, of the type that the queue asks for if none is given
  --drain n1,n2          no job starts on these nodes any more; rack=NAME for those of a rack
  --policy RULE          RULE orders the queue in place of the cluster's scheduler
  --submit 16x2:3h       two more jobs of 16 GPUs for three hours, at the end of the queue

Each may be given several times; each is a question of its own.

--log adds each forecast to a file; gymctl twin check compares them with what has happened. docs/guides/twin.md has the method,
what it does not know, and how well it held on a recorded cluster.`,
		Example: `  gymctl twin --cluster slurm --history slurm-jobs.txt.gz --log twin.jsonl
  gymctl twin --cluster slurm --history slurm-jobs.txt.gz --submit 16:4h --add 2x8 --policy sjf+skip
  gymctl twin --cluster kubernetes --history jobs.csv.gz --every 10m --log twin.jsonl --html twin.html
  gymctl twin --cluster demo --from slurm-jobs.txt.gz --add 2x8
  gymctl twin check twin.jsonl`,
		RunE: func(c *cobra.Command, _ []string) error { return runTwin(a, c, g) },
	}
	g.ClusterFlags.add(c)
	g.forecastFlags.add(c)
	f := c.Flags()
	g.past.add(f)
	f.StringArrayVar(&g.adds, "add", nil, "what if there were so many nodes more: `NODESxGPUS[:TYPE]`")
	f.StringArrayVar(&g.drains, "drain", nil, "what if no job started there any more: `NODE,…|rack=RACK`")
	f.StringArrayVar(&g.rules, "policy", nil, "what if this `RULE` decided, with run times as in --estimates")
	f.StringArrayVar(&g.jobs, "submit", nil, "when would such jobs start: `GPUS[xN]:DURATION`")
	f.StringVar(&g.log, "log", "", "add the forecast to `FILE`, a line of JSON each")
	f.StringVar(&g.html, "html", "", "write a page with the queue to `FILE`, for any browser and without a network")
	f.IntVar(&g.cfg.Interval, "interval", g.cfg.Interval, "`PERCENT` of the draws that intervals hold")
	f.IntVar(&g.top, "top", 20, "print at most `N` jobs of each kind")
	f.DurationVar(&g.every, "every", 0, "look again and again, after so long; 0 = once")
	f.IntVar(&g.looks, "looks", 0, "of --every: end after `N` looks, 0 = never")
	f.DurationVar(&g.timeout, "timeout", 30*time.Second, "how long the cluster may take for an answer")
	f.Bool("json", false, "print one JSON document for each look")
	cli.Needs(c, []string{"every"}, "looks")
	cli.Least(c, 0, "looks")
	cli.Least(c, 1, "top")
	cli.Least(c, time.Second, "timeout")
	c.AddCommand(twinCheck(a), twinBacktest(a))
	options.Sections(c)
	return c
}

// changes reads the questions, in the order of the flags' names.
func (g *twinFlags) changes() (list []twin.Change, err error) {
	for _, x := range []struct {
		texts []string
		read  func(string) (twin.Change, error)
	}{
		{g.adds, twin.Add},
		{g.drains, twin.Drain},
		{g.rules, func(text string) (twin.Change, error) { return twin.Under(text, g.placement, g.cfg.Predictor) }},
		{g.jobs, twin.Submit},
	} {
		for _, text := range x.texts {
			c, err := x.read(text)
			if err != nil {
				return nil, err
			}
			list = append(list, c)
		}
	}
	return list, nil
}

func runTwin(a *cli.App, c *cobra.Command, g *twinFlags) (err error) {
	why, err := g.read(g.Kind, g.past.File != "")
	if err != nil {
		return err
	}
	if g.every != 0 && g.every < time.Second {
		return fault.Mistakef("--every: got %v, want 1s or more, or 0 for one look", g.every)
	}
	if err := options.CheckPage(g.html, ""); err != nil {
		return err
	}
	changes, err := g.changes()
	if err != nil {
		return err
	}
	cl, err := Steered(&g.ClusterFlags)
	if err != nil {
		return err
	}
	eye := &twin.Eye{Estimates: g.cfg.Predictor, Mirror: mirror.Config{Limit: g.cfg.Limit}}
	if eye.History, err = g.past.read(c.Context()); err != nil {
		return err
	}
	if eye.Mirror.Epoch, err = g.past.Epoch(eye.History, a.Now()); err != nil {
		return err
	}
	sleep := steer.Sleep
	if d, ok := cl.(*demo.Cluster); ok {
		defer func() { err = errors.Join(err, d.Close()) }()
		if err := g.onDemo(a, d, eye); err != nil {
			return err
		}
		sleep, why = d.Sleep, ""
	}
	g.cfg.History = eye.History
	if g.cfg.Arrives && g.past.File == "" && g.Kind != DemoCluster {
		return fault.Mistakef("--arrivals history: want --history FILE, from which they are drawn")
	}
	away := false
	for n := 1; ; n++ {
		switch err := twinLook(a, c, g, eye, cl, changes); {
		case g.every > 0 && err != nil && c.Context().Err() != nil:
			return nil //nolint:nilerr // the end was asked for
		case errors.Is(err, live.ErrOver):
			a.Notef("%v", err)
			return nil
		case g.every > 0 && errors.Is(err, live.ErrUnreachable):
			if !away {
				a.Notef("%v; it is tried again", err)
			}
			away = true
		case err != nil:
			return err
		default:
			if why != "" && !cli.AsJSON(c) {
				a.Notef("the scheduler is taken for %s: %s; --scheduler says otherwise", g.cfg.Scheduler.Name, why)
			}
			why, away = "", false
		}
		if g.every == 0 || n == g.looks {
			return nil
		}
		if sleep(c.Context(), g.every) != nil {
			return nil //nolint:nilerr // the end was asked for
		}
	}
}

// twinLook is one look at the cluster.
func twinLook(a *cli.App, c *cobra.Command, g *twinFlags, eye *twin.Eye, cl live.Cluster, changes []twin.Change) error {
	ctx := c.Context()
	st, snapshot, err := eye.Look(ctx, cl, g.timeout)
	if err != nil {
		return err
	}
	begun := a.Now()
	r, err := twin.Forecast(ctx, &g.cfg, st, changes)
	if err != nil {
		return err
	}
	r.Took = a.Now().Sub(begun).Seconds()
	if g.log != "" {
		if err := twin.AppendLog(g.log, r, snapshot); err != nil {
			return err
		}
	}
	if g.html != "" {
		if err := a.WriteFile(g.html, []string{g.past.File, g.log}, func(w io.Writer) error { return r.WriteHTML(w) }); err !=
			nil {
			return err
		}
	}
	return a.Show(c, r, func(w io.Writer) error { return r.WriteText(w, g.top) })
}

func twinCheck(a *cli.App) *cobra.Command {
	var k ClusterFlags
	var actual []string
	var seed uint64
	timeout := 30 * time.Second
	c := &cobra.Command{
		Use:   "check LOG",
		Short: "Compare logged forecasts with what has happened",
		Long: `check compares the forecasts of a log of twin with the starts that came: those that later looks of the same log have seen,
those of --actual files (a log of steer or of twin, or what trace get slurm writes), and those that --cluster shows now.

It prints how often starts fell into the intervals of 50, 80 and 90 %, the median error, and the pinball loss beside that
of simple rivals: the waits of jobs of the same size before, and the start that the cluster itself expected where it says
so. Intervals of 95 % are over blocks of consecutive looks. Looks of which less than four in five starts are known are
left out, because short waits are known first. Factors for --recalibrate are proposed only if those chosen on the earlier
part make the later part better beyond chance.`,
		Example: `  gymctl twin check twin.jsonl
  gymctl twin check twin.jsonl --actual steer.jsonl --actual slurm-jobs.txt.gz --json
  gymctl twin check twin.jsonl --cluster slurm`,
		Args: cli.Args(1, 1, "one LOG"),
		RunE: func(c *cobra.Command, files []string) error {
			truth := twin.NewTruth()
			for _, f := range actual {
				if err := truth.Read(f); err != nil {
					return err
				}
			}
			if c.Flags().Changed("cluster") {
				cl, err := Steered(&k)
				if err != nil {
					return err
				}
				ctx, stop := context.WithTimeout(c.Context(), timeout)
				defer stop()
				s, err := cl.Observe(ctx)
				if err != nil {
					return err
				}
				truth.Look(s)
			}
			r, err := twin.CheckLog(files[0], truth, seed)
			if err != nil {
				return err
			}
			return a.Show(c, r, r.WriteText)
		},
	}
	k.add(c)
	f := c.Flags()
	f.StringArrayVar(&actual, "actual", nil, "`FILE` that says when jobs have started")
	f.DurationVar(&timeout, "timeout", timeout, "how long the cluster may take for an answer")
	f.Uint64Var(&seed, "seed", 1, "seed of the resamples")
	cli.JSONFlag(c)
	return c
}

func twinBacktest(a *cli.App) *cobra.Command {
	g := &forecastFlags{}
	b := twin.Backtest{Trace: workload.DefaultTraceConfig(), From: 0.5, Until: 1, Moments: 100}
	var on string
	c := &cobra.Command{
		Use:   "backtest FILE",
		Short: "Try forecasts on a schedule of the past",
		Long: `backtest follows the schedule of a trace, forecasts at evenly spaced moments with what was known then, and scores the
forecasts as check does. The trace must say when its jobs started: what trace get slurm writes, or the standard workload
format. It does not say where, so the cluster is a counter, pool:N. With --simulated jobs start as --scheduler starts them,
on any cluster and of any trace; then run times alone are uncertain, and not how the cluster schedules.

The predictor knows what had ended at each moment, and nothing else of the trace.`,
		Example: `  gymctl twin backtest slurm-jobs.txt.gz --on pool:512 --moments 200
  gymctl twin backtest jobs.csv.gz --on 16x8 --simulated --scheduler fifo+skip`,
		Args: cli.Args(1, 1, "one FILE"),
		RunE: func(c *cobra.Command, files []string) error {
			b.Trace.File = files[0]
			if _, err := g.read("", true); err != nil {
				return err
			}
			switch {
			case !(b.From >= 0 && b.From < b.Until && b.Until <= 1):
				return fault.Mistakef("--from %v, --until %v: want shares of the jobs from 0 to 1, the first below the second",
					b.From, b.Until)
			case b.Moments < 1 || b.Moments > 100_000:
				return fault.Mistakef("--moments: got %d, want 1 to 100000", b.Moments)
			}
			if err := b.Trace.Validate(); err != nil {
				return cli.FlagFaults(c, err, nil)
			}
			var err error
			if b.On, err = workload.ClusterSpec(on); err != nil {
				return fmt.Errorf("--on: %w", err)
			}
			if len(b.On.VCs) > 0 {
				return fault.Mistakef("--on: %s has virtual clusters, which the twin does not know", on)
			}
			b.Config = g.cfg
			line := cli.NewStatus(a, cli.Unnoticed)
			defer line.Clear()
			b.Progress = func(done, of int) {
				line.Show(func(int) []string { return []string{fmt.Sprintf("%d/%d moments", done, of)} })
			}
			r, err := b.Run(c.Context())
			line.Clear()
			if err != nil {
				return err
			}
			if r.LeftOut > 0 && !cli.AsJSON(c) {
				a.Notef("%s left out: nobody knows of the start, or there was no room then",
					plain.Count(r.LeftOut, "job is", "jobs are"))
			}
			return a.Show(c, r, r.WriteText)
		},
	}
	g.add(c)
	f := c.Flags()
	options.TraceFlags(c, &b.Trace)
	f.StringVar(&on, "on", "", "the `CLUSTER`: pool:N, NxG, a preset or a file")
	cli.One(c, "on")
	f.BoolVar(&b.Simulated, "simulated", false, "let --scheduler start the jobs")
	f.Float64Var(&b.From, "from", b.From, "moments begin after this `SHARE` of the jobs")
	f.Float64Var(&b.Until, "until", b.Until, "and end before this `SHARE`")
	f.IntVar(&b.Moments, "moments", b.Moments, "`N` evenly spaced moments")
	cli.JSONFlag(c)
	return c
}
