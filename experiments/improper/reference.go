package improper

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/experiments/improper/queuenet"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
)

// playNet plays the test episodes of a network and returns their mean numbers of packets. act chooses controllers, or
// serve sets; the other one is nil.
func (s *settings) playNet(ctx context.Context, n network, labels map[string]string, act agents.Policy,
	serve func(queues []int) int) (rows []study.Row, err error) {
	e, err := queuenet.New(n.Network, s.Slots)
	if err != nil {
		return nil, err
	}
	e.Serve(serve)
	if act == nil {
		act = choosing(0)
	}
	p := agents.NewPlayer(e, act)
	for k := range s.Episodes {
		ep := env.Episode{Seed: rng.At(rng.Hash("improper/episodes"), uint64(k))}
		if _, _, err := p.Play(ctx, ep, rng.Stream(ep.Seed, "improper/act")); err != nil {
			return nil, err
		}
		own := study.With(study.With(labels, "network", n.Name), "episode", k)
		rows = append(rows, study.Row{Table: "networks", Labels: own, Metric: "packets", Value: p.TimeStep().Info[0]})
	}
	return rows, nil
}

// choosing is the policy that always chooses one controller, −1 = any.
type choosing int

// Act implements agents.Policy.
func (c choosing) Act(_ context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	for i := range b.N {
		k := int(c)
		if k < 0 {
			k = src[i].IntN(len(b.Mask) / b.N)
		}
		dst.Disc[i] = int32(k)
	}
	return nil
}

// drawing is the policy that draws controllers with given probabilities.
type drawing []float64

// Act implements agents.Policy.
func (d drawing) Act(_ context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	for i := range b.N {
		left, at := src[i].Float64(), 0
		for at < len(d)-1 && left >= d[at] {
			left -= d[at]
			at++
		}
		dst.Disc[i] = int32(at)
	}
	return nil
}

// reference plays what is known without learning: the base controllers, the best of them, all alike, the best weights,
// the optimum.
func (s *settings) reference(ctx context.Context, b *study.Bench, n network) (rows []study.Row, err error) {
	play := func(policy string, act agents.Policy, serve func(queues []int) int) ([]study.Row, error) {
		own, err := s.playNet(ctx, n, map[string]string{"policy": policy}, act, serve)
		rows = append(rows, own...)
		return own, err
	}
	known := func(what string, packets float64) {
		rows = append(rows,
			study.Row{Table: "known", Labels: map[string]string{"network": n.Name, "policy": what}, Metric: "packets",
				Value: packets})
	}
	var won []study.Row
	least := 0.0
	for k, base := range n.Bases {
		own, err := play(base.Name, choosing(k), nil)
		if err != nil {
			return nil, err
		}
		sum := 0.0
		for _, r := range own {
			sum += r.Value
		}
		if won == nil || sum < least {
			won, least = own, sum
		}
	}
	rows = append(rows, renamed(won, best)...)
	if _, err := play(uniform, choosing(-1), nil); err != nil {
		return nil, err
	}
	if n.server() {
		known(optimum, queuenet.Busy(n.Rates[0]))
	}
	if n.solved() {
		weights, packets := queuenet.BestShares(n.Rates[0])
		known(shares, packets)
		if _, err := play(shares, drawing(weights), nil); err != nil {
			return nil, err
		}
		e, err := exactly(ctx, b, n)
		if err != nil {
			return nil, err
		}
		if _, err := play(exact, drawing(e.Weight), nil); err != nil {
			return nil, err
		}
		for k := range weights {
			rows = append(rows, weightRow(n, shares, k, 0, weights[k]), weightRow(n, exact, k, 0, e.Weight[k]))
		}
	}
	serve := func(queues []int) int { return n.Choose(longest, queues) }
	if n.bound > 0 {
		o, err := queuenet.Solve(n.Network, n.bound)
		if err != nil {
			return nil, err
		}
		known(optimum, o.Packets)
		serve = o.Set
	}
	if _, err := play(optimum, nil, serve); err != nil {
		return nil, err
	}
	return rows, nil
}

// renamed returns rows as those of another policy.
func renamed(rows []study.Row, policy string) []study.Row {
	own := slices.Clone(rows)
	for i := range own {
		own[i].Labels = study.With(own[i].Labels, "policy", policy)
	}
	return own
}

// weightRow returns the row of a controller's weight in a mixture. seed 0 = the weights are not learned.
func weightRow(n network, policy string, k, seed int, w float64) study.Row {
	labels := map[string]string{"network": n.Name, "policy": policy, "controller": n.Bases[k].Name}
	if seed > 0 {
		labels["seed"] = fmt.Sprint(seed)
	}
	return study.Row{Table: "weights", Labels: labels, Metric: "weight", Value: w}
}
