package look

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/internal/rng"
	"clustergym/lab/workload"
	"clustergym/live"
	"clustergym/live/demo"
	"clustergym/traces"
)

// accountOptions are the flags of trace account.
type accountOptions struct {
	cfg                    workload.TraceConfig
	cluster, backfill, out string
	seed                   uint64
}

func traceAccount(a *cli.App) *cobra.Command {
	o := &accountOptions{cfg: workload.DefaultTraceConfig(), cluster: "4x8", backfill: demo.BackfillEasy}
	c := &cobra.Command{
		Use:   "account FILE",
		Short: "Write what sacct would print of a made-up cluster",
		Long: `account lets a made-up cluster run the jobs of FILE, and writes what sacct -P would print of it at the last submit: with
starts, ends, time limits and nodes, and with jobs that still run and wait. It stands for the accounting of a cluster
wherever there is none to try things on. The cluster starts jobs first come, first served; --backfill says which pass.

Jobs without a time limit get one as people choose them: 1.2 to 5 times the run time, and from there the next quarter of
an hour, hour, half day or day.`,
		Example: `  gymctl trace synth --profile philly-users --jobs 3000 -o jobs.csv
  gymctl trace account jobs.csv --cluster 4x8 -o slurm-jobs.txt`,
		Args:              cli.Args(1, 1, "one FILE"),
		ValidArgsFunction: cli.OneFile,
		RunE:              func(c *cobra.Command, files []string) error { return o.run(a, c, files[0]) },
	}
	options.TraceFlags(c, &o.cfg)
	f := c.Flags()
	f.StringVar(&o.cluster, "cluster", o.cluster, "the `CLUSTER`: NxG, a preset or a file")
	cli.Choice(c, &o.backfill, "backfill",
		"`HOW`: which jobs pass the first one that does not fit: those that do not delay it by time limits (easy), none, or any",
		demo.Backfills()...)
	f.Uint64Var(&o.seed, "limit-seed", 1, "another seed gives jobs other time limits")
	f.StringVarP(&o.out, "output", "o", "", "write to `FILE` instead of standard output")
	return c
}

func (o *accountOptions) run(a *cli.App, c *cobra.Command, file string) error {
	o.cfg.File = file
	if err := o.cfg.Validate(); err != nil {
		return cli.FlagFaults(c, err, nil)
	}
	nodes, err := options.DemoNodes("cluster", o.cluster)
	if err != nil {
		return err
	}
	jobs, _, err := workload.LoadTraceContext(c.Context(), o.cfg)
	if err != nil {
		return err
	}
	for i := range jobs {
		if j := &jobs[i]; j.Estimate <= 0 || j.Assumed {
			at := rng.At(o.seed, rng.Hash("trace account/limit"), rng.Hash(j.ID), uint64(i))
			j.Estimate, j.Assumed = usualLimit(j.Work, rng.Uniform(at)), false
		}
	}
	played, out, err := demo.Play(jobs, nodes, o.backfill)
	if err != nil {
		return fault.Mistakef("%s: %w", file, err)
	}
	err = a.WriteFile(o.out, []string{file, o.cfg.Profiles}, func(w io.Writer) error {
		return writeAccount(w, played, nodes)
	})
	if err == nil && out.Unfit > 0 {
		a.Notef("%s left out, %s of the GPU time: no such GPUs on the nodes, or too few", plain.Count(out.Unfit, "job is",
			"jobs are"), workload.Percent(out.UnfitHours/out.Hours))
	}
	return err
}

// usualLimit returns a time limit as people choose it; u is from 0 to 1.
func usualLimit(work time.Duration, u float64) time.Duration {
	const day = 24 * time.Hour
	limit := time.Duration(float64(work) * (1.2 + 3.8*u))
	for _, x := range []struct{ below, step time.Duration }{
		{time.Hour, 15 * time.Minute}, {8 * time.Hour, time.Hour}, {2 * day, 12 * time.Hour},
	} {
		if limit <= x.below {
			return (limit + x.step - 1) / x.step * x.step
		}
	}
	return (limit + day - 1) / day * day
}

// accountColumns are what is written of each job.
const accountColumns = "JobID|User|Account|Partition|JobName|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|NNodes|NCPUS|" +
	"ReqTRES|AllocTRES|NodeList"

// accountZero is when the clock of a trace shows 0: a Monday.
var accountZero = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

func writeAccount(w io.Writer, jobs []demo.Played, nodes []live.Node) error {
	b := bufio.NewWriter(w)
	types := map[string]string{}
	for i := range nodes {
		types[nodes[i].Name] = nodes[i].GPUType
	}
	fmt.Fprintln(b, accountColumns)
	last := jobs[len(jobs)-1].Submit
	for i := range jobs {
		j := &jobs[i]
		start, end, state, where, alloc := "Unknown", "Unknown", "PENDING", "None assigned", ""
		elapsed, n := time.Duration(0), 1
		if j.State != live.Waiting {
			start, elapsed, state = stamped(j.Start), last-j.Start, "RUNNING"
			where, n = strings.Join(j.Nodes, ","), len(j.Nodes)
			alloc = resources(j, n, types[j.Nodes[0]])
		}
		if j.State == live.Ended {
			end, elapsed, state = stamped(j.End), j.End-j.Start, ended[j.Status]
		}
		asked := ""
		if len(j.GPUTypes) > 0 {
			asked = j.GPUTypes[0]
		}
		fmt.Fprintln(b, strings.Join([]string{
			strconv.Itoa(i + 1), cell(j.User), cell(cmp.Or(j.Group, j.VC)), "gpu", cell(j.Name), stamped(j.Submit), start, end,
			strconv.FormatInt(int64(elapsed.Round(time.Second)/time.Second), 10),
			strconv.FormatInt(int64((j.Estimate+time.Minute-1)/time.Minute), 10), state, strconv.Itoa(n),
			strconv.FormatInt(cores(j), 10), resources(j, n, asked), alloc, where,
		}, "|"))
	}
	return b.Flush()
}

// ended is the State of a job that has ended in some way.
var ended = map[traces.Status]string{traces.StatusUnknown: "COMPLETED", traces.Completed: "COMPLETED",
	traces.Failed: "FAILED", traces.Cancelled: "CANCELLED"}

func stamped(t time.Duration) string { return accountZero.Add(t).Format("2006-01-02T15:04:05") }

func cell(text string) string { return strings.ReplaceAll(text, "|", " ") }

// cores returns a job's cores: eight of each GPU if the trace does not say.
func cores(j *demo.Played) int64 {
	if j.CPUMilli > 0 {
		return (j.CPUMilli + 999) / 1000
	}
	return int64(8 * j.GPUs)
}

// resources writes what a job asks for, or has.
func resources(j *demo.Played, nodes int, gpuType string) string {
	text := fmt.Sprintf("billing=%d,cpu=%d,gres/gpu=%d", cores(j), cores(j), j.GPUs)
	if gpuType != "" {
		text += fmt.Sprintf(",gres/gpu:%s=%d", gpuType, j.GPUs)
	}
	if j.MemBytes > 0 {
		text += fmt.Sprintf(",mem=%dM", j.MemBytes>>20)
	}
	return text + fmt.Sprintf(",node=%d", nodes)
}
