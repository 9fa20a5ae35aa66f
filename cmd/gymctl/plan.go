package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"clustergym/env/dag"
	"clustergym/experiments"
)

func planVerb(a *app) *cobra.Command {
	cfg := experiments.DefaultPlanConfig()
	var asJSON bool
	c := &cobra.Command{
		Use:   "plan",
		Short: "Plan task graphs on heterogeneous GPUs",
		Long: `plan reads task graphs, decides on which GPU each task runs and when, and prints the makespan. A task takes as long as
its GPU is fast; what it sends to another GPU takes the bytes over the bandwidth between them.

A file holds one graph or several: dag-json (tasks, edges, processors, bandwidth; one object after the other), wfformat
(WfCommons 1.5, 1.6) or alibaba (the batch tasks of cluster-trace-v2018). gzip and zstd are unpacked. The latter two
have no processors: --platform names a JSON file of them, {"processors": [{"id": 0, "speed": 2}, …], "bandwidth": …}.

With --json there is one document a line, in the order of graphs, and of policies where there are several. Numbers have
all their digits. Every plan is checked before it is printed. docs/planning.md has the formats and every rule with
its source.

Policies: ` + wrapped(experiments.PlanPolicies()) + `.`,
		Example: `  gymctl plan --graph diamond.json
  gymctl plan --graph graphs.jsonl.gz --policy heft,cpop,peft --json
  gymctl plan --graph montage.json --format wfformat --platform five.json --policy optimum --budget 1000000`,
		Args: args(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := cfg.Validate(); err != nil {
				return flagFaults(err, map[string]string{"policies": "policy"})
			}
			hooks := experiments.PlanHooks{Now: a.now}
			if isTerminal(a.stderr) {
				hooks.Progress = func(graph, policy string, share float64) {
					_, _ = fmt.Fprintf(a.stderr, "\r\x1b[K%s, %s: %.0f %%", graph, policy, 100*share)
					if share >= 1 {
						_, _ = fmt.Fprint(a.stderr, "\r\x1b[K")
					}
				}
			}
			var all []*experiments.PlanResult
			err := experiments.PlanGraphs(c.Context(), cfg, hooks, func(r *experiments.PlanResult) error {
				for _, n := range r.Notes {
					a.notef("%s", n)
				}
				if asJSON {
					return a.json(&r.Document)
				}
				all = append(all, r)
				return nil
			})
			if len(all) > 0 { // what was planned before a fault is of use
				if err := experiments.WritePlanTable(a.stdout, all); err != nil {
					return err
				}
			}
			if hooks.Progress != nil && errors.Is(err, context.Canceled) {
				_, _ = fmt.Fprintln(a.stderr)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.Graph, "graph", cfg.Graph, "`FILE` of task graphs")
	f.StringVar(&cfg.Format, "format", cfg.Format, "auto, dag-json, wfformat or alibaba")
	f.StringVar(&cfg.Platform, "platform", cfg.Platform, "`FILE` of processors and bandwidth, for graphs that have none")
	f.StringSliceVar(&cfg.Policies, "policy", cfg.Policies, "how to plan; several are joined by commas")
	f.StringVar(&cfg.RankMean, "rank-mean", cfg.RankMean, "mean communication cost in ranks: pairs, mean-bandwidth or self-pairs")
	f.StringVar(&cfg.Budget, "budget", cfg.Budget, "of a search: "+experiments.PlanBudgetForms)
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "of whatever is drawn")
	f.IntVar(&cfg.Workers, "workers", runtime.GOMAXPROCS(0), "`N` goroutines of a search; changes nothing but speed")
	f.BoolVar(&asJSON, "json", false, "print one JSON document a line for each graph and policy")
	complete(c, "format", experiments.GraphFormats()...)
	complete(c, "policy", experiments.PlanPolicies()...)
	complete(c, "rank-mean", dag.RankMeans()...)
	return c
}
