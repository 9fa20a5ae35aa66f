package start

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/lab/plan"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/dagjson"
)

// planOptions are the flags of plan, and what comes of them.
type planOptions struct {
	cfg           plan.Config
	trained, kept string
	plans         []*plan.Result
}

func planVerb(a *cli.App) *cobra.Command {
	o := &planOptions{cfg: plan.DefaultConfig()}
	c := &cobra.Command{
		Use:   "plan",
		Short: "Plan task graphs on heterogeneous GPUs",
		Long: `plan reads task graphs, decides on which GPU each task runs and when, and prints the makespan. A task's time
depends on the speed of its GPU; a transfer to another GPU takes the bytes over the bandwidth between them.

A file holds one or more graphs: dag-json (tasks, edges, processors, bandwidth; one object after another), wfformat
(WfCommons 1.5, 1.6) or alibaba (the batch tasks of cluster-trace-v2018). Packed files are unpacked. wfformat and
alibaba have no processors: --platform names a JSON file of them, {"processors": [{"id": 0, "speed": 2}, …], "bandwidth": …}.
--generate draws a graph and GPUs instead of reading them: alibaba (instances of recorded batch jobs), degree-1,
degree-3, degree-100 (tasks with that many edges on average), training (layers in pipeline and data parallel); DRAW is
the number of the draw, 0 if not given. -o FILE saves the graphs and their GPUs as dag-json.

--json prints one document per line, in the order of the graphs and then of the policies. Numbers have all their
digits. Every plan is checked before it is printed. docs/guides/plan.md has the formats and every rule with
its source.

heft-noise is the best of many plans of HEFT whose ranks carry noise (--noise). The policies after it are searches that move
a population of plans towards its best one: plain whale optimisation (woa), the same in running-time space with a greedy
generator of plans (rtgs, and as published rtgs-released), and with a generator that was trained by double deep
Q-learning (worl-rtgs, WORL-RTGS-like). whale-ranks and worl-ranks (ours) move ranks instead, from which HEFT's rule makes
plans in both directions. Searches start from HEFT's plan, so they are never worse (--start random: without it), and give
the same result for a seed and a budget; with a budget, heft-noise makes as many plans as they do. The program contains
weights of the generator; --train-generator FILE trains new ones, in a few minutes, and --generator FILE uses them.

Policies: ` + options.Wrapped(plan.Policies()) + `.`,
		Example: `  gymctl plan --generate degree-3:200x20 -o graph.json
  gymctl plan --graph graph.json --policy heft,cpop,peft --json
  gymctl plan --graph graph.json --policy heft,worl-rtgs --budget 50x20 --start random
  gymctl plan --generate alibaba:10x3 --policy heft,optimum --budget 1000000`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(a, c) },
	}
	o.flags(c)
	return c
}

func (o *planOptions) flags(c *cobra.Command) {
	f, cfg := c.Flags(), &o.cfg
	f.StringVar(&cfg.Graph, "graph", cfg.Graph, "`FILE` of task graphs")
	f.StringVar(&cfg.Generate, "generate", cfg.Generate, "plan a drawn graph: `"+plan.GenerateForm+"`")
	f.StringVarP(&o.kept, "output", "o", "", "write the graphs and their GPUs to `FILE`, as dag-json")
	f.StringVar(&cfg.Format, "format", cfg.Format, "auto, dag-json, wfformat or alibaba")
	f.StringVar(&cfg.Platform, "platform", cfg.Platform, "`FILE` of processors and bandwidth, for graphs that have none")
	f.StringSliceVar(&cfg.Policies, "policy", cfg.Policies, "planning policies, joined by commas")
	f.StringVar(&cfg.RankMean, "rank-mean", cfg.RankMean,
		"mean communication cost in ranks: pairs, mean-bandwidth or self-pairs")
	f.StringVar(&cfg.Budget, "budget", cfg.Budget, "budget of a search: "+plan.BudgetForms)
	f.StringVar(&cfg.Start, "start", cfg.Start, "what a search starts from: heft or random")
	f.Float64Var(&cfg.B, "b", cfg.B, "shape of a search's spiral")
	f.IntVar(&cfg.Moves, "moves", cfg.Moves,
		"single tasks of the best plan that woa, rtgs and worl-rtgs try to move in each iteration")
	f.Float64Var(&cfg.Noise, "noise", cfg.Noise, "of heft-noise: standard deviation of the logarithms of ranks")
	f.StringVar(&cfg.Weights, "generator", cfg.Weights,
		"`FILE` of weights of worl-rtgs and worl-ranks, instead of those in the program")
	f.StringVar(&o.trained, "train-generator", "",
		"train the generator of worl-rtgs, write its weights to `FILE`, and plan nothing")
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of everything drawn")
	options.WorkersFlag(c, &cfg.Workers)
	f.Bool("json", false, "print one JSON document per line for each graph and policy")
	cli.Apart(c, []string{"train-generator"}, "graph", "generate", "output")
	cli.Complete(c, "format", plan.GraphFormats()...)
	cli.CompleteList(c, "policy", func(*cobra.Command, string) []string { return plan.Policies() })
	cli.Complete(c, "start", "heft", "random")
	cli.Complete(c, "rank-mean", dag.RankMeans()...)
}

// run plans, and prints the plans.
func (o *planOptions) run(a *cli.App, c *cobra.Command) error {
	if c.Flags().Changed("train-generator") {
		return trainGenerator(a, c, o.trained, o.cfg)
	}
	if o.kept == "-" {
		return fault.Mistakef("--output: got \"-\", want the path of a file: plans go to standard output")
	}
	if err := o.cfg.Validate(); err != nil {
		return cli.FlagFaults(c, err, map[string]string{"policies": "policy", "rank_mean": "rank-mean"})
	}
	line := cli.NewStatus(a, 0)
	defer line.Clear()
	hooks := plan.Hooks{Now: a.Now, Progress: func(graph, policy string, share float64) {
		line.Show(func(int) []string {
			return []string{fmt.Sprintf("%s, %s", graph, policy), fmt.Sprintf("%.0f %%", 100*share)}
		})
		if share >= 1 {
			line.Clear()
		}
	}}
	var err error
	if o.kept == "" {
		err = o.plan(a, c, hooks)
	} else {
		err = a.WriteFile(o.kept, []string{o.cfg.Graph, o.cfg.Platform, o.cfg.Weights}, func(w io.Writer) error {
			hooks.Graph = func(q *dag.Problem) error { return dagjson.Write(w, q.Graph, q.Platform) }
			return o.plan(a, c, hooks)
		})
	}
	if len(o.plans) > 0 { // plans made before an error are still useful
		if err := plan.WriteTable(a.People(), o.plans); err != nil {
			return err
		}
	}
	return err
}

// plan makes all plans. It prints each as JSON, or keeps it.
func (o *planOptions) plan(a *cli.App, c *cobra.Command, hooks plan.Hooks) error {
	return plan.Run(c.Context(), o.cfg, hooks, func(r *plan.Result) error {
		a.Notes(r.Notes)
		if cli.AsJSON(c) {
			return a.JSON(&r.Document)
		}
		o.plans = append(o.plans, r)
		return nil
	})
}

// trainGenerator runs --train-generator.
func trainGenerator(a *cli.App, c *cobra.Command, file string, cfg plan.Config) error {
	if file == "" || file == "-" {
		return fault.Mistakef("--train-generator: got %q, want the path of a file", file)
	}
	g, err := plan.TrainGenerator(c.Context(), plan.DefaultGeneratorConfig(), cfg.Seed, cfg.Workers,
		func(step int, ratio float64) {
			a.Notef("step %d: makespans are %.4f times HEFT's", step, ratio)
		})
	if err != nil {
		return err
	}
	return a.WriteBytes(file, g.Weights)
}
