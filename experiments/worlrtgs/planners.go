package worlrtgs

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"clustergym/agents/woa"
	"clustergym/experiments/study"
	"clustergym/internal/ordinary"
	"clustergym/internal/rng"
	"clustergym/lab/plan"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/listsched"
)

// planner is one planner of the study.
type planner struct {
	name   string
	drawn  bool   // its plans depend on the seed
	policy string // of plan.Policies, drasPolicy or pickPolicy
	start  string // of a search, as plan.Config.Start
	hopes  string // of a search, as woa.Config.Hopes; "" = whales
	still  bool   // places no task at random, so that plans differ by their hopes alone
	part   bool   // shows what a part of another planner does; not run on recorded jobs and small graphs
}

// allPlanners are in the order of the tables.
var allPlanners = []planner{
	{name: "random", drawn: true, policy: "random"},
	{name: "eft-index", policy: "eft-index"},
	{name: "heft", policy: "heft"},
	{name: "heft-noinsert", policy: "heft-noinsert"},
	{name: "cpop", policy: "cpop"},
	{name: "peft", policy: "peft"},
	{name: "heft-noise", drawn: true, policy: plan.NoisyPolicy},
	{name: "queue-random", drawn: true, policy: pickPolicy},
	{name: "dras-like", policy: drasPolicy},
	{name: "woa", drawn: true, policy: "woa", start: "random"},
	{name: "rtgs-released", drawn: true, policy: "rtgs-released", start: "random"},
	{name: "rtgs", drawn: true, policy: "rtgs", start: "random"},
	{name: "worl-rtgs", drawn: true, policy: "worl-rtgs", start: "random"},
	{name: "worl-rtgs+heft", drawn: true, policy: "worl-rtgs", start: "heft"},
	{name: "worl-ranks", drawn: true, policy: "worl-ranks", start: "random"},
	{name: "worl-ranks+heft", drawn: true, policy: "worl-ranks", start: "heft"},
	{name: stillRanks, drawn: true, policy: "worl-ranks", start: "heft", hopes: "random"},
	{name: "woa+heft", drawn: true, policy: "woa", start: "heft", part: true},
	{name: "rtgs+heft", drawn: true, policy: "rtgs", start: "heft", part: true},
	{name: hopefulPlanner, drawn: true, policy: "worl-rtgs", start: "heft", part: true},
	{name: "worl-rtgs still", drawn: true, policy: "worl-rtgs", start: "heft", still: true, part: true},
	{name: "worl-rtgs random", drawn: true, policy: "worl-rtgs", start: "heft", hopes: "random", part: true},
	{name: "worl-rtgs leader", drawn: true, policy: "worl-rtgs", start: "heft", hopes: "leader", part: true},
	{name: "worl-ranks leader", drawn: true, policy: "worl-ranks", start: "heft", hopes: "leader", part: true},
	{name: "whale-ranks+heft", drawn: true, policy: "whale-ranks", start: "heft", part: true},
}

// stillRanks is worl-ranks+heft without whales: every plan is drawn anew around HEFT's ranks.
const stillRanks = "worl-ranks random"

// hopefulPlanner is worl-rtgs+heft with a generator that learned to follow hopes (plan.GeneratorConfig.Hopeful).
const hopefulPlanner = "worl-rtgs hopeful"

// sixPlanners are ranked among each other on all graphs, as the paper ranks six methods.
var sixPlanners = []string{"heft", "cpop", "dras-like", "woa", "rtgs", "worl-rtgs"}

func plannerNames() []string {
	var names []string
	for _, p := range allPlanners {
		names = append(names, p.name)
	}
	return names
}

// run plans q. b is the shape of a search's spiral, and learnt holds the weights for the seed.
func (p *planner) run(ctx context.Context, q *dag.Problem, s *settings, b float64, seed uint64, learnt trained,
	workers int) (*dag.Plan, error) {
	l := listsched.New(q, listsched.Options{})
	switch p.policy {
	case drasPolicy:
		return playDRAS(ctx, q, &s.DRASAgent, learnt.dras)
	case pickPolicy:
		return playQueue(q, rng.Stream(seed, "worl-rtgs/"+pickPolicy))
	case plan.NoisyPolicy:
		plans := plan.Plans(s.budget(p.policy, q.Tasks(), q.Procs()))
		return l.NoisyHEFT(ctx, plans, plan.DefaultNoise, rng.Stream(seed, "worl-rtgs/"+plan.NoisyPolicy))
	}
	if !slices.Contains(plan.SearchPolicies, p.policy) {
		plan, err := l.Plan(ctx, p.policy, rng.Stream(seed, "worl-rtgs/random"))
		if err == nil && p.policy == "eft-index" {
			// Its rule ignores transfers. Its processors are kept and get times that count transfers.
			e := dag.NewEvaluator(q, nil)
			e.Makespan(plan.Proc)
			e.Plan(plan)
		}
		return plan, err
	}
	c := plan.SearchConfig(p.policy)
	c.B = b
	if p.hopes != "" {
		c.Hopes = p.hopes
	}
	if p.still {
		c.Explore = 0
	}
	c.Iterations, c.Whales = s.budget(p.policy, q.Tasks(), q.Procs())
	var seeds []*dag.Plan
	if p.start == "heft" {
		seeds = append(seeds, l.HEFT(true).Clone())
	}
	how, weights := s.generator(), learnt.generator
	if p.name == hopefulPlanner {
		how, weights = s.Generator, learnt.hopeful
	}
	r, err := woa.Search(ctx, q, c, seeds, seed, workers, woa.Hooks{Policy: plan.GeneratorPolicies(how, weights)})
	if err != nil {
		return nil, err
	}
	return r.Plan, nil
}

// budget returns the budget of a search over n tasks on m processors. The study's own budget applies to all searches
// alike, unless the automatic budget of worl-rtgs is smaller: then that one does, so that all searches of a graph make
// equally many plans.
func (s *settings) budget(policy string, n, m int) (iterations, whales int) {
	if s.Iterations == 0 {
		return plan.AutoBudget(policy, n, m)
	}
	iterations, whales = plan.AutoBudget("worl-rtgs", n, m)
	if s.Iterations*s.Whales < iterations*whales {
		return s.Iterations, s.Whales
	}
	return iterations, whales
}

// generator returns the configuration that weightsFor's generator was trained with.
func (s *settings) generator() plan.GeneratorConfig {
	if s.Generators == 0 {
		return plan.DefaultGeneratorConfig() // the weights in the program
	}
	return s.Generator
}

// trained holds the weights of the networks.
type trained struct{ generator, hopeful, dras []byte }

// weightsFor returns the weights for a seed: those that the study trained, or the program's generator if the study
// trains none.
func weightsFor(b *study.Bench, s *settings, seed int) (l trained, err error) {
	if l.dras, err = ordinary.Read(filepath.Join(b.WorkOf(drasKey), "dras.safetensors"), ordinary.Document); err != nil {
		return l, err
	}
	if s.Hopeful > 0 {
		if l.hopeful, err = ordinary.Read(filepath.Join(b.WorkOf(hopefulKey), "generator.safetensors"),
			ordinary.Document); err != nil {
			return l, err
		}
	}
	l.generator = plan.GeneratorWeights
	if s.Generators > 0 {
		l.generator, err = ordinary.Read(filepath.Join(b.WorkOf(generatorKey(seed%s.Generators)), "generator.safetensors"),
			ordinary.Document)
	}
	return l, err
}

// hopefulKey is the key of the cell that trains the generator of hopefulPlanner.
const hopefulKey = "generator/hopeful"

// generatorKey returns the key of the cell that trains generator k.
func generatorKey(k int) string { return fmt.Sprintf("generator/seed=%d", k+1) }
