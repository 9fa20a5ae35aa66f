package export

import (
	"fmt"
	"math"

	"clustergym/nets/model"
	"clustergym/nets/onnx"
)

// The version of operators that models are written for, and that of the format.
const (
	Opset = 17
	IR    = 8
)

// The names of inputs and outputs.
const (
	Observation = "obs"         // float32 [N, elements]: the fields in the order of the environment's specification
	Mask        = "action_mask" // bool [N, discrete actions], true = legal; factors side by side
	Action      = "action"      // int64 [N], or [N, factors] of several; float32 [N, numbers] where there are no factors
	Numbers     = "action_box"  // float32 [N, numbers] beside discrete factors
	Logits      = "logits"      // float32 [N, discrete actions], before masking
	Values      = "q"           // float32 [N, discrete actions]: action values, before masking
	Mean        = "mean"        // float32 [N, numbers]: the network's own, before they are scaled and cut to the bounds
	Value       = "value"       // float32 [N]: the critic's, in the units of training
)

// Policy is a network with what turns its results into actions.
type Policy struct {
	Name  string // of the graph, not empty
	Net   model.Description
	Scale *Scale // of observations, nil = none
	Sizes []int  // of the discrete factors, whose logits come first in the network's first result
	Box   *Box   // numbers, whose means follow them; nil = none
	// with a single factor: the action that must be likelier than all other legal ones together; -1 = none is
	NoOp    int
	QValues bool // the first result is values of actions: a single factor's, of which the largest is taken
	Batch   int  // rows of an input; 0 = any number
}

// Scale is what observations pass first: (x − Mean)·Factor, cut to [−Clip, Clip] unless Clip is 0.
type Scale struct {
	Mean, Factor []float32
	Clip         float32
}

// Box turns means into numbers of an action: Mid + Half·mean, cut to [Low, High].
type Box struct{ Mid, Half, Low, High []float32 }

// Model returns p as an ONNX model without metadata. It copies the parameters.
func (p *Policy) Model() (*onnx.Model, error) {
	logits := 0
	for _, k := range p.Sizes {
		logits += k
	}
	numbers := 0
	if p.Box != nil {
		numbers = len(p.Box.Low)
	}
	out := p.Net.Out
	if len(out) == 0 || p.Net.Width[out[0]] != logits+numbers || p.QValues && (len(p.Sizes) != 1 || numbers > 0) {
		return nil, fmt.Errorf("export: a network with results %v for factors %v and %d numbers", out, p.Sizes, numbers)
	}
	g := newGrapher(p.Name, &p.Net)
	b := -1
	if p.Batch > 0 {
		b = p.Batch
	}
	g.input(Observation, onnx.Float32, b, p.Net.Width[0])
	if logits > 0 {
		g.input(Mask, onnx.Bool, b, logits)
		g.mask = Mask
	}
	g.values[0] = placed{g.scaled(Observation, p.Scale), 1}
	for i, l := range p.Net.Layers {
		if err := g.layer(i+1, l); err != nil {
			return nil, err
		}
	}
	head := g.rows(out[0], 1)
	if logits > 0 {
		name := Logits
		if p.QValues {
			name = Values
		}
		g.output(name, onnx.Float32, g.columns(head, 0, logits, logits+numbers), b, logits)
		action := g.choose(name, p)
		if len(p.Sizes) == 1 {
			g.output(Action, onnx.Int64, g.reshape(action, -1), b)
		} else {
			g.output(Action, onnx.Int64, action, b, len(p.Sizes))
		}
	}
	if numbers > 0 {
		g.output(Mean, onnx.Float32, g.columns(head, logits, logits+numbers, logits+numbers), b, numbers)
		name := Numbers
		if logits == 0 {
			name = Action
		}
		g.output(name, onnx.Float32, g.boxed(Mean, p.Box), b, numbers)
	}
	if len(out) > 1 {
		g.output(Value, onnx.Float32, g.reshape(g.rows(out[1], 1), -1), b)
	}
	return &onnx.Model{IR: IR, Producer: "clustergym", Opset: Opset, Graph: g.Graph}, nil
}

// scaled returns observations as the network sees them.
func (g *grapher) scaled(x string, s *Scale) string {
	if s == nil {
		return x
	}
	x = g.node("Sub", x, g.floats(s.Mean, len(s.Mean)))
	x = g.node("Mul", x, g.floats(s.Factor, len(s.Factor)))
	if s.Clip > 0 {
		x = g.node("Clip", x, g.floats([]float32{-s.Clip}), g.floats([]float32{s.Clip}))
	}
	return x
}

// lowest is below the logit of every legal action, and finite.
const lowest = -math.MaxFloat32

// choose returns the greedy action of every factor, [N, factors].
func (g *grapher) choose(logits string, p *Policy) string {
	all := 0
	for _, k := range p.Sizes {
		all += k
	}
	var chosen []string
	at := 0
	for _, size := range p.Sizes {
		x, legal := g.columns(logits, at, at+size, all), g.columns(Mask, at, at+size, all)
		at += size
		if len(p.Sizes) > 1 || p.Box != nil || p.QValues || p.NoOp < 0 || p.NoOp >= size {
			chosen = append(chosen, g.best(x, legal))
			continue
		}
		chosen = append(chosen, g.orNoOp(x, legal, size, p.NoOp))
	}
	return g.concat(1, chosen...)
}

// best returns the legal action of the largest number, the first among equals, [N, 1].
func (g *grapher) best(x, legal string) string {
	return g.with("ArgMax", []onnx.Attribute{integer("axis", 1), integer("keepdims", 1)},
		g.node("Where", legal, x, g.floats([]float32{lowest})))
}

// orNoOp is best among the other actions, unless noop is likelier than all of them together.
func (g *grapher) orNoOp(x, legal string, size, noop int) string {
	acting := make([]int64, size)
	for k := range acting {
		if k != noop {
			acting[k] = 1
		}
	}
	others := g.node("And", legal, g.constant(onnx.Tensor{Type: onnx.Bool, Shape: []int{1, size}, Ints: acting}))
	weight := g.node("Exp", g.node("Sub", x, g.columns(x, noop, noop+1, size)))
	weight = g.node("Where", others, weight, g.floats([]float32{0}))
	less := g.node("Less", g.sum(weight, 1), g.floats([]float32{1}))
	waits := g.node("And", less, g.columns(legal, noop, noop+1, size))
	return g.node("Where", waits, g.ints(int64(noop)), g.best(x, others))
}

// boxed turns means into numbers.
func (g *grapher) boxed(x string, b *Box) string {
	n := len(b.Low)
	x = g.node("Add", g.node("Mul", x, g.floats(b.Half, n)), g.floats(b.Mid, n))
	return g.node("Min", g.node("Max", x, g.floats(b.Low, n)), g.floats(b.High, n))
}
