package ppo

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/model"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// valueLoss computes the value loss and its gradient over a number of rows. It belongs to one goroutine at a time.
type valueLoss struct {
	prog                             *tape.Program
	obs, target, value, weight, coef []float32 // inputs, views of prog's memory
}

func newValueLoss(m *model.ActorCritic, obsLen, n int) (*valueLoss, error) {
	prog, err := tape.Build(tensor.Float32, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		_, value := m.Graph(b, b.Input("obs", n, obsLen))
		l, stats := op.ValueLoss(op.PPO{
			Value: value, Return: b.Input("return", n), OldValue: b.Input("value", n),
			Weight: b.Input("weight", n), Coef: b.Input("coef", op.PPOCoefs),
		})
		return l, []*gorgonia.Node{stats}
	})
	if err != nil {
		return nil, err
	}
	return &valueLoss{
		prog: prog, obs: prog.Input("obs"), target: prog.Input("return"), value: prog.Input("value"),
		weight: prog.Input("weight"), coef: prog.Input("coef"),
	}, nil
}
