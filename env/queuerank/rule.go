package queuerank

import (
	"math/rand/v2"

	"clustergym/env/sched"
	"clustergym/simulator/schedulers"
)

// orders are the rules that rank jobs, in the order in which tables show them.
var orders = []sched.Rule{
	{Name: "fifo", About: "the visible job that was submitted first"},
	{Name: "sjf", About: "the visible job of the shortest estimated run time", Estimates: true},
	{Name: "f1",
		About: "the visible job of the least log₁₀(run time)·GPUs + 870·log₁₀(submit), the first policy of Carastan-Santos " +
			"and de Camargo", Estimates: true},
	{Name: "smallest", About: "the visible job of the fewest GPUs"},
	{Name: "area", About: "the visible job of the least estimated run time × GPUs", Estimates: true},
	{Name: "wfp3", About: "the visible job of the greatest (wait/estimated run time)³·GPUs", Estimates: true},
	{Name: "unicep", About: "the visible job of the greatest wait/(log₂(GPUs)·estimated run time)", Estimates: true},
	{Name: "multifactor",
		About: "the visible job of the highest priority in Slurm's multi-factor plugin: wait/12 h and a bonus for few GPUs"},
	{Name: "ljf", About: "the visible job of the longest estimated run time", Estimates: true},
	{Name: "largest", About: "the visible job of the most GPUs"},
}

// Rules returns the rules that choose among the visible jobs, in the order in which tables show them. Where every
// waiting job is visible and no two are submitted at the same time, each is the heuristic of its name with admission
// commit.
func Rules() []sched.Rule { return append([]sched.Rule{sched.RandomRule()}, orders...) }

// NewRule returns an actor that plays one of Rules in e.
func NewRule(name string, e *Env) (*sched.Actor, error) {
	if _, err := sched.FindRule(e.Spec().ID, name, Rules()); err != nil {
		return nil, err
	}
	if name == "random" {
		return sched.RandomActor(), nil
	}
	return NewOrder(name, e)
}

// NewOrder returns an actor that chooses the visible job of the least key by an order of schedulers.Ranking, or by one
// that is written out.
func NewOrder(order string, e *Env) (*sched.Actor, error) {
	rank, err := schedulers.NewRanker(order, e.Config().Estimates)
	if err != nil {
		return nil, err
	}
	return sched.NewActor(func([]bool, *rand.Rand) (int32, error) {
		rank.Reseed(e.State().Seed)
		best, least := 0, 0.0
		// in order of submit, so that ties go to the oldest; with Config.Peer in the program's order
		for i, j := range e.Slots() {
			if k := rank.Key(e.View(), j); i == 0 || k < least {
				best, least = i, k
			}
		}
		return int32(best), rank.Err()
	}), nil
}
