package model

import (
	"fmt"
	"math/rand/v2"

	"gorgonia.org/gorgonia"

	"clustergym/nets"
	"clustergym/nets/layer"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// QNet is a network of action values. With orthogonal initialisation all its heads have gain 1, and hidden layers are
// as in ActorCritic.
type QNet struct {
	p       *plan
	actions int
}

// NewQNet builds the network for the given observation and number of actions, initialised from r. With duelling it
// has one head for the state's value and one for advantages, from which their mean over the legal actions is
// subtracted (Wang et al. 2016, arXiv 1511.06581, eq. 9). Config.Separate has no effect. Errors name every key of cfg
// that does not fit.
func NewQNet(cfg Config, in Input, actions int, duelling bool, r *rand.Rand) (*QNet, error) {
	b, err := planQNet(cfg, in, actions, duelling)
	if err != nil {
		return nil, err
	}
	b.allocate(r)
	return &QNet{p: b.plan, actions: actions}, nil
}

// planQNet plans the network without allocating its parameters.
func planQNet(cfg Config, in Input, actions int, duelling bool) (*builder, error) {
	b, err := newBuilder(cfg, in, actions)
	if err != nil {
		return nil, err
	}
	y := b.body("", duelling)
	if err := b.faults.Err(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if duelling {
		v := b.dense("value", y.trunk, 1, 1, layer.GainValue, true, op.Identity)
		adv := b.actionHead("advantage", y, b.headGain(layer.GainValue))
		q := b.value(actions, &Duel{V: v, A: adv})
		b.out = []int{b.based(q)}
	} else {
		b.out = []int{b.based(b.actionHead("q", y, b.headGain(layer.GainValue)))}
	}
	return b, nil
}

// Params returns the parameters, in the order of the gradients of a program over Graph. They belong to the network;
// all its Forwards and programs read them.
func (m *QNet) Params() *nets.Params { return m.p.params }

// Actions returns the number of actions.
func (m *QNet) Actions() int { return m.actions }

// Forward returns a runner for up to maxRows observations at a time. It shares the parameters and has its own
// buffers, so each goroutine needs one.
func (m *QNet) Forward(maxRows int) *QForward {
	return &QForward{f: newForward(m.p, maxRows), q: m.p.out[0], actions: m.actions,
		mask: make([]float32, maxRows*m.actions)}
}

// Graph adds the network over obs [N, input] to b. mask [N, actions] is 1 for legal actions; the mean of a duelling
// head runs over these. A nil mask means all actions.
func (m *QNet) Graph(b *tape.Builder, obs, mask *gorgonia.Node) (q *gorgonia.Node) {
	return m.p.graph(b, obs, mask)[0]
}

// QForward runs a QNet without a graph.
type QForward struct {
	f       *forward
	q       int
	actions int
	mask    []float32
}

// Legal sets dst to 1 for the actions that are legal by mask and to 0 for the others.
func Legal(dst []float32, mask []bool) {
	for i, legal := range mask[:len(dst)] {
		dst[i] = 0
		if legal {
			dst[i] = 1
		}
	}
}

// Run computes action values [n, actions] for n observations, including those of illegal actions. mask [n, actions]
// is as in Graph, nil = all legal. The result is valid until the next Run and belongs to the runner. A row's bits
// depend on that row alone. Run allocates nothing. It panics if n exceeds Forward's maxRows or a slice is too short.
func (f *QForward) Run(obs []float32, mask []bool, n int) (q []float32) {
	f.f.mask = nil
	if mask != nil {
		f.f.mask = f.mask[:n*f.actions]
		Legal(f.f.mask, mask)
	}
	f.f.run(obs, n)
	return f.f.val(f.q, n)
}
