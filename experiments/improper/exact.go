package improper

import (
	"context"
	"slices"

	mixture "clustergym/agents/improper"
	"clustergym/experiments/improper/queuenet"
	"clustergym/experiments/study"
)

// What the exact gradient is computed on: queues of at most so many packets, and a discount that looks ahead some
// hundred slots. The rate falls from exactRate to 0: with a constant one the weights end in jumping from one side of
// the best ones to the other.
const (
	exactBound = 100
	exactGamma = 0.995
	exactSteps = 200
	exactRate  = 0.2
)

// exactInput is what the weights of the exact gradient depend on beside the network.
func exactInput() map[string]any {
	return map[string]any{"bound": exactBound, "gamma": exactGamma, "steps": exactSteps, "rate falls from": exactRate}
}

// process returns a network of fixed controllers, a queue each, for which weights that do not depend on the state make
// queues independent: the process of one queue, drawn at the start.
func process(n network) *mixture.Process {
	side, queues := exactBound+1, n.Queues()
	p := &mixture.Process{
		States: side * queues, Controllers: len(n.Bases), Gamma: exactGamma, Start: make([]float64,
			side*queues), Reward: make([]float64, side*queues*len(n.Bases)),
		Next: make([][]mixture.Branch, side*queues*len(n.Bases)),
	}
	for i := range queues {
		p.Start[i*side] = 1 / float64(queues)
		one := queuenet.Network{Name: n.Name, Rates: [][]float64{{n.Rates[0][i]}}, Sets: [][]int{{}, {0}},
			Bases: []queuenet.Base{{Set: 0}, {Set: 1}}}
		for k, base := range n.Bases {
			served := 0
			if slices.Contains(n.Sets[base.Set], i) {
				served = 1
			}
			for length := range side {
				at := k*p.States + i*side + length
				one.Follow(served, []int{length}, exactBound, func(q []int, chance float64) {
					p.Reward[at] -= chance * float64(q[0])
					p.Next[at] = append(p.Next[at], mixture.Branch{State: i*side + q[0], P: chance})
				})
			}
		}
	}
	return p
}

// exactly finds weights with the true gradient of the discounted number of packets, from an empty network on.
func exactly(ctx context.Context, b *study.Bench, n network) (*mixture.Exact, error) {
	e, err := mixture.NewExact(process(n))
	if err != nil {
		return nil, err
	}
	for i := range exactSteps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		e.Step(exactRate * (1 - float64(i)/exactSteps))
		b.Progress(int64(i+1), exactSteps)
	}
	return e, nil
}
