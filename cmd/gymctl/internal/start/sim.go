package start

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/configs"
	"clustergym/env/rollout"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/simulate"
	"clustergym/lab/workload"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/sim"
)

// simPolicies completes sim --policy.
func simPolicies(c *cobra.Command, word string) []string {
	switch {
	case c.Name() == "peer":
		return simulate.PeerPolicies(c.Flags().Arg(0))
	case c.Flags().Changed("peer"):
		return simulate.PeerPolicies(c.Flag("peer").Value.String())
	}
	return rollout.Names().Complete(word)
}

// simOptions are the flags of sim and of peer, which runs the same workloads on other simulators.
type simOptions struct {
	cfg                   simulate.Config
	generated             string // the cluster of generated jobs
	sets                  []string
	budget                rollout.Budget
	weights               options.Weights
	files                 options.PolicyFiles
	onnx                  options.ModelFlags
	played                []simulate.Played
	events, html, jobsOut string
}

func newSimOptions() *simOptions {
	o := &simOptions{cfg: simulate.DefaultConfig()}
	o.generated, o.cfg.Cluster = o.cfg.Cluster, ""
	return o
}

func simVerb(a *cli.App) *cobra.Command {
	o := newSimOptions()
	c := &cobra.Command{
		Use:   "sim [FILE]",
		Short: "Simulate heuristics over a trace",
		Long: `sim runs a workload on a cluster under one policy, or under several in turn, and prints the results: job
completion times (JCT = finish - submit), waits, slowdowns, makespan and utilisation.

The workload is a trace, FILE or --trace FILE (gymctl trace formats lists what can be read; packed files are
unpacked), or, without one, generated from the published statistics of the Philly cluster. Large files are read while
they are simulated (--stream).

A policy is an order, an admission and a kind of backfilling: fifo+strict stops at the first job that does not
fit, fifo+skip skips it, fifo+commit keeps the job once chosen; fifo+strict+easy lets others go first as long as
they do not delay it. A policy that names neither uses --admission and --backfill; without these, its admission is
skip if it preempts running jobs and strict otherwise. exact is the clairvoyant optimum of small instances; the
table then shows every policy's gap to it. docs/reference/schedulers.md has every rule with its source.

An order of your own is written out as expressions: 'key: wait / (estimate * gpus)' starts the job of the least key
first; start if: CONDITION holds jobs back, and stop if: CONDITION stops running ones. --policy-file reads it from a
file (docs/guides/own-policy.md).

rollout:POLICY is a policy that looks ahead: at each decision it plays the simulator on from the current state, in
imagined futures, and deviates from POLICY where that is better beyond chance (docs/guides/look-ahead.md). --budget says how
much a decision may cost: a number of rollouts, or a time, which makes results depend on the machine.

--policy-onnx lets an ONNX model schedule the trace too (docs/reference/onnx.md). It sees and starts jobs as in
JobSelect-v1, with the settings that gymctl ckpt export wrote into it, else those of the preset quickstart; estimates,
placement and communication are those of this run.

Policies see what a cluster has of run times: requested times if every job has one, else forecasts that are learned as
jobs end. The head of the table says which. --estimates exact is an oracle (docs/guides/predict.md).

--horizon counts from the first submit. Jobs that can never fit the cluster are refused: they are left out,
counted and named. Jobs read = finished + unfinished + dropped + refused.

Orders and policies: ` + options.Wrapped(schedulers.Orders()) + `.
Placements: ` + options.Wrapped(place.Names()) + `; lwf-K for any K.
Clusters: a preset (gymctl config list), a YAML file, an inventory of machines, pool:N (a plain counter of N GPUs
or processors), swf-N (the same), NxG or NxG:TYPE (N nodes of G GPUs in one rack; + joins several), dally:RxM (R
racks of M nodes of 8).
Interference: ` + workload.InterferenceForms + `.

--set changes settings without a flag; settings and their defaults:

` + options.Indented(&o.cfg),
		Example: `  gymctl sim --policy fifo,fifo+skip,fifo+strict+easy,sjf,srtf
  gymctl trace synth --jobs 500 --seed 7 -o jobs.csv.gz
  gymctl sim jobs.csv.gz --cluster pool:64 --policy sjf+skip --json
  gymctl sim --trace jobs.csv.gz --cluster 16x8 --policy las --comm tree --placement closest-b --checkpoint 30m
  gymctl sim --trace jobs.csv.gz --cluster philly-192 --policy sjf --events events.jsonl.gz --warmup 50 --tail 50
  gymctl sim --trace jobs.csv.gz --cluster 16x8 --policy fifo,srtf --html schedule.html
  gymctl sim --jobs 12 --cluster pool:8 --policy exact,fifo,sjf+skip
  gymctl sim --policy sjf+skip,key:estimate*gpus+skip
  gymctl sim --jobs 400 --cluster 16x4 --policy sjf+skip,rollout:sjf+skip --budget 64`,
		Args:              cli.Args(0, 1, "one FILE, or none"),
		ValidArgsFunction: cli.OneFile,
		RunE:              func(c *cobra.Command, files []string) error { return o.carryOut(a, c, files) },
	}
	o.flags(c)
	o.ownFlags(c)
	o.peerForm(c)
	cli.Section(c, "Policies", "policy", "admission", "backfill", "estimates", "placement", "hold", "index", "budget",
		"policy-file", "policy-onnx", "name")
	cli.Section(c, "Workload", workloadFlags...)
	cli.Section(c, "Cluster", "cluster", "comm", "overlap", "interference", "interference-scope", "restart", "checkpoint",
		"mtbf", "mttr")
	cli.Section(c, "Run", "horizon", "warmup", "tail", "seed", "fail-refused", "set")
	cli.Section(c, "Output", "json", "events", "jobs-out", "html")
	cli.Section(c, "Machine", "stream")
	return c
}

// ownFlags adds the flags that peer does not have.
func (o *simOptions) ownFlags(c *cobra.Command) {
	f := c.Flags()
	f.DurationVar(&o.cfg.Trace.Limit, "limit", o.cfg.Trace.Limit, options.LimitHelp)
	f.BoolVar(&o.cfg.Trace.AcceptLeftOut, "accept-left-out", o.cfg.Trace.AcceptLeftOut, options.AcceptHelp)
	f.StringVar(&o.cfg.Admission, "admission", o.cfg.Admission,
		"strict, skip or commit, for policies that do not name one")
	f.StringVar(&o.cfg.Backfill, "backfill", o.cfg.Backfill,
		"none, easy or conservative, for policies that do not name one")
	options.BudgetFlag(f, &o.budget)
	o.files.Flag(c, "policy")
	o.weights.Flags(f)
	o.onnx.Flags(c)
	f.StringVar(&o.cfg.Policy.Placement, "placement", o.cfg.Policy.Placement, "which GPUs a job gets")
	f.TextVar(&o.cfg.Policy.Estimates, "estimates", o.cfg.Policy.Estimates,
		"`ESTIMATES` of run times that policies see: none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA "+
			"(default trace if every job has a requested time, else history)")
	f.StringVar(&o.cfg.Simulator.Comm, "comm", o.cfg.Simulator.Comm,
		"how a placement slows a gang down: "+strings.Join(sim.CommNames(), ", "))
	f.Float64Var(&o.cfg.Simulator.Ring.Overlap, "overlap", o.cfg.Simulator.Ring.Overlap,
		"with --comm ring: share of the compute time that hides communication")
	f.StringVar(&o.cfg.Interference, "interference", o.cfg.Interference,
		"how jobs that share hardware slow each other down: `FILE` or seeded:N")
	f.StringVar(&o.cfg.Simulator.InterferenceScope, "interference-scope", o.cfg.Simulator.InterferenceScope,
		"which jobs interfere: those that share a gpu or a node")
	f.DurationVar(&o.cfg.Simulator.Restart, "restart", o.cfg.Simulator.Restart,
		"work added to a job whenever it is restarted, as 40s")
	f.DurationVar(&o.cfg.Simulator.Checkpoint, "checkpoint", o.cfg.Simulator.Checkpoint,
		"progress from one checkpoint to the next; a stopped job loses its progress since the last one; 0s = none is lost")
	f.DurationVar(&o.cfg.Simulator.Failures.MTBF, "mtbf", o.cfg.Simulator.Failures.MTBF,
		"mean time between failures of a node; 0s = nodes never fail")
	f.DurationVar(&o.cfg.Simulator.Failures.MTTR, "mttr", o.cfg.Simulator.Failures.MTTR, "mean time until it is repaired")
	f.DurationVar(&o.cfg.Horizon, "horizon", o.cfg.Horizon,
		"end the run this long after the first submit, as 72h; 0s = never")
	f.IntVar(&o.cfg.Warmup, "warmup", o.cfg.Warmup, "do not count the first `N` jobs")
	f.IntVar(&o.cfg.Tail, "tail", o.cfg.Tail, "do not count the last `N` jobs")
	f.StringVar(&o.cfg.Stream, "stream", o.cfg.Stream, "read the trace while it is simulated: auto (large files), on, off")
	f.StringVar(&o.html, "html", "",
		"write the schedules as one HTML page to `FILE`, for any browser and without a network")
	cli.Complete(c, "admission", policyname.Admissions()...)
	cli.Complete(c, "backfill", policyname.Backfills()...)
	cli.Complete(c, "placement", place.Names()...)
	cli.CompleteBy(c, "estimates", options.EstimateValues)
	cli.CompleteOrFile(c, "interference", "seeded:1")
	cli.Complete(c, "comm", sim.CommNames()...)
	cli.Complete(c, "stream", "auto", "on", "off")
	cli.Complete(c, "interference-scope", "gpu", "node")
}

// workloadFlags are the flags of a trace, for the help.
var workloadFlags = []string{"trace", "format", "columns", "delimiter", "sort", "skip", "jobs", "limit",
	"accept-left-out", "profiles",
	"reference", "mix"}

// flags adds the flags that sim and peer have.
func (o *simOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.cfg.Trace.File, "trace", o.cfg.Trace.File, "trace `FILE`; without it, jobs are generated")
	options.TraceFlags(c, &o.cfg.Trace)
	cli.Filled(c, "trace")
	f.StringVar(&o.cfg.Cluster, "cluster", o.cfg.Cluster,
		"preset, `FILE`, pool:N, swf-N or NxG (needed with --trace; else "+o.generated+")")
	options.PolicyListVar(f)(&o.cfg.Policies, "policy", o.cfg.Policies,
		"policies, joined by commas: `ORDER`[+ADMISSION][+BACKFILL]")
	f.Uint64Var(&o.cfg.Seed, "seed", o.cfg.Seed, "seed of random orders, noisy estimates, failures and generated jobs")
	f.BoolVar(&o.cfg.FailRefused, "fail-refused", o.cfg.FailRefused,
		"fail if some jobs can never fit the cluster, instead of leaving them out")
	f.StringArrayVar(&o.sets, "set", nil, "change a setting: `KEY=VALUE` (repeatable)")
	f.StringVar(&o.events, "events", "", "write every event to `FILE` as a JSON line, packed if it ends in .gz or .zst")
	f.StringVar(&o.jobsOut, "jobs-out", "", "write every job as a CSV row to `FILE`, packed if it ends in .gz or .zst")
	f.Bool("json", false, `print one JSON document; for several policies {"runs":[…]}`)
	cli.CompleteList(c, "policy", simPolicies)
	options.CompleteSet(c, func(*cobra.Command, []string) configs.Validator { return &o.cfg })
	cli.CompleteOrFile(c, "cluster", workload.ClusterPresets()...)
}

// carryOut is sim, or peer, on the files of its arguments.
func (o *simOptions) carryOut(a *cli.App, c *cobra.Command, files []string) error {
	if err := o.complete(c, files); err != nil {
		return err
	}
	if err := o.validate(c); err != nil {
		return err
	}
	return o.run(a, c)
}

// complete fills in what the flags leave out.
func (o *simOptions) complete(c *cobra.Command, files []string) error {
	cfg := &o.cfg
	if err := traceOf(c, files, &cfg.Trace); err != nil {
		return err
	}
	if cfg.Trace.File == "" {
		cfg.Cluster, cfg.Trace.Seed = cmp.Or(cfg.Cluster, o.generated), cfg.Seed
	} else if cfg.Cluster == "" {
		return fault.Mistakef("--cluster is missing; want %s", workload.ClusterForms)
	}
	if err := options.SetAll(cfg, o.sets); err != nil {
		return err
	}
	if o.files.Given() {
		if !c.Flags().Changed("policy") {
			cfg.Policies = nil
		}
		var err error
		if cfg.Policies, err = o.files.Read(cfg.Policies); err != nil {
			return err
		}
	}
	if err := options.BudgetOf(c, o.budget, cfg.Policies, &cfg.Rollout); err != nil {
		return err
	}
	return o.weights.Read(c, cfg.Policies, &cfg.Policy.Hold, &cfg.Policy.Index)
}

// validate reports mistakes in settings and names of files.
func (o *simOptions) validate(c *cobra.Command) (err error) {
	if err := o.cfg.Validate(); err != nil {
		return cli.FlagFaults(c, err, simFlags)
	}
	if o.played, err = o.onnx.Played(c); err != nil {
		return err
	}
	files := [][2]string{{"events", o.events}, {"jobs-out", o.jobsOut}, {"html", o.html}}
	for i, f := range files {
		if f[1] == "-" {
			return fault.Mistakef("--%s: got %q, want the path of a file: standard output is for the result", f[0], f[1])
		}
		for _, g := range files[:i] {
			if f[1] != "" && g[1] != "" && filepath.Clean(f[1]) == filepath.Clean(g[1]) {
				return fault.Mistakef("--%s: got %q, which is the file of --%s; want another name", f[0], f[1], g[0])
			}
		}
	}
	return nil
}

// run simulates, and prints the results.
func (o *simOptions) run(a *cli.App, c *cobra.Command) error {
	report, err := o.simulate(a, c)
	if err != nil && (report == nil || len(report.Runs) == 0) {
		return err
	}
	a.Notes(report.Notes)
	return errors.Join(err, a.Show(c, report, report.WriteTable))
}

// traceOf completes the trace of a verb that takes its file as an argument, too.
func traceOf(c *cobra.Command, files []string, t *workload.TraceConfig) error {
	if n := t.Skip + t.Jobs; t.File == "" && len(files) == 0 && t.Jobs > 0 && n > 0 {
		t.Synth.Jobs = n // as many as requested
	}
	if len(files) == 0 {
		return nil
	}
	name := files[0]
	if c.Flags().Changed("trace") {
		return fault.Mistakef("%sgot the trace %q and --trace %q, want one of them", cli.VerbName(c), name, t.File)
	}
	path, err := workload.Located(name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		hint := ""
		if c.Flags().Lookup("policy") != nil {
			hint = " (policies follow --policy, clusters --cluster)"
		}
		return fault.Mistakef("%sthere is no file %q; want the FILE of a trace%s", cli.VerbName(c), name, hint)
	}
	t.File = name
	return nil
}

// simFlags are the flags whose names differ from the keys of their settings.
var simFlags = map[string]string{
	"policies": "policy", "peer.name": "peer", "simulator.ring.overlap": "overlap", "simulator.failures.mtbf": "mtbf",
	"simulator.failures.mttr": "mttr",
	"simulator.horizon":       "set simulator.horizon",
}

// simulate runs the simulator, and writes the files that are requested.
func (o *simOptions) simulate(a *cli.App, c *cobra.Command) (report *simulate.Report, err error) {
	hooks := simulate.Hooks{Now: a.Now, Workers: runtime.GOMAXPROCS(0), Models: o.played}
	line := cli.NewStatus(a, cli.Unnoticed)
	defer line.Clear()
	ctx := options.WithReading(c.Context(), line, o.cfg.Trace.File)
	if line != nil {
		hooks.Progress = func(p simulate.Progress) { line.Show(func(int) []string { return SimParts(p) }) }
	}
	// into lets run write to a file, if it is requested.
	into := func(file string, run func(w io.Writer) error) error {
		if file == "" {
			return run(nil)
		}
		return a.WriteFile(file, []string{o.cfg.Trace.File, o.cfg.Cluster, o.cfg.Peer.Factors}, run)
	}
	var page *simulate.SchedulePage
	if o.html != "" {
		page = simulate.NewSchedulePage(o.cfg)
		hooks.Observe = page.Observe
	}
	err = into(o.html, func(html io.Writer) error {
		err := into(o.jobsOut, func(w io.Writer) error {
			hooks.Jobs = w
			return into(o.events, func(w io.Writer) error {
				hooks.Events = w
				report, err = simulate.Run(ctx, o.cfg, hooks)
				return err
			})
		})
		if err != nil || page == nil {
			return err
		}
		return page.Write(html, report)
	})
	return report, err
}

// SimParts returns the parts of the status of a simulation.
func SimParts(p simulate.Progress) []string {
	name, jobs, waiting := p.Policy, plain.Count(p.Ended, "job", "jobs")+" finished", ""
	if p.Runs > 1 {
		name += fmt.Sprintf(" (%d of %d)", p.Run+1, p.Runs)
	}
	if p.Jobs > 0 {
		jobs = fmt.Sprintf("%d/%s finished", p.Ended, plain.Count(p.Jobs, "job", "jobs"))
	}
	if p.Waiting >= 0 {
		waiting = fmt.Sprintf("%d waiting", p.Waiting)
	}
	return []string{name, jobs, waiting, "simulated " + cli.Seconds(math.Round(p.Time.Seconds()))}
}
