package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"clustergym/nets/onnx"
)

// The opsets whose operators are known.
const (
	OldestOpset = 13
	NewestOpset = 23
)

// Program is a model that can run. It is not safe for concurrent use; programs of one model may run side by side, as
// none changes it.
type Program struct {
	model   *onnx.Model
	inputs  []onnx.Value
	outputs []string
	nodes   []*onnx.Node
	fixed   int // rows that the model was made for, 0 = any number
	ready   map[int]*Instance
	packed  map[packedOf]*tensor // weights in the order of the kernels, which all instances share
}

// packedOf names weights by where they are in the model, and how they were put in order.
type packedOf struct {
	first *float32
	how   string
}

// NewContext returns a program that computes the outputs of m with these names; none = all of them. Errors are one
// sentence and name what is not known. ctx ends what is computed beforehand.
func NewContext(ctx context.Context, m *onnx.Model, outputs ...string) (*Program, error) {
	p := &Program{model: m, inputs: m.Graph.Arguments(), outputs: outputs, ready: map[int]*Instance{},
		packed: map[packedOf]*tensor{}}
	if m.Opset < OldestOpset || m.Opset > NewestOpset {
		return nil, fmt.Errorf("opset %d is not known, want %d to %d", m.Opset, OldestOpset, NewestOpset)
	}
	if len(outputs) == 0 {
		for _, v := range m.Graph.Outputs {
			p.outputs = append(p.outputs, v.Name)
		}
	}
	if len(p.outputs) == 0 {
		return nil, fmt.Errorf("the model has no outputs")
	}
	if err := p.checkInputs(); err != nil {
		return nil, err
	}
	if err := p.need(); err != nil {
		return nil, err
	}
	_, err := p.ForContext(ctx, max(1, p.fixed))
	return p, err
}

// checkInputs finds which number of rows the inputs have.
func (p *Program) checkInputs() error {
	for _, v := range p.inputs {
		switch {
		case !known(v.Type):
			return fmt.Errorf("input %.60q has the type %v, want %s", v.Name, v.Type, typesWanted)
		case !v.Known || len(v.Shape) == 0:
			return fmt.Errorf("input %.60q has no shape with rows, want [N, ...]", v.Name)
		case slices.Min(append([]int{1}, v.Shape[1:]...)) < 0:
			return fmt.Errorf("input %.60q has the shape %s, want one that leaves only the first dimension open", v.Name,
				onnx.ShapeString(v.Shape))
		}
		n := v.Shape[0]
		if n == 0 {
			return fmt.Errorf("input %.60q has the shape %s, want at least one row", v.Name, onnx.ShapeString(v.Shape))
		}
		if n > 0 && p.fixed > 0 && n != p.fixed {
			return fmt.Errorf("input %.60q has %d rows and another %d, want as many in all", v.Name, n, p.fixed)
		}
		if n > 0 {
			p.fixed = n
		}
	}
	return nil
}

// need keeps the nodes on which the outputs depend.
func (p *Program) need() error {
	g := &p.model.Graph
	if len(g.Nodes) > mostNodes {
		return fmt.Errorf("the graph has %d nodes, want at most %d", len(g.Nodes), mostNodes)
	}
	wanted := map[string]bool{}
	for _, name := range p.outputs {
		wanted[name] = true
	}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		if !slices.ContainsFunc(n.Outputs, func(s string) bool { return s != "" && wanted[s] }) {
			continue
		}
		p.nodes = append(p.nodes, n)
		for _, s := range n.Inputs {
			wanted[s] = true
		}
	}
	slices.Reverse(p.nodes)
	for _, n := range p.nodes {
		if n.Domain != "" && n.Domain != "ai.onnx" {
			return fmt.Errorf("%s: operators of the domain %.60q are not known, want standard ones", title(n), n.Domain)
		}
		if operators[n.Op] == nil {
			return fmt.Errorf("%s: this operator is not known, want those that docs/reference/onnx.md lists", title(n))
		}
	}
	return p.checkNames()
}

// checkNames returns which value has the name of another.
func (p *Program) checkNames() error {
	taken := map[string]bool{}
	for i := range p.model.Graph.Tensors {
		name := p.model.Graph.Tensors[i].Name
		if taken[name] {
			return fmt.Errorf("there are two constants %.60q, want one", name)
		}
		taken[name] = true
	}
	for _, v := range p.inputs {
		if taken[v.Name] {
			return fmt.Errorf("there are two inputs %.60q, want one", v.Name)
		}
		taken[v.Name] = true
	}
	for _, n := range p.nodes {
		for _, s := range n.Outputs {
			if s != "" && taken[s] {
				return fmt.Errorf("%s: its output %.60q has the name of another value, want one of its own", title(n), s)
			}
			taken[s] = true
		}
	}
	return nil
}

// Inputs returns the inputs. The slice belongs to the program.
func (p *Program) Inputs() []onnx.Value { return p.inputs }

// Rows returns the number of rows that the model was made for, 0 if it takes any number.
func (p *Program) Rows() int { return p.fixed }

// For returns the program's instance for that many rows, made when it is first asked for.
func (p *Program) For(rows int) (*Instance, error) { return p.ForContext(context.Background(), rows) }

// ForContext is For with a context that ends what is computed beforehand. Where the instances for all numbers of rows
// would take too much memory, those made before are dropped.
func (p *Program) ForContext(ctx context.Context, rows int) (*Instance, error) {
	if i := p.ready[rows]; i != nil {
		return i, nil
	}
	if rows < 1 || p.fixed > 0 && rows != p.fixed {
		return nil, fmt.Errorf("the model was made for %d rows, not for %d", p.fixed, rows)
	}
	i, err := compile(ctx, p, rows)
	if err != nil {
		return nil, err
	}
	kept := i.bytes
	for _, other := range p.ready {
		kept += other.bytes
	}
	if kept > mostKept {
		clear(p.ready)
	}
	p.ready[rows] = i
	return i, nil
}

// Bytes returns the memory of weights in the order of the kernels.
func (p *Program) Bytes() int {
	n := 0
	for _, t := range p.packed {
		n += 4 * len(t.f)
	}
	return n
}

// Instance is a program for one number of rows, with its memory. The caller fills the inputs, calls Run, and reads the
// outputs.
type Instance struct {
	steps []step
	in    map[string]*tensor
	out   map[string]*tensor
	fault error // of a step
	bytes int
	done  <-chan struct{} // see until; nil = never
}

// step is a part of a program, with its work as mostWork counts it.
type step struct {
	run  func()
	cost int
}

// Run computes the outputs from the inputs. It allocates nothing. An error says which number of the data is out of its
// bounds.
func (i *Instance) Run() error { return i.RunContext(context.Background()) }

// RunContext is Run that ends early with ctx's error once ctx is done. A short program does not look at ctx.
func (i *Instance) RunContext(ctx context.Context) error {
	i.fault = nil
	i.until(ctx)
	defer i.finish()
	since := 0
	for k := range i.steps {
		s := &i.steps[k]
		if since = plus(since, s.cost); since > between {
			if i.stopped() {
				return ctx.Err()
			}
			since = s.cost
		}
		s.run()
	}
	if since > between && i.stopped() { // the last one may have ended early
		return ctx.Err()
	}
	return i.fault
}

// Bytes returns the memory of intermediate results.
func (i *Instance) Bytes() int { return i.bytes }

// Tensor is an input or output: its elements, row after row, are in Floats if its type is float32, else in Ints, 0 and
// 1 for bool. They are valid until the next Run and belong to the instance.
type Tensor struct {
	Type   onnx.Type
	Shape  []int
	Floats []float32
	Ints   []int64
}

// Input returns an input to be filled.
func (i *Instance) Input(name string) (Tensor, bool) { return view(i.in[name]) }

// Output returns an output.
func (i *Instance) Output(name string) (Tensor, bool) { return view(i.out[name]) }

func view(t *tensor) (Tensor, bool) {
	if t == nil {
		return Tensor{}, false
	}
	return Tensor{t.typ, t.shape, t.f, t.i}, true
}

// title names a node.
func title(n *onnx.Node) string {
	if n.Name == "" {
		return fmt.Sprintf("node %s of %.60q", onnx.Plain(n.Op), strings.Join(n.Outputs, " "))
	}
	return fmt.Sprintf("node %s %.60q", onnx.Plain(n.Op), n.Name)
}

const typesWanted = "float32, int64, int32, uint8, int8 or bool"

func known(t onnx.Type) bool {
	switch t {
	case onnx.Float32, onnx.Int64, onnx.Int32, onnx.Uint8, onnx.Int8, onnx.Bool:
		return true
	}
	return false
}
