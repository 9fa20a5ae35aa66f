package operate

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/configs"
	"clustergym/internal/plain"
	"clustergym/lab/workload"
	"clustergym/ops/assess"
	"clustergym/traces"
)

// assessFlags are the flags of assess.
type assessFlags struct {
	trace   workload.TraceConfig
	opt     assess.Options
	cluster string
	html    string
	tune    string // file of the fitted weights
	agent   string // folder of the agent
	set     []string
}

func assessVerb(a *cli.App) *cobra.Command {
	g := &assessFlags{trace: workload.DefaultTraceConfig()}
	c := &cobra.Command{
		Use:   "assess FILE",
		Short: "Say whether another order or more GPUs would help a cluster",
		Long: `assess reads what a cluster has recorded of its jobs, as sacct -P prints it, and says in a few sentences how long users
wait, what another order of the queue would change, what more GPUs would change, who would wait longer, and how sure that is.

Below the sentences are the figures (docs/guides/assess.md):

  recorded     waits by size of jobs, by account or user, by hour of the week, and use: what the file itself says
  models       rules that the cluster's own scheduler may follow, and how close each comes to the recorded starts
  policies     other orders on the same jobs, what each knows of run times, and intervals over blocks of time, which are widened
               by the error of the model of the own scheduler
  changes      who would gain and who would lose: by size, account and user
  what if      more GPUs, fewer GPUs, more exact time limits, other back-filling
  learned      with --tune and --agent: weights of hold that were fitted to the first half of the record, and an agent that was
               trained on it, judged on the second half

A gain is offered only if it is certain after chance and that error. The file needs recorded starts (Start of sacct) and time
limits; --limit stands for missing ones. Without --agent nothing is trained. Nothing is written into the cluster.

gymctl trace get slurm writes such a file on a machine where sacct works. The examples make one up.`,
		Example: `  gymctl trace synth --profile philly-users --jobs 2000 --set rate=0.3 --set work=0.6 --set max_gpus=4 -o jobs.csv
  gymctl trace account jobs.csv --cluster 4x8 -o slurm-jobs.txt
  gymctl assess slurm-jobs.txt --html assess.html
  gymctl assess slurm-jobs.txt --cluster 4x8 --gpus 16 --json
  gymctl assess slurm-jobs.txt --cluster 4x8 --tune hold.yaml --agent runs/assessed`,
		Args: cli.Args(1, 1, "one accounting file"),
		RunE: func(c *cobra.Command, args []string) error { return runAssess(a, c, g, args[0]) },
	}
	f := c.Flags()
	options.TraceFlags(c, &g.trace)
	f.StringVar(&g.cluster, "cluster", "", "`CLUSTER` on which the jobs ran (default guessed from where they ran): "+workload.ClusterForms)
	f.DurationVar(&g.opt.Limit, "limit", 0, "`TIME` that stands for the time limit of jobs that have none")
	f.IntVar(&g.opt.GPUs, "gpus", 0, "ask what `N` more GPUs would change (default about a tenth of the cluster)")
	f.BoolVar(&g.opt.LeftOut, "accept-left-out", false,
		"go on although more than 5 % of the GPU time can never fit the cluster")
	f.StringVar(&g.tune, "tune", "",
		"fit the weights of hold to the first half of the record, judge them on the second, and write them to `FILE`")
	f.StringVar(&g.agent, "agent", "",
		"train an agent on the first half and judge it on the second: run folder `DIR`, where a training goes on")
	f.StringArrayVar(&g.set, "set", nil, "change one key of that training: `KEY.PATH=VALUE` (repeatable)")
	cli.Needs(c, []string{"agent"}, "set")
	f.StringVar(&g.html, "html", "", "write a page for people to `FILE`, for any browser, for paper and without a network")
	options.WorkersFlag(c, &g.opt.Workers)
	cli.Filled(c, "tune", "agent")
	cli.CompleteDir(c, "agent")
	cli.Least(c, 0, "gpus")
	cli.Least(c, time.Duration(0), "limit")
	cli.JSONFlag(c)
	options.Sections(c)
	return c
}

func runAssess(a *cli.App, c *cobra.Command, g *assessFlags, file string) error {
	if err := options.CheckPage(g.html, ""); err != nil {
		return err
	}
	line := cli.NewStatus(a, 0)
	defer line.Clear()
	g.opt.Progress = func(what string) { line.Show(func(int) []string { return []string{what} }) }
	g.opt.Progress("reading " + file)
	g.trace.File, g.trace.Unended, g.trace.Runs = file, true, true
	jobs, info, err := workload.LoadTraceContext(c.Context(), g.trace)
	if err != nil {
		return err
	}
	g.opt.File, g.opt.Jobs = file, jobs
	for _, s := range info.Skipped {
		g.opt.Dropped = append(g.opt.Dropped, assess.Reason{Reason: s.Reason, Count: s.Count})
	}
	g.opt.Line = func(id string) int { return rowsOf(c.Context(), file, id)[id].Line }
	if at := rowsOf(c.Context(), file, jobs[0].ID)[jobs[0].ID].Submit; !at.IsZero() {
		g.opt.Epoch = at.Add(-jobs[0].Submit)
	}
	if err := g.machines(jobs); err != nil {
		return err
	}
	if g.opt.Tune = g.tune != ""; g.agent != "" {
		g.opt.Agent = g.trainer(a)
	}
	out, err := assess.Assess(c.Context(), g.opt)
	line.Clear()
	if err != nil {
		return err
	}
	if err := g.writeWeights(a, file, out); err != nil {
		return err
	}
	if err := a.Show(c, out, out.Text); err != nil || g.html == "" {
		return err
	}
	if err := a.WriteFile(g.html, []string{file, g.cluster}, func(w io.Writer) error { return out.HTML(w) }); err != nil {
		return err
	}
	a.Notef("the page is %s", g.html)
	return nil
}

// rowsOf finds jobs in a file.
func rowsOf(ctx context.Context, file string, ids ...string) map[string]assess.Row {
	name, err := workload.Located(file)
	if err != nil {
		return nil
	}
	f, err := (*traces.Files)(nil).Open(ctx, name)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	return assess.Rows(f, ids...)
}

// machines finds the cluster on which the jobs ran: the one that is named, divided by its partitions, or one that is
// guessed from where they ran.
func (g *assessFlags) machines(jobs []traces.Job) (err error) {
	if g.cluster == "" {
		var says string
		if g.opt.Spec, says, err = workload.GuessCluster(jobs); err == nil {
			g.opt.Cluster, g.opt.Notes = assess.Guessed, append(g.opt.Notes, says)
		}
		return err
	}
	g.opt.Cluster = g.cluster
	if g.opt.Spec, err = workload.ClusterSpec(g.cluster); err != nil {
		return err
	}
	parts, err := workload.Partitions(g.cluster)
	if err == nil {
		g.opt.Spec = workload.Divided(g.opt.Spec, parts, jobs)
	}
	return err
}

// writeWeights writes the fitted weights, if they were asked for.
func (g *assessFlags) writeWeights(a *cli.App, file string, out *assess.Assessment) error {
	if g.tune == "" {
		return nil
	}
	text, err := configs.Encode(out.Learned.Hold)
	if err != nil {
		return err
	}
	return a.WriteFile(g.tune, []string{file, g.cluster}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "# Weights of hold, fitted by gymctl assess to the first half of %s.\n%s",
			plain.Clip(plain.Line(file), 200), text)
		return err
	})
}
