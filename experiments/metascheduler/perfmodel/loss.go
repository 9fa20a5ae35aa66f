package perfmodel

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets"
	"clustergym/nets/model"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// loss computes Huber's loss of one member over a batch.
type loss struct {
	prog                    *tape.Program
	x, target, weight, coef []float32
}

func newLoss(n *model.QNet, batch int) (*loss, error) {
	prog, err := tape.Build(tensor.Float32, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		y := n.Graph(b, b.Input("x", batch, Features), nil)
		l, _ := op.TDLoss(y, b.Input("output", batch), b.Input("target", batch), b.Input("weight", batch),
			b.Input("coef", op.TDCoefs))
		return l, nil
	})
	if err != nil {
		return nil, err
	}
	return &loss{prog, prog.Input("x"), prog.Input("target"), prog.Input("weight"), prog.Input("coef")}, nil
}

// run returns the loss over the measurements of d with these indices.
func (l *loss) run(d *Data, index []int, huber float64) (float64, error) {
	l.coef[op.TDDelta], l.coef[op.TDDivisor] = float32(huber), float32(len(index))
	clear(l.weight)
	for i, at := range index {
		copy(l.x[i*Features:(i+1)*Features], d.X[at*Features:(at+1)*Features])
		l.target[i], l.weight[i] = d.Y[at], 1
	}
	if err := l.prog.Run(); err != nil {
		return 0, err
	}
	return l.prog.Loss(), nil
}

func (l *loss) grad() *nets.Params { return l.prog.Grad() }
