package plan

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"

	"clustergym/agents"
	"clustergym/agents/ddqn"
	"clustergym/agents/woa"
	"clustergym/env/dag"
	"clustergym/env/dag/listsched"
	"clustergym/experiments/workload"
)

// searchPolicies are the planners that spend a budget.
var SearchPolicies = []string{"woa", "rtgs", "rtgs-released", "worl-rtgs"}

// generatorWeights are those of TrainGenerator with DefaultGeneratorConfig and seed 1: gymctl plan --train-generator
// writes the same file.
//
//go:embed generator.safetensors
var GeneratorWeights []byte

// searchConfig is the search that a policy's name stands for.
func SearchConfig(policy string) woa.Config {
	c := woa.DefaultConfig()
	switch policy {
	case "woa":
		c.Generator = "direct"
	case "rtgs-released":
		c.Position = "final"
	case "worl-rtgs":
		c.Generator = "policy"
	}
	return c
}

// autoBudget is the budget of a search over n tasks on m processors: 100 iterations of 30 whales on small graphs, and
// on larger ones fewer of both, so that a plan takes some tens of seconds at most on two processors. It depends on
// nothing else, so that a plan can be repeated.
func AutoBudget(policy string, n, m int) (iterations, whales int) {
	// What one plan costs, in evaluations of a task on a processor; the policy's network costs as much as some hundreds.
	each := float64(n) * float64(m+20)
	if policy == "worl-rtgs" {
		each = float64(n) * float64(3*m+600)
	}
	const most = 1.7e9
	for _, b := range [][2]int{{100, 30}, {100, 20}, {60, 20}, {40, 16}, {30, 12}, {20, 10}, {10, 8}, {5, 6}} {
		if float64(b[0])*float64(b[1])*each <= most {
			return b[0], b[1]
		}
	}
	return 3, 4
}

// search plans by whale optimisation.
func (r *Result) search(ctx context.Context, policy string, cfg *Config, budget planBudget, hooks Hooks) error {
	q := r.Problem
	c := SearchConfig(policy)
	c.B, c.Moves = cfg.B, cfg.Moves
	c.Iterations, c.Whales = AutoBudget(policy, q.Tasks(), q.Procs())
	if budget.iterations > 0 {
		c.Iterations, c.Whales = budget.iterations, budget.whales
	}
	var seeds []*dag.Plan
	if cfg.Start == "heft" {
		seeds = append(seeds, listsched.New(q, listsched.Options{RankMean: dag.RankMean(cfg.RankMean)}).HEFT(true).Clone())
	}
	h := woa.Hooks{}
	if policy == "worl-rtgs" {
		weights := GeneratorWeights
		if cfg.Weights != "" {
			if err := existing("generator", cfg.Weights); err != nil {
				return err
			}
			var err error
			if weights, err = os.ReadFile(cfg.Weights); err != nil {
				return err
			}
		}
		h.Policy = GeneratorPolicies(DefaultGeneratorConfig(), weights)
		if _, err := h.Policy(); err != nil {
			return workload.Mistake("--generator %s: %w", cfg.Weights, err)
		}
	}
	if hooks.Progress != nil {
		h.Progress = func(share, _ float64) { hooks.Progress(q.Graph.Name, policy, share) }
	}
	found, err := woa.Search(ctx, q, c, seeds, cfg.Seed, cfg.Workers, h)
	if err != nil {
		return err
	}
	r.Plan = found.Plan
	return nil
}

// generatorPolicies makes policies of a generator's weights.
func GeneratorPolicies(c GeneratorConfig, weights []byte) func() (agents.Policy, error) {
	return func() (agents.Policy, error) {
		spec, err := woa.PolicySpec(c.Place.Slots)
		if err != nil {
			return nil, err
		}
		p, err := ddqn.NewPolicy(c.Learner, spec, bytes.NewReader(weights))
		if err != nil {
			return nil, fmt.Errorf("the generator's weights: %w", err)
		}
		return p, nil
	}
}
