package ppo

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/model"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// klShard computes the divergence from an old policy and its gradient over up to modelRows rows.
type klShard struct {
	prog                                    *tape.Program
	obs, mask, old, oldStd, weight, divisor []float32
}

func newKL(m *model.ActorCritic, d op.Distribution, obsLen int) (*klShard, error) {
	const n = modelRows
	prog, err := tape.Build(tensor.Float32, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		head, _ := m.Graph(b, b.Input("obs", n, obsLen))
		x := op.KL{
			Dist: d, Head: head, LogStd: m.LogStdNode(b), OldHead: b.Input("old", n, d.Head()),
			Weight: b.Input("weight", n), Divisor: b.Input("divisor", 1),
		}
		if len(d.Sizes) > 0 {
			x.Mask = b.Input("mask", n, d.Logits())
		}
		if d.Dims > 0 {
			x.OldLogStd = b.Input("old_std", d.Dims)
		}
		return op.KLLoss(x), nil
	})
	if err != nil {
		return nil, err
	}
	return &klShard{
		prog: prog, obs: prog.Input("obs"), mask: prog.Input("mask"), old: prog.Input("old"), oldStd: prog.Input("old_std"),
		weight: prog.Input("weight"), divisor: prog.Input("divisor"),
	}, nil
}
