package model

import (
	"fmt"
	"math/rand/v2"

	"gorgonia.org/gorgonia"

	"clustergym/internal/fault"
	"clustergym/nets"
	"clustergym/nets/layer"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// ActorCritic is a policy with an estimate of the state's value. Its layers are initialised orthogonally: hidden ones
// with gain sqrt 2, the policy's head with 0.01, the value's with 1; biases are 0. With Config.Separate the
// parameters are called "actor.…" and "critic.…". With Config.Base the policy's head begins at 0.
type ActorCritic struct {
	p       *plan
	actions int
	logStd  int // parameter, -1 = none
	value   int // parameter: the weights of the value's layer, which its bias follows
	critic  int // the first parameter that logits do not depend on
}

// NewActorCritic builds the network for the given observation and number of actions, initialised from r. Errors
// name every key of cfg that does not fit.
func NewActorCritic(cfg Config, in Input, actions int, r *rand.Rand) (*ActorCritic, error) {
	return NewActorCriticOf(cfg, in, op.Distribution{Sizes: []int{actions}}, 0, r)
}

// NewActorCriticOf is NewActorCritic for a policy of any form. Normal distributions have the logarithm of their
// deviation as a parameter, "log_std", which is the same for every observation and starts at logStd.
func NewActorCriticOf(cfg Config, in Input, d op.Distribution, logStd float64, r *rand.Rand) (*ActorCritic, error) {
	if cfg.Head == "slots" && (len(d.Sizes) != 1 || d.Dims > 0) {
		return nil, fmt.Errorf("model: head slots for %d factors and %d numbers, want one factor alone", len(d.Sizes), d.Dims)
	}
	if cfg.Base.Field != "" && (len(d.Sizes) != 1 || d.Dims > 0) {
		var l fault.List
		l.Add(false, "base.field", cfg.Base.Field,
			fmt.Sprintf("nothing: a base is for one discrete factor alone, here are %d factors and %d numbers", len(d.Sizes),
				d.Dims))
		return nil, fmt.Errorf("model: %w", l.Err())
	}
	b, err := planActorCritic(cfg, in, d.Head())
	if err != nil {
		return nil, err
	}
	m := &ActorCritic{p: b.plan, actions: d.Head(), logStd: -1, value: len(b.shapes) - 2, critic: b.critic}
	if d.Dims > 0 {
		name := "log_std"
		if cfg.Separate {
			name = "actor." + name
		}
		m.logStd = b.param(name, constant(float32(logStd)), d.Dims)
	}
	b.allocate(r)
	return m, nil
}

// planActorCritic plans the network without allocating its parameters.
func planActorCritic(cfg Config, in Input, actions int) (*builder, error) {
	b, err := newBuilder(cfg, in, actions)
	if err != nil {
		return nil, err
	}
	actor, critic := "", ""
	if cfg.Separate {
		actor, critic = "actor.", "critic."
	}
	y := b.body(actor, !cfg.Separate)
	if err := b.faults.Err(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	logits := b.based(b.actionHead(actor+"policy", y, b.headGain(layer.GainPolicy)))
	b.critic = len(b.shapes)
	if cfg.Separate {
		y = b.body(critic, true)
	}
	value := b.dense(critic+"value", b.informed(critic, y.trunk), 1, 1, layer.GainValue, true, op.Identity)
	b.out = []int{logits, value}
	return b, nil
}

// Params returns the parameters, in the order of the gradients of a program over Graph. They belong to the network;
// all its Forwards and programs read them.
func (m *ActorCritic) Params() *nets.Params { return m.p.params }

// Actions returns the width of the policy's head: the number of actions, or of logits and means.
func (m *ActorCritic) Actions() int { return m.actions }

// ValueHead returns the weights and the bias of the layer that gives the value. Scaling both scales the value. They
// belong to Params.
func (m *ActorCritic) ValueHead() [2][]float32 {
	return [2][]float32{m.p.params.Views[m.value].Data, m.p.params.Views[m.value+1].Data}
}

// Critic returns which elements of Params, from to to-1, only the value depends on: with a trunk that policy and critic
// share those of the layers above it.
func (m *ActorCritic) Critic() (from, to int) {
	for _, v := range m.p.params.Views[:m.critic] {
		from += len(v.Data)
	}
	to = from
	for _, v := range m.p.params.Views[m.critic : m.value+2] {
		to += len(v.Data)
	}
	return from, to
}

// LogStd returns the logarithms of the deviations of normal distributions, nil if there are none. They belong to
// Params.
func (m *ActorCritic) LogStd() []float32 {
	if m.logStd < 0 {
		return nil
	}
	return m.p.params.Views[m.logStd].Data
}

// LogStdNode returns LogStd as a node of a graph, nil if there is none.
func (m *ActorCritic) LogStdNode(b *tape.Builder) *gorgonia.Node {
	if m.logStd < 0 {
		return nil
	}
	return b.Param(&m.p.params.Views[m.logStd])
}

// Forward returns a runner for up to maxRows observations at a time. It shares the parameters and has its own
// buffers, so each goroutine needs one.
func (m *ActorCritic) Forward(maxRows int) *ACForward {
	return &ACForward{f: newForward(m.p, maxRows), logits: m.p.out[0], value: m.p.out[1]}
}

// Graph adds the network over obs [N, input] to b: logits [N, actions] before any masking, and value [N].
func (m *ActorCritic) Graph(b *tape.Builder, obs *gorgonia.Node) (logits, value *gorgonia.Node) {
	out := m.p.graph(b, obs, nil)
	return out[0], op.Reshape(out[1], obs.Shape()[0])
}

// ACForward runs an ActorCritic without a graph.
type ACForward struct {
	f             *forward
	logits, value int
}

// Run computes logits [n, actions], before any masking, and values [n] for n observations. The results are valid
// until the next Run and belong to the runner. A row's bits depend on that row alone. Run allocates nothing. It
// panics if n exceeds Forward's maxRows or obs is too short.
func (f *ACForward) Run(obs []float32, n int) (logits, value []float32) {
	f.f.run(obs, n)
	return f.f.val(f.logits, n), f.f.val(f.value, n)
}

// Logits is Run without the values: layers that only they need are left out.
func (f *ACForward) Logits(obs []float32, n int) []float32 {
	f.f.upTo(f.logits, obs, n) // the layers that only values need come later
	return f.f.val(f.logits, n)
}
