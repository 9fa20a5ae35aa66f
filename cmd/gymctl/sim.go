package main

import (
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

	"clustergym/configs"
	"clustergym/env/heuristic"
	"clustergym/env/sim"
	"clustergym/experiments/simulate"
	"clustergym/experiments/texttable"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
)

func simVerb(a *app) *cobra.Command {
	cfg := simulate.DefaultConfig()
	generated := cfg.Cluster
	cfg.Cluster = ""
	var asJSON bool
	var events, html, jobsOut, budget string
	var weights weightFlags
	var onnx modelFlags
	var sets []string
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
table then shows every policy's gap to it. docs/schedulers.md has every rule with its source.

rollout:POLICY is a policy that looks ahead: at each decision it plays the simulator on from the current state, in
imagined futures, and deviates from POLICY where that is better beyond chance (docs/rollouts.md). --budget says how
much a decision may cost: a number of rollouts, or a time, which makes results depend on the machine.

--policy-onnx lets an ONNX model schedule the trace too (docs/onnx.md). It sees and starts jobs as in JobSelect-v1, with the
settings that gymctl ckpt export wrote into it, else those of the preset quickstart; estimates, placement and
communication are those of this run.

--horizon counts from the first submit. Jobs that can never fit the cluster are refused: they are left out,
counted and named. Jobs read = finished + unfinished + dropped + refused.

Orders and policies: ` + wrapped(heuristic.Orders()) + `.
Placements: ` + wrapped(heuristic.PlacementNames()) + `; lwf-K for any K.
Clusters: a preset (gymctl config list), a YAML file, an inventory of machines, pool:N (a plain counter of N GPUs
or processors), swf-N (the same), NxG (N nodes of G GPUs in one rack), dally:RxM (R racks of M nodes of 8).
Interference: ` + workload.InterferenceForms + `.

--peer runs the workload on another published simulator, rebuilt from its rules, instead of this one:
dally-waiting-only and dally-published are that of Dally's authors, with the policies dally, tiresias and gandiva;
lwf-pure, lwf-orig and lwf-pureall that of LWF's, with policies ORDER-PLACE-TASKS-THRESHOLD-ADAPTIVE, as
ssf-lwf1-srsf-1-true for Ada-SRSF (docs/schedulers.md).

--set changes settings without a flag; settings and their defaults:

` + indented(&cfg),
		Example: `  gymctl sim --policy fifo,fifo+skip,fifo+strict+easy,sjf,srtf
  gymctl trace synth --jobs 500 --seed 7 -o jobs.csv.gz
  gymctl sim jobs.csv.gz --cluster pool:64 --policy sjf+skip --json
  gymctl sim --trace jobs.csv.gz --cluster 16x8 --policy las --comm tree --placement closest-b --checkpoint 30m
  gymctl sim --trace jobs.csv.gz --cluster philly-192 --policy sjf --events events.jsonl.gz --warmup 50 --tail 50
  gymctl sim --trace jobs.csv.gz --cluster 16x8 --policy fifo,srtf --html schedule.html
  gymctl sim --jobs 12 --cluster pool:8 --policy exact,fifo,sjf+skip
  gymctl sim --jobs 400 --cluster 16x4 --policy sjf+skip,rollout:sjf+skip --budget 64
  gymctl sim --set trace.synth.profile=dally --jobs 200 --cluster dally:4x4 --peer dally-waiting-only --policy dally,tiresias
  gymctl sim --jobs 50 --mix lwf --cluster lwf-16x4 --peer lwf-pure --policy ssf-lwf1-srsf-1-true,ssf-lwf1-srsf-0-false`,
		Args:              args(0, 1, "one FILE, or none"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, files []string) error {
			if err := traceOf(c, files, &cfg.Trace.File); err != nil {
				return err
			}
			switch fromFile := cfg.Trace.File != ""; {
			case !fromFile && c.Flags().Changed("trace"):
				return fault.Mistakef(`--trace: got "", want the path of a file`)
			case fromFile && cfg.Cluster == "":
				return fault.Mistakef("--cluster is missing; want %s", workload.ClusterForms)
			case !fromFile:
				if cfg.Cluster == "" {
					cfg.Cluster = generated
				}
				cfg.Trace.Seed = cfg.Seed
				if n := cfg.Trace.Skip + cfg.Trace.Jobs; cfg.Trace.Jobs > 0 && n > 0 {
					cfg.Trace.Synth.Jobs = n // as many as requested
				}
			}
			if err := setAll(&cfg, sets); err != nil {
				return err
			}
			if err := budgetOf(c, budget, cfg.Policies, &cfg.Rollout); err != nil {
				return err
			}
			if err := weights.read(c, cfg.Policies, &cfg.Policy.Hold, &cfg.Policy.Index); err != nil {
				return err
			}
			if err := cfg.Validate(); err != nil {
				return flagFaults(c, err, simFlags)
			}
			if err := peerOnly(c, cfg.Peer.Name); err != nil {
				return err
			}
			played, err := onnx.played(c)
			if err != nil {
				return err
			}
			report, err := a.simulate(c, cfg, played, events, html, jobsOut)
			if err != nil && (report == nil || len(report.Runs) == 0) {
				return err
			}
			for _, n := range report.Notes {
				a.notef("%s", n)
			}
			if asJSON {
				return errors.Join(err, a.json(report))
			}
			return errors.Join(err, report.WriteTable(a.people()))
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.Trace.File, "trace", cfg.Trace.File, "trace `FILE`; without it, jobs are generated")
	traceFlags(c, &cfg.Trace)
	limitFlag(c, &cfg.Trace.Limit)
	f.StringVar(&cfg.Cluster, "cluster", cfg.Cluster, "preset, `FILE`, pool:N, swf-N or NxG (needed with --trace; else "+generated+")")
	f.StringSliceVar(&cfg.Policies, "policy", cfg.Policies, "policies, joined by commas: `ORDER`[+ADMISSION][+BACKFILL]")
	f.StringVar(&cfg.Admission, "admission", cfg.Admission, "strict, skip or commit, for policies that do not name one")
	f.StringVar(&cfg.Backfill, "backfill", cfg.Backfill, "none, easy or conservative, for policies that do not name one")
	budgetFlag(f, &budget)
	weights.flags(f)
	onnx.flags(c)
	f.StringVar(&cfg.Policy.Placement, "placement", cfg.Policy.Placement, "which GPUs a job gets")
	f.Var(estimatesFlag{&cfg.Policy.Estimates}, "estimates", "run times that policies see: none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA")
	f.StringVar(&cfg.Simulator.Comm, "comm", cfg.Simulator.Comm, "how a placement slows a gang down: "+strings.Join(sim.CommNames(), ", "))
	f.Float64Var(&cfg.Simulator.Ring.Overlap, "overlap", cfg.Simulator.Ring.Overlap, "with --comm ring: share of the compute time that hides communication")
	f.StringVar(&cfg.Interference, "interference", cfg.Interference, "how jobs that share hardware slow each other down: `FILE` or seeded:N")
	f.StringVar(&cfg.Simulator.InterferenceScope, "interference-scope", cfg.Simulator.InterferenceScope, "which jobs interfere: those that share a gpu or a node")
	f.DurationVar(&cfg.Simulator.Restart, "restart", cfg.Simulator.Restart, "work added to a job whenever it is restarted, as 40s")
	f.DurationVar(&cfg.Simulator.Checkpoint, "checkpoint", cfg.Simulator.Checkpoint, "progress from one checkpoint to the next; a stopped job loses its progress since the last one; 0s = none is lost")
	f.DurationVar(&cfg.Simulator.Failures.MTBF, "mtbf", cfg.Simulator.Failures.MTBF, "mean time between failures of a node; 0s = nodes never fail")
	f.DurationVar(&cfg.Simulator.Failures.MTTR, "mttr", cfg.Simulator.Failures.MTTR, "mean time until it is repaired")
	f.DurationVar(&cfg.Horizon, "horizon", cfg.Horizon, "end the run this long after the first submit, as 72h; 0s = never")
	f.IntVar(&cfg.Warmup, "warmup", cfg.Warmup, "do not count the first `N` jobs")
	f.IntVar(&cfg.Tail, "tail", cfg.Tail, "do not count the last `N` jobs")
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of random orders, noisy estimates, failures and generated jobs")
	f.BoolVar(&cfg.FailRefused, "fail-refused", cfg.FailRefused, "fail if some jobs can never fit the cluster, instead of leaving them out")
	f.StringVar(&cfg.Stream, "stream", cfg.Stream, "read the trace while it is simulated: auto (large files), on, off")
	f.StringArrayVar(&sets, "set", nil, "change a setting: `KEY=VALUE` (repeatable)")
	f.StringVar(&events, "events", "", "write every event to `FILE` as a JSON line, packed if it ends in .gz or .zst")
	f.StringVar(&jobsOut, "jobs-out", "", "write every job as a CSV row to `FILE`, packed if it ends in .gz or .zst")
	f.StringVar(&html, "html", "", "write the schedules as one HTML page to `FILE`, for any browser and without a network")
	f.BoolVar(&asJSON, "json", false, `print one JSON document; for several policies {"runs":[…]}`)
	peerFlags(c, &cfg)
	completeList(c, "policy", simPolicies)
	completeSet(c, func(*cobra.Command, []string) configs.Validator { return &cfg })
	completeOrFile(c, "cluster", workload.ClusterPresets()...)
	complete(c, "admission", heuristic.Admissions()...)
	complete(c, "backfill", heuristic.Backfills()...)
	complete(c, "placement", heuristic.PlacementNames()...)
	completeBy(c, "estimates", estimateValues)
	completeOrFile(c, "interference", "seeded:1")
	complete(c, "comm", sim.CommNames()...)
	complete(c, "stream", "auto", "on", "off")
	complete(c, "interference-scope", "gpu", "node")
	return c
}

// traceOf sets file to the argument of a verb that also takes it as --trace.
func traceOf(c *cobra.Command, files []string, file *string) error {
	if len(files) == 0 {
		return nil
	}
	name := files[0]
	if c.Flags().Changed("trace") {
		return fault.Mistakef("%sgot the trace %q and --trace %q, want one of them", verbName(c), name, *file)
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
		return fault.Mistakef("%sthere is no file %q; want the FILE of a trace%s", verbName(c), name, hint)
	}
	*file = name
	return nil
}

// simFlags are the flags whose names differ from the keys of their settings.
var simFlags = map[string]string{
	"policies": "policy", "peer.name": "peer", "simulator.ring.overlap": "overlap", "simulator.failures.mtbf": "mtbf", "simulator.failures.mttr": "mttr",
	"simulator.horizon": "set simulator.horizon",
}

// wrapped joins names into lines that fit the help texts.
func wrapped(names []string) string {
	var b strings.Builder
	width := 30
	for i, n := range names {
		if i > 0 {
			b.WriteString(",")
			if width += len(n) + 2; width > 110 {
				b.WriteString("\n")
				width = len(n)
			} else {
				b.WriteString(" ")
			}
		}
		b.WriteString(n)
	}
	return b.String()
}

// simulate runs cfg, and writes the events and the page if they are requested.
func (a *app) simulate(c *cobra.Command, cfg simulate.Config, played []simulate.Played, events, html, jobsOut string) (report *simulate.Report, err error) {
	ctx, hooks := c.Context(), simulate.Hooks{Now: a.now, Workers: runtime.GOMAXPROCS(0), Models: played}
	line := newStatus(a, unnoticed)
	defer line.clear()
	if line != nil {
		ctx = workload.WithReading(ctx, a.reading(line, cfg.Trace.File))
		hooks.Progress = func(p simulate.Progress) { line.show(func(int) []string { return simParts(p) }) }
	}
	inputs := []string{cfg.Trace.File, cfg.Cluster, cfg.Peer.Factors}
	for _, o := range [][2]string{{"events", events}, {"html", html}, {"jobs-out", jobsOut}} {
		if o[1] == "-" {
			return nil, fault.Mistakef("--%s: got %q, want the path of a file: standard output is for the result", o[0], o[1])
		}
	}
	if events != "" && jobsOut != "" && filepath.Clean(events) == filepath.Clean(jobsOut) {
		return nil, fault.Mistakef("--jobs-out: got %q, which is the file of --events; want another name", jobsOut)
	}
	for _, o := range [][2]string{{"events", events}, {"jobs-out", jobsOut}} {
		if html != "" && o[1] != "" && filepath.Clean(o[1]) == filepath.Clean(html) {
			return nil, fault.Mistakef("--html: got %q, which is the file of --%s; want another name", html, o[0])
		}
	}
	run := func() error {
		report, err = simulate.Run(ctx, cfg, hooks)
		return err
	}
	if events != "" {
		simulate := run
		run = func() error {
			return a.writeTo(events, inputs, func(w io.Writer) error {
				hooks.Events = w
				return simulate()
			})
		}
	}
	if jobsOut != "" {
		simulate := run
		run = func() error {
			return a.writeTo(jobsOut, inputs, func(w io.Writer) error {
				hooks.Jobs = w
				return simulate()
			})
		}
	}
	if html == "" {
		err = run()
		return report, err
	}
	page := simulate.NewSchedulePage(cfg)
	hooks.Observe = page.Observe
	err = a.writeTo(html, inputs, func(w io.Writer) error {
		if err := run(); err != nil {
			return err
		}
		return page.Write(w, report)
	})
	return report, err
}

// simParts returns the parts of the status of a simulation.
func simParts(p simulate.Progress) []string {
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
	return []string{name, jobs, waiting, "simulated " + seconds(math.Round(p.Time.Seconds()))}
}

// reading returns a function that shows on line how many jobs of a trace have been read.
func (a *app) reading(line *status, file string) func(jobs int) {
	if file == "" {
		file = "generated jobs"
	}
	return func(jobs int) {
		line.show(func(width int) []string {
			what := plain.Count(jobs, "job", "jobs")
			return []string{"reading " + texttable.Short(file, max(12, width-len("reading ")-2-len(what))), what}
		})
	}
}
