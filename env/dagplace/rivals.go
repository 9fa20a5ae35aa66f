package dagplace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/nearest"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/listsched"
)

// Rule is a simple policy that agents are compared with. It acts through the action space: it takes the tasks in the
// environment's order and knows the processors that are offered.
type Rule struct {
	sched.Rule
	cost func(p *episode, g int32) float64 // of processor g for the next task, the least is taken; nil = random
}

// Rules returns the rules, in the order in which tables show them.
func Rules() []Rule {
	return []Rule{
		{Rule: sched.Rule{Name: "random", About: "any processor that can run the task", Random: true}},
		{Rule: sched.Rule{
			Name: "greedy-hope", About: "the processor whose load, with the task, comes nearest to the hope: " +
				"RTGS's greedy generator",
		},
			cost: func(p *episode, g int32) float64 {
				i := p.b.Task()
				return math.Abs(p.hope[i] - (p.b.load[g] + p.b.q.Exec(i, g)))
			}},
		{Rule: sched.Rule{
			Name: "first-free", About: "the processor that is free first: list scheduling that ignores speeds and transfers",
		},
			cost: func(p *episode, g int32) float64 { return p.b.end[g] }},
		{Rule: sched.Rule{Name: "eft", About: "the processor on which the task ends earliest"},
			cost: func(p *episode, g int32) float64 { return p.b.finish[g] }},
	}
}

// NewRule returns an actor that plays the rule of a name in e alone.
func NewRule(name string, e *Env) (*sched.Actor, error) {
	r, err := sched.FindRule(ID, name, Rules())
	if err != nil {
		return nil, err
	}
	return sched.NewActor(func(_ []bool, src *rand.Rand) (int32, error) { return r.Choose(e, src), nil }), nil
}

// Choose returns the rule's action in the present state of e, whose episode must not have ended. Of processors that are
// equally good it takes the first one offered. Only the random rule draws from src.
func (r *Rule) Choose(e *Env, src *rand.Rand) int32 {
	best, least, seen := -1, 0.0, 0
	for s, legal := range e.mask {
		if !legal {
			continue
		}
		if r.cost == nil {
			if seen++; src.IntN(seen) == 0 {
				best = s
			}
			continue
		}
		if c := r.cost(e.ep, e.ep.enc.Slots()[s]); best < 0 || c < least {
			best, least = s, c
		}
	}
	return int32(best)
}

// Planners returns the planners of simulator/dag/listsched that plan an episode's whole graph at once and whose plans
// are feasible.
func Planners() []string {
	return []string{"heft", "heft-noinsert", "cpop", "peft", "list-ready", "random"}
}

// Plan has one of Planners plan the graph of episode ep on its platform. It returns the plan's makespan and the
// leader's, HEFT's, in seconds: their ratio compares with Info's makespan_s/leader_s at the end of the same episode.
// The episode in progress is not touched.
func (e *Env) Plan(ctx context.Context, ep env.Episode, planner string) (makespan, heft float64, err error) {
	if err := e.shell.Current(); errors.Is(err, env.ErrClosed) {
		return 0, 0, err
	}
	if !slices.Contains(Planners(), planner) {
		return 0, 0, fmt.Errorf("%s: planner %q is unknown, want %s", ID, planner, nearest.OneOf(planner, Planners()))
	}
	if ep, err = e.named(ep); err != nil {
		return 0, 0, err
	}
	q, err := e.problem(ctx, ep)
	if err != nil {
		return 0, 0, err
	}
	plan, err := listsched.New(q, listsched.Options{}).Plan(ctx, planner, planned(ep.Seed))
	if err != nil {
		return 0, 0, err
	}
	lead, err := leader(ctx, q, dag.SortedOrder(q.Graph, q.UpwardRanks(dag.Pairs, nil), nil))
	if err != nil {
		return 0, 0, err
	}
	return plan.Makespan, lead.Makespan(), nil
}
