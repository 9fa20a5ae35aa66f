package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/env/cluster"
	"clustergym/env/heuristic"
	"clustergym/env/sim"
	"clustergym/experiments"
)

func simVerb(a *app) *cobra.Command {
	cfg := experiments.DefaultSimConfig()
	generated := cfg.Cluster
	cfg.Cluster = ""
	var asJSON bool
	var events string
	c := &cobra.Command{
		Use:   "sim",
		Short: "Simulate heuristics over a trace",
		Long: `sim runs a workload on a cluster under one heuristic, or under several, one after the other, and prints what
became of the jobs: completion times (JCT = finish - submit), waits, slowdowns, makespan and utilisation.

The workload is a trace (gymctl trace formats lists what can be read; gzip and zstd are unpacked) or, without
--trace, one that is generated after the published statistics of the Philly cluster.

A policy is an order and an admission: fifo+strict stops at the first job that does not fit, fifo+skip steps over
it. A policy that names no admission takes --admission, else skip where it preempts running jobs and strict where
it does not. --horizon counts from the first submit. Jobs that can never fit the cluster are a mistake, unless
--drop-refused says to run without them; the JSON document counts them in trace.refused, and jobs that the
horizon cut off in metrics.unfinished.

Orders: ` + strings.Join(heuristic.Orders(), ", ") + `.
Placements: ` + strings.Join(cluster.PlacementNames(), ", ") + `.
Clusters: ` + strings.Join(experiments.ClusterPresets(), ", ") + `, a YAML file,
pool:N (a plain counter of N GPUs or processors), swf-N (the same), NxG (N nodes of G GPUs).`,
		Example: `  gymctl sim --policy fifo,fifo+skip,sjf,srtf
  gymctl trace synth --jobs 500 --seed 7 -o jobs.csv.gz
  gymctl sim --trace jobs.csv.gz --cluster pool:64 --policy sjf+skip --json
  gymctl sim --trace jobs.csv.gz --cluster 16x8 --policy las --comm tree --placement closest-b --drop-refused
  gymctl sim --trace jobs.csv.gz --cluster philly-192 --policy sjf --events events.jsonl.gz --warmup 50 --tail 50`,
		Args: args(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			switch fromFile := cfg.Trace.File != ""; {
			case !fromFile && c.Flags().Changed("trace"):
				return mistake(`--trace: got "", want the path of a file`)
			case fromFile && cfg.Cluster == "":
				return mistake("--cluster is missing; want %s", experiments.ClusterForms)
			case !fromFile:
				if cfg.Cluster == "" {
					cfg.Cluster = generated
				}
				cfg.Trace.Seed = cfg.Seed
				if n := cfg.Trace.Skip + cfg.Trace.Jobs; cfg.Trace.Jobs > 0 && n > 0 {
					cfg.Trace.Synth.Jobs = n // as many as are asked for
				}
			}
			if err := cfg.Validate(); err != nil {
				return flagFaults(err, map[string]string{"policies": "policy"})
			}
			report, err := a.simulate(c, cfg, events)
			if err != nil {
				return err
			}
			for _, n := range report.Notes {
				a.notef("%s", n)
			}
			if asJSON {
				return a.json(report)
			}
			return report.WriteTable(a.stdout)
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.Trace.File, "trace", cfg.Trace.File, "trace `FILE`; without it jobs are generated")
	traceFlags(c, &cfg.Trace)
	f.StringVar(&cfg.Cluster, "cluster", cfg.Cluster, "preset, `FILE`, pool:N, swf-N or NxG (needed with --trace; else "+generated+")")
	f.StringSliceVar(&cfg.Policies, "policy", cfg.Policies, "heuristics, joined by commas: `ORDER` or ORDER+ADMISSION")
	f.StringVar(&cfg.Admission, "admission", cfg.Admission, "strict or skip, for policies that do not name theirs")
	f.StringVar(&cfg.Placement, "placement", cfg.Placement, "which GPUs a job gets")
	f.StringVar(&cfg.Estimates, "estimates", cfg.Estimates, "run times that orders are told: exact, trace, noisy:SIGMA")
	f.StringVar(&cfg.Comm, "comm", cfg.Comm, "how a placement slows a gang down: "+strings.Join(sim.CommNames(), " or "))
	f.DurationVar(&cfg.Restart, "restart", cfg.Restart, "work added to a job whenever it is started again, as 40s")
	f.DurationVar(&cfg.Horizon, "horizon", cfg.Horizon, "cut the run off this long after the first submit, as 72h; 0s = never")
	f.IntVar(&cfg.Warmup, "warmup", cfg.Warmup, "do not count the first `N` jobs")
	f.IntVar(&cfg.Tail, "tail", cfg.Tail, "do not count the last `N` jobs")
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "of random orders, noisy estimates and generated jobs")
	f.BoolVar(&cfg.DropRefused, "drop-refused", cfg.DropRefused, "leave out jobs that can never fit the cluster")
	f.StringVar(&events, "events", "", "write every event to `FILE` as a JSON line, packed if it ends in .gz or .zst")
	f.BoolVar(&asJSON, "json", false, `print one JSON document; of several policies {"runs":[…]}`)
	var policies []string
	for _, o := range heuristic.Orders() {
		policies = append(policies, o)
		for _, ad := range experiments.Admissions() {
			policies = append(policies, o+"+"+ad)
		}
	}
	complete(c, "policy", policies...)
	complete(c, "admission", experiments.Admissions()...)
	complete(c, "placement", cluster.PlacementNames()...)
	complete(c, "estimates", "exact", "trace", "noisy:0.5")
	complete(c, "comm", sim.CommNames()...)
	return c
}

// simulate runs cfg and writes the events where that is asked for.
func (a *app) simulate(c *cobra.Command, cfg experiments.SimConfig, events string) (report *experiments.SimReport, err error) {
	hooks := experiments.SimHooks{Now: a.now}
	if events == "" {
		return experiments.Simulate(c.Context(), cfg, hooks)
	}
	if events == "-" {
		return nil, mistake("--events: got %q, want the path of a file: standard output is for the result", events)
	}
	err = a.writeTo(events, []string{cfg.Trace.File, cfg.Cluster}, func(w io.Writer) error {
		hooks.Events = w
		report, err = experiments.Simulate(c.Context(), cfg, hooks)
		return err
	})
	return report, err
}
