package tape

import (
	"fmt"
	"slices"
	"sync"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets"
)

// Builder collects the inputs and parameters of one graph. It is for one goroutine and one call of Compile. Its
// methods panic on misuse, like the functions of nets/op; Build turns the panic into an error.
type Builder struct {
	g      *gorgonia.ExprGraph
	dt     tensor.Dtype
	inputs []*gorgonia.Node
	params []param
}

type param struct {
	node *gorgonia.Node
	view nets.View
}

// New starts a graph of the given type: tensor.Float32 for normal use, tensor.Float64 for checking gradients. Where
// several goroutines build graphs, use Build, which keeps them apart.
func New(dt tensor.Dtype) *Builder {
	if dt != tensor.Float32 && dt != tensor.Float64 {
		panic(fmt.Errorf("tape: graph of type %v, want float32 or float64", dt))
	}
	return &Builder{g: gorgonia.NewGraph(), dt: dt}
}

// Graph returns the expression graph, for operations that need it.
func (b *Builder) Graph() *gorgonia.ExprGraph { return b.g }

// Dtype returns the type of the graph's numbers.
func (b *Builder) Dtype() tensor.Dtype { return b.dt }

// Input adds an input that the caller fills before each run (see Program.Input). Without dimensions it is a scalar.
// It starts as zeros and keeps its content between runs. Names are unique among inputs and parameters.
func (b *Builder) Input(name string, shape ...int) *gorgonia.Node {
	n := b.variable(name, shape)
	b.inputs = append(b.inputs, n)
	return n
}

// Param adds a parameter; Compile differentiates with respect to it. A float32 program reads the view's own memory at
// each run; a float64 program has a copy of the values at the time of Compile. A second call with the same view
// returns the same node, so two passes of one network share it. The gradients have the order of the first calls.
func (b *Builder) Param(view *nets.View) *gorgonia.Node {
	for _, p := range b.params {
		if p.view.Name == view.Name && len(view.Data) > 0 && &p.view.Data[0] == &view.Data[0] {
			return p.node
		}
	}
	if view.Size() != len(view.Data) {
		panic(fmt.Errorf("tape: parameter %q has %d elements and shape %v", view.Name, len(view.Data), view.Shape))
	}
	n := b.variable(view.Name, view.Shape)
	b.params = append(b.params, param{n, nets.View{Name: view.Name, Shape: slices.Clone(view.Shape), Data: view.Data}})
	return n
}

func (b *Builder) variable(name string, shape []int) *gorgonia.Node {
	for _, n := range b.inputs {
		if n.Name() == name {
			panic(fmt.Errorf("tape: two variables are called %q", name))
		}
	}
	for _, p := range b.params {
		if p.view.Name == name {
			panic(fmt.Errorf("tape: two variables are called %q", name))
		}
	}
	for _, d := range shape {
		if d < 1 {
			panic(fmt.Errorf("tape: variable %q has shape %v", name, shape))
		}
	}
	if len(shape) == 0 {
		return gorgonia.NewScalar(b.g, b.dt, gorgonia.WithName(name))
	}
	return gorgonia.NewTensor(b.g, b.dt, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
}

// Build makes a program from a function that adds nodes to a new graph and returns the loss and the outputs. It calls
// New, fn and Compile and turns every panic on the way into an error. Goroutines may build programs at the same time;
// their functions run one after another, so fn must neither wait for another Build nor call Build or Compile itself.
func Build(dt tensor.Dtype, fn func(b *Builder) (loss *gorgonia.Node, outputs []*gorgonia.Node)) (p *Program,
	err error) {
	defer caught("build", &err)
	b := New(dt)
	loss, outputs := b.grow(fn)
	return b.Compile(loss, outputs...)
}

func (b *Builder) grow(fn func(b *Builder) (loss *gorgonia.Node, outputs []*gorgonia.Node)) (loss *gorgonia.Node,
	outputs []*gorgonia.Node) {
	adding.Lock()
	defer adding.Unlock() // even if fn panics
	return fn(b)
}

// adding is held while nodes are added to a graph. Gorgonia's constants, such as the 1 that differentiation starts
// from, are shared by all graphs and cache their hash when they are first used, and some of its operations number the
// groups of nodes in one table.
var adding sync.Mutex

// caught turns a panic into an error.
func caught(doing string, err *error) {
	switch r := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("tape: %s: %w", doing, r)
	default:
		*err = fmt.Errorf("tape: %s: %v", doing, r)
	}
}
