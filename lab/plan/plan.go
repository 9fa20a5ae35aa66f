package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/rng"
	"clustergym/lab/workload"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/listsched"
)

// Config says which task graphs are planned and how.
type Config struct {
	Graph    string   `yaml:"graph"`     // path of a file of graphs
	Generate string   `yaml:"generate"`  // instead of a file: a graph drawn as in the study worl-rtgs; see GenerateForm
	Format   string   `yaml:"format"`    // one of GraphFormats
	Platform string   `yaml:"platform"`  // path of a file of processors, for graphs without any; "" = none
	Policies []string `yaml:"policies"`  // of Policies
	RankMean string   `yaml:"rank_mean"` // mean communication cost in ranks: one of dag.RankMeans
	Budget   string   `yaml:"budget"`    // see BudgetForms
	Start    string   `yaml:"start"`     // what a search starts from: heft or random
	B        float64  `yaml:"b"`         // shape of a search's spiral
	// single tasks of the best plan that a search in running-time space tries to move in each iteration
	Moves   int     `yaml:"moves"`
	Noise   float64 `yaml:"noise"`     // standard deviation of the logarithms of heft-noise's ranks
	Weights string  `yaml:"generator"` // path of weights of worl-rtgs's generator; "" = those in the program
	Seed    uint64  `yaml:"seed"`
	Workers int     `yaml:"workers"` // goroutines of a search; affects only speed
}

// BudgetForms describes the forms of Config.Budget.
const BudgetForms = "auto, ITERATIONSxWHALES (heft-noise and searches), or a number of nodes (optimum)"

// DefaultConfig returns a configuration that plans with HEFT. Graph or Generate is left to the caller.
func DefaultConfig() Config {
	return Config{
		Format: workload.FormatAuto, Policies: []string{"heft"}, RankMean: string(dag.Pairs), Budget: "auto", Start: "heft",
		B: 1, Noise: DefaultNoise, Seed: 1, Workers: 1,
	}
}

// Policies returns the names of all planners: those of listsched, NoisyPolicy, then SearchPolicies.
func Policies() []string { return append(append(listsched.Policies(), NoisyPolicy), SearchPolicies...) }

// Validate returns an error that names every fault of c that shows without reading the files, or nil.
func (c *Config) Validate() error {
	var l fault.List
	if c.Generate == "" {
		l.Add(c.Graph != "", "graph", c.Graph, "the path of a file; or generate "+GenerateForm)
	} else if _, _, _, _, err := parseGenerate(c.Generate); err != nil {
		l.Join("", err)
	} else {
		l.Add(c.Graph == "", "generate", c.Generate, "one of graph and generate, not both")
	}
	l.Add(slices.Contains(GraphFormats(), c.Format), "format", c.Format, nearest.OneOf(c.Format, GraphFormats()))
	l.Add(len(c.Policies) > 0, "policies", "", "one or more of "+strings.Join(Policies(), ", "))
	for _, p := range c.Policies {
		l.Add(slices.Contains(Policies(), p), "policies", p, nearest.OneOf(p, Policies()))
	}
	l.Add(slices.Contains(dag.RankMeans(), c.RankMean), "rank_mean", c.RankMean,
		nearest.OneOf(c.RankMean, dag.RankMeans()))
	if _, err := parseBudget(c.Budget); err != nil {
		l.Join("", err)
	}
	l.Add(c.Start == "heft" || c.Start == "random", "start", c.Start,
		"heft or random"+nearest.Meant(c.Start, []string{"heft", "random"}))
	l.Add(c.B >= -10 && c.B <= 10, "b", c.B, "a number in [-10, 10]")
	l.Add(c.Moves >= 0 && c.Moves <= 1_000_000_000, "moves", c.Moves, "0 or more")
	l.Add(c.Noise >= 0 && c.Noise <= 10, "noise", c.Noise, "a number in [0, 10]")
	l.Add(c.Workers >= 1, "workers", c.Workers, "1 or more")
	return l.Err()
}

// budget limits a search. The planner chooses the fields that are 0.
type budget struct{ nodes, iterations, whales int }

// parseBudget reads a text of one of BudgetForms.
func parseBudget(s string) (b budget, err error) {
	switch iterations, whales, both := strings.Cut(s, "x"); {
	case s == "auto":
		return b, nil
	case both:
		b.iterations, b.whales = count(iterations, 1, 1_000_000), count(whales, 1, 10_000)
		if b.iterations > 0 && b.whales > 1 {
			return b, nil
		}
	default:
		if b.nodes = count(s, 1, math.MaxInt); b.nodes > 0 {
			return b, nil
		}
	}
	return budget{}, fault.New("budget", s, BudgetForms+"; whales are 2 to 10000")
}

// Document is what gymctl plan --json prints for one graph and policy. Its keys are part of the program's interface.
type Document struct {
	Graph      string      `json:"graph"`
	Tasks      int         `json:"tasks"`
	Edges      int         `json:"edges"`
	Processors int         `json:"processors"`
	Policy     string      `json:"policy"`
	Makespan   float64     `json:"makespan_s"`
	Proven     bool        `json:"proven_optimal"`
	Placements []Placement `json:"placements"`
	Wall       float64     `json:"wall_s"` // of planning, without reading files
}

// Placement says where and when one task runs. A document's placements are in the order of the graph's tasks.
type Placement struct {
	Task      string  `json:"task"`
	Processor string  `json:"processor"`
	Start     float64 `json:"start_s"`
	Finish    float64 `json:"finish_s"`
}

// Result is one plan and the problem that it solves.
type Result struct {
	Document Document
	Problem  *dag.Problem
	Plan     *dag.Plan
	Notes    []string // sentences for people, on what the makespan does not show
}

// Hooks connects planning to its caller.
type Hooks struct {
	Now      func() time.Time                      // the wall clock
	Graph    func(*dag.Problem) error              // called with every graph and its GPUs before planning; may be nil
	Progress func(graph, policy string, p float64) // called with the share of a search that is done; may be nil
}

// Run plans every graph that cfg names with each of its policies, graph by graph, and passes each checked plan to emit
// as soon as it is made. Mistakes in cfg and in files are *fault.Mistakes; plans emitted before an error remain valid.
func Run(ctx context.Context, cfg Config, hooks Hooks, emit func(*Result) error) error {
	if err := cfg.Validate(); err != nil {
		return &fault.Mistake{Err: err}
	}
	var platform *dag.Platform
	if cfg.Platform != "" {
		p, err := readPlatform(ctx, cfg.Platform)
		if err != nil {
			return &fault.Mistake{Err: err}
		}
		platform = p
	}
	open := openGraphs
	if cfg.Generate != "" {
		open = func(context.Context, string, string) (*graphSource, error) { return generateGraph(cfg.Generate) }
	}
	src, err := open(ctx, cfg.Graph, cfg.Format)
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it was only read
	for {
		g, own, at, err := src.next()
		if err == io.EOF {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return &fault.Mistake{Err: err}
		}
		if own == nil {
			own = platform
		}
		if own == nil {
			return fault.Mistakef("%s: the graph has no processors; want %s FILE, a JSON object of processors and bandwidth", at,
				fault.Key("platform"))
		}
		q, err := dag.NewProblem(g, own)
		if err != nil {
			return fault.Mistakef("%s: %w", at, err)
		}
		if hooks.Graph != nil {
			if err := hooks.Graph(q); err != nil {
				return err
			}
		}
		for _, policy := range cfg.Policies {
			r, err := planOne(ctx, q, policy, &cfg, hooks)
			if err != nil {
				return err
			}
			if err := emit(r); err != nil {
				return err
			}
		}
	}
}

// planOne plans q with one policy, checks the plan and fills the document.
func planOne(ctx context.Context, q *dag.Problem, policy string, cfg *Config, hooks Hooks) (*Result, error) {
	begin := hooks.Now()
	r := &Result{Problem: q}
	if err := r.plan(ctx, policy, cfg, hooks); err != nil {
		return nil, err
	}
	wall := hooks.Now().Sub(begin)
	// eft-index assumes that transfers take no time, so its plans are checked without them.
	if err := dag.Check(q, r.Plan, policy != "eft-index"); err != nil {
		return nil, fmt.Errorf("%s of %s is no schedule: %w", policy, q.Graph.Name, err)
	}
	if policy == "eft-index" && q.Graph.Bytes() > 0 && q.Procs() > 1 {
		r.Notes = append(r.Notes,
			fmt.Sprintf("%s: eft-index is the rule of a model without transfers: its times are without them", q.Graph.Name))
	}
	d := &r.Document
	d.Graph, d.Tasks, d.Edges, d.Processors = q.Graph.Name, q.Tasks(), q.Graph.Edges(), q.Procs()
	d.Policy, d.Makespan, d.Wall = policy, r.Plan.Makespan, wall.Seconds()
	d.Placements = make([]Placement, q.Tasks())
	for i := range d.Placements {
		d.Placements[i] = Placement{
			Task: q.Graph.Task(int32(i)).ID, Processor: q.Platform.Processor(int(r.Plan.Proc[i])).ID,
			Start: r.Plan.Start[i], Finish: r.Plan.Finish[i],
		}
	}
	return r, nil
}

// plan sets r.Plan with the planner that policy names.
func (r *Result) plan(ctx context.Context, policy string, cfg *Config, hooks Hooks) error {
	o := listsched.Options{RankMean: dag.RankMean(cfg.RankMean)}
	limit, err := parseBudget(cfg.Budget)
	if err != nil {
		return err
	}
	if slices.Contains(SearchPolicies, policy) {
		return r.search(ctx, policy, cfg, limit, hooks)
	}
	if policy == NoisyPolicy {
		r.Plan, err = listsched.New(r.Problem,
			o).NoisyHEFT(ctx, Plans(limit.of(policy, r.Problem)), cfg.Noise, rng.Stream(cfg.Seed, "plan/"+policy))
		return err
	}
	if policy == "optimum" {
		x, err := listsched.Optimum(ctx, r.Problem, o, limit.nodes)
		if err != nil {
			return err
		}
		r.Plan, r.Document.Proven = x.Plan, x.Proven
		if !x.Proven {
			how := fmt.Sprintf("the search stopped after %d nodes", x.Nodes)
			if x.Nodes == 0 {
				how = fmt.Sprintf("graphs of more than %d tasks are not searched", listsched.ExactMost)
			}
			r.Notes = append(r.Notes, fmt.Sprintf("%s: %v s is not proven to be the least: %s; it cannot be below %v s",
				r.Problem.Graph.Name, x.Plan.Makespan, how, x.Bound))
		}
		return nil
	}
	r.Plan, err = listsched.New(r.Problem, o).Plan(ctx, policy, rng.Stream(cfg.Seed, "plan/"+policy))
	return err
}

// existing returns a mistake if the path given for key does not exist or is a folder.
func existing(key fault.Key, path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fault.Mistakef("%s: there is no file %s", key, path)
	case err == nil && st.IsDir():
		return fault.Mistakef("%s: %s is a folder, want a file", key, path)
	}
	return nil
}
