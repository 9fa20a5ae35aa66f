package plan

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"

	"clustergym/agents"
	"clustergym/agents/ddqn"
	"clustergym/agents/woa"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/listsched"
)

// SearchPolicies are the names of the whale optimisation searches, which spend a budget of iterations and whales.
var SearchPolicies = []string{"woa", "rtgs", "rtgs-released", "worl-rtgs", "whale-ranks", "worl-ranks"}

// NoisyPolicy is the best of noisy plans of HEFT. It makes as many plans as a search does with the same budget.
const NoisyPolicy = "heft-noise"

// DefaultNoise is the standard deviation of the logarithms of NoisyPolicy's ranks that did best on graphs which the
// study worl-rtgs does not report.
const DefaultNoise = 0.1

// Plans returns the number of plans that a search of a budget makes: the first population, then all whales but the
// leader.
func Plans(iterations, whales int) int { return whales + iterations*(whales-1) }

// GeneratorWeights are the weights that TrainGenerator returns for DefaultGeneratorConfig and seed 1, as safetensors.
// gymctl plan --train-generator writes the same bytes.
//
//go:embed generator.safetensors
var GeneratorWeights []byte

// SearchConfig returns the configuration of the search that policy, one of SearchPolicies, names.
func SearchConfig(policy string) woa.Config {
	c := woa.DefaultConfig()
	switch policy {
	case "woa":
		c.Generator = "direct"
	case "rtgs-released":
		c.Position = "final"
	case "worl-rtgs":
		c.Generator = "policy"
	case "whale-ranks":
		c.Space = "ranks"
	case "worl-ranks":
		c.Space, c.Generator = "ranks", "policy"
	}
	return c
}

// AutoBudget returns the budget of a search over n tasks on m processors: 100 iterations of 30 whales for small graphs
// and fewer of both for larger ones, so that a plan takes some tens of seconds at most on two processors. It depends
// only on its arguments, so a plan can be repeated.
func AutoBudget(policy string, n, m int) (iterations, whales int) {
	// The cost of one plan, counted in evaluations of a task on a processor. The policy's network costs some hundreds of
	// them for each task.
	each := float64(n) * float64(m+20)
	switch policy {
	case "worl-rtgs":
		each = float64(n) * float64(3*m+600)
	case "worl-ranks": // it asks the network for few tasks
		each = float64(n) * float64(m+100)
	}
	const most = 1.7e9
	for _, b := range [][2]int{{100, 30}, {100, 20}, {60, 20}, {40, 16}, {30, 12}, {20, 10}, {10, 8}, {5, 6}} {
		if float64(b[0])*float64(b[1])*each <= most {
			return b[0], b[1]
		}
	}
	return 3, 4
}

// search plans with the whale optimisation search that policy names.
func (r *Result) search(ctx context.Context, policy string, cfg *Config, limit budget, hooks Hooks) error {
	q := r.Problem
	c := SearchConfig(policy)
	c.B, c.Moves = cfg.B, cfg.Moves
	c.Iterations, c.Whales = limit.of(policy, q)
	var seeds []*dag.Plan
	if cfg.Start == "heft" {
		seeds = append(seeds, listsched.New(q, listsched.Options{RankMean: dag.RankMean(cfg.RankMean)}).HEFT(true).Clone())
	}
	h := woa.Hooks{}
	if c.Generator == "policy" {
		weights := GeneratorWeights
		if cfg.Weights != "" {
			if err := existing("generator", cfg.Weights); err != nil {
				return err
			}
			var err error
			if weights, err = ordinary.Read(cfg.Weights, ordinary.Document); err != nil {
				return err
			}
		}
		h.Policy = GeneratorPolicies(DefaultGeneratorConfig(), weights)
		if _, err := h.Policy(); err != nil {
			return fault.Mistakef("%s %s: %w", fault.Key("generator"), cfg.Weights, err)
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

// of returns the budget's iterations and whales for q, the automatic ones if it has none.
func (b budget) of(policy string, q *dag.Problem) (iterations, whales int) {
	if b.iterations > 0 {
		return b.iterations, b.whales
	}
	return AutoBudget(policy, q.Tasks(), q.Procs())
}

// GeneratorPolicies returns a function that makes a new policy, for woa.Hooks.Policy, from the weights of a generator
// that was trained with c. The function returns an error if the weights do not fit c's network.
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
