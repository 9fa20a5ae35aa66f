package ddqn

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets"
	"clustergym/nets/model"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// loss computes the temporal-difference loss and its gradient over up to cap rows of a batch. The formula is
// op.TDLoss in nets/op/td.go. It has its own buffers and shares the network's parameters. It belongs to one goroutine
// at a time.
type loss struct {
	prog *tape.Program

	obs, mask, action, target, weight, coef []float32 // inputs, views of prog's memory
	// likewise, with a margin: what it adds to every action, and the rows of the whole batch
	gap, divisor []float32
}

// Positions of a loss's outputs.
const outErrors = 0

// newLoss builds the loss; taught adds the large-margin loss.
func newLoss(m *model.QNet, obsLen, capacity int, taught bool) (*loss, error) {
	n, a := capacity, m.Actions()
	prog, err := tape.Build(tensor.Float32, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		q := m.Graph(b, b.Input("obs", n, obsLen), b.Input("mask", n, a))
		action, weight := b.Input("action", n), b.Input("weight", n)
		l, errs := op.TDLoss(q, action, b.Input("target", n), weight, b.Input("coef", op.TDCoefs))
		if !taught {
			return l, []*gorgonia.Node{errs}
		}
		rival := op.Reshape(op.MaxRows(op.Reshape(op.Add(q, b.Input("gap", n, a)), n*a, 1), a), n)
		short := op.Sum(op.Mul(op.Sub(rival, op.Gather(q, action)), weight))
		return op.Add(l, op.Div(short, b.Input("divisor", 1))), []*gorgonia.Node{errs}
	})
	if err != nil {
		return nil, err
	}
	return &loss{
		prog: prog, obs: prog.Input("obs"), mask: prog.Input("mask"), action: prog.Input("action"),
		target: prog.Input("target"), weight: prog.Input("weight"), coef: prog.Input("coef"),
		gap: prog.Input("gap"), divisor: prog.Input("divisor"),
	}, nil
}

// part sets what the margin adds to the actions of the first n rows: nothing to the one that was taken, and so much to
// illegal ones that they are never the largest.
func (l *loss) part(n int) {
	a := len(l.gap) / len(l.action)
	for i := range n {
		for k := range a {
			switch {
			case l.mask[i*a+k] == 0:
				l.gap[i*a+k] = -1e8
			case k == int(l.action[i]):
				l.gap[i*a+k] = 0
			default:
				l.gap[i*a+k] = margin
			}
		}
	}
}

// set sets where the loss turns linear and how many rows the whole batch has.
func (l *loss) set(huber, divisor float64) {
	l.coef[op.TDDelta], l.coef[op.TDDivisor] = float32(huber), float32(divisor)
	if l.divisor != nil {
		l.divisor[0] = float32(divisor)
	}
}

// see sets the observations to the first n numbers of obs: without copying if they are as many as the loss has room
// for.
func (l *loss) see(obs []float32, n int) {
	if n < len(l.obs) || !l.prog.Bind("obs", obs) {
		copy(l.obs, obs[:n])
		l.prog.Bind("obs", l.obs)
	}
}

// run computes loss and gradient of the current inputs.
func (l *loss) run() error { return l.prog.Run() }

func (l *loss) value() float64 { return l.prog.Loss() }

func (l *loss) grad() *nets.Params { return l.prog.Grad() }

// errors are Q(s, a) − target, row by row.
func (l *loss) errors() []float32 { return l.prog.Output(outErrors) }
