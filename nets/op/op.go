package op

import (
	"fmt"
	"hash"
	"hash/fnv"
	"slices"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// Act is an activation function.
type Act = kernel.Act

// The activations, as in nets/kernel.
const (
	Identity = kernel.Identity
	ReLU     = kernel.ReLU
	Tanh     = kernel.Tanh
)

// runFunc computes out from the inputs; scratch has the size that the operation asked for and is overwritten.
type runFunc[T kernel.Float] func(out []T, in [][]T, scratch []T)

// gradFunc adds the nodes of the gradients with respect to the first inputs; the others have none.
type gradFunc func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes

// beforeFunc adds a node that computes this operation, a gradient after the activation act with values y, and the
// gradient before that activation in the same run.
type beforeFunc func(in gorgonia.Nodes, y *gorgonia.Node, act Act) *gorgonia.Node

// Op is one operation on inputs of fixed shapes. It is immutable, so programs on different goroutines may share it.
type Op struct {
	name    string // with all parameters: equal names and inputs mean equal results
	in      []tensor.Shape
	out     tensor.Shape
	dt      tensor.Dtype
	scratch int
	view    bool // the output is the first input's memory under another shape
	over    int  // 1 + the input whose memory the output may be
	run32   runFunc[float32]
	run64   runFunc[float64]
	diff    int // the first inputs, with respect to which it can be differentiated
	grad    gradFunc
	before  beforeFunc // nil = compute it, then the activation's gradient
	salt    int
}

var (
	_ gorgonia.SDOp            = (*Op)(nil)
	_ gorgonia.UsePreallocDoer = (*Op)(nil)
)

// Run32 computes out from the inputs, all row-major; scratch has at least Scratch elements. It allocates nothing and
// is safe for concurrent use with different out and scratch.
func (o *Op) Run32(out []float32, in [][]float32, scratch []float32) { o.run32(out, in, scratch) }

// Run64 is Run32 in double precision.
func (o *Op) Run64(out []float64, in [][]float64, scratch []float64) { o.run64(out, in, scratch) }

// Scratch returns the number of elements of working memory that a run needs.
func (o *Op) Scratch() int { return o.scratch }

// View reports whether the output is the first input under another shape, so nothing needs to run if both share their
// memory.
func (o *Op) View() bool { return o.view }

// Over returns the input that a run may overwrite with the output, element by element, if no later step reads it; -1
// means none.
func (o *Op) Over() int { return o.over - 1 }

// Arity returns the number of inputs.
func (o *Op) Arity() int { return len(o.in) }

// Type returns the function type from the inputs to the output.
func (o *Op) Type() hm.Type {
	ts := make([]hm.Type, 0, len(o.in)+1)
	for _, s := range o.in {
		ts = append(ts, typeOf(s, o.dt))
	}
	return hm.NewFnType(append(ts, typeOf(o.out, o.dt))...)
}

func typeOf(s tensor.Shape, dt tensor.Dtype) hm.Type {
	if len(s) == 0 {
		return dt
	}
	return gorgonia.TensorType{Dims: len(s), Of: dt}
}

// InferShape returns the output's shape, which was fixed when the operation was made.
func (o *Op) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) { return o.out.Clone(), nil }

// ReturnsPtr returns false: the output is new memory, not an input's memory edited in place.
func (o *Op) ReturnsPtr() bool { return false }

// CallsExtern returns false.
func (o *Op) CallsExtern() bool { return false }

// OverwritesInput returns -1: inputs are not changed.
func (o *Op) OverwritesInput() int { return -1 }

// WriteHash writes what distinguishes this operation from others.
func (o *Op) WriteHash(h hash.Hash) {
	_, _ = fmt.Fprintf(h, "%s %v %v %v %d", o.name, o.in, o.out, o.dt, o.salt)
}

// Hashcode returns the hash of WriteHash.
func (o *Op) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

func (o *Op) String() string { return o.name }

// DiffWRT returns, for each input, whether the operation can be differentiated with respect to it.
func (o *Op) DiffWRT(inputs int) []bool {
	return append(slices.Repeat([]bool{true}, o.diff), make([]bool, inputs-o.diff)...)
}

// SymDiff adds the nodes of the gradients to the graph.
func (o *Op) SymDiff(inputs gorgonia.Nodes, output, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	if o.grad == nil {
		return nil, fmt.Errorf("op: %s has no gradient", o.name)
	}
	gs := o.grad(inputs, output, grad)
	return append(gs, make(gorgonia.Nodes, len(inputs)-len(gs))...), nil
}

// Do computes the output into new memory, for Gorgonia's own machines.
func (o *Op) Do(inputs ...gorgonia.Value) (gorgonia.Value, error) {
	if len(o.out) > 0 {
		return o.UsePreallocDo(tensor.New(tensor.Of(o.dt), tensor.WithShape(o.out...)), inputs...)
	}
	if o.dt == tensor.Float64 {
		return o.UsePreallocDo(gorgonia.NewF64(0), inputs...)
	}
	return o.UsePreallocDo(gorgonia.NewF32(0), inputs...)
}

// UsePreallocDo computes the output into prealloc, for Gorgonia's own machines.
func (o *Op) UsePreallocDo(prealloc gorgonia.Value, inputs ...gorgonia.Value) (gorgonia.Value, error) {
	if o.dt == tensor.Float64 {
		return do(o, o.run64, prealloc, inputs)
	}
	return do(o, o.run32, prealloc, inputs)
}

func do[T kernel.Float](o *Op, run runFunc[T], prealloc gorgonia.Value,
	inputs []gorgonia.Value) (gorgonia.Value, error) {
	in := make([][]T, len(inputs))
	for i, v := range inputs {
		d, err := data[T](v)
		if err != nil {
			return nil, fmt.Errorf("op: %s: input %d: %w", o.name, i, err)
		}
		if len(d) < o.in[i].TotalSize() {
			return nil, fmt.Errorf("op: %s: input %d has shape %v, want %v", o.name, i, v.Shape(), o.in[i])
		}
		in[i] = d
	}
	out, err := data[T](prealloc)
	if err != nil {
		return nil, fmt.Errorf("op: %s: output: %w", o.name, err)
	}
	run(out, in, make([]T, o.scratch))
	switch v := prealloc.(type) { // data copied the scalar
	case *gorgonia.F32:
		*v = gorgonia.F32(out[0])
	case *gorgonia.F64:
		*v = gorgonia.F64(out[0])
	}
	return prealloc, nil
}

// data returns the memory of a value; for a scalar, a copy.
func data[T kernel.Float](v gorgonia.Value) ([]T, error) {
	switch d := v.Data().(type) {
	case []T:
		return d, nil
	case T:
		return []T{d}, nil
	}
	return nil, fmt.Errorf("value of type %T", v.Data())
}

// spec describes an operation, besides its two run functions.
type spec struct {
	name    string
	out     tensor.Shape
	scratch int
	view    bool
	over    int // 1 + the input whose memory the output may be, 0 = none
	diff    int // the number of inputs, the first ones, that have a gradient
	grad    gradFunc
	before  beforeFunc
}

// apply adds a node that applies an operation to in. Gorgonia merges nodes that it considers equal. It compares
// 32-bit hashes, not the inputs, so a collision would silently join different nodes: apply changes the salt until the
// node really has the given inputs.
func apply(s spec, r32 runFunc[float32], r64 runFunc[float64], in ...*gorgonia.Node) *gorgonia.Node {
	o := &Op{name: s.name, out: s.out, dt: in[0].Dtype(), scratch: s.scratch, view: s.view, over: s.over, run32: r32,
		run64: r64,
		diff:  s.diff, grad: s.grad, before: s.before}
	for _, n := range in {
		if n.Dtype() != o.dt {
			panic(fmt.Errorf("op: %s: inputs of types %v and %v", s.name, o.dt, n.Dtype()))
		}
		o.in = append(o.in, n.Shape())
	}
	for ; o.salt < 100; o.salt++ {
		n, err := gorgonia.ApplyOp(o, in...)
		if err != nil {
			panic(fmt.Errorf("op: %s: %w", s.name, err))
		}
		if sameInputs(n, in) {
			return n
		}
		c := *o
		o = &c
	}
	panic(fmt.Errorf("op: %s: Gorgonia will not take its inputs", s.name))
}

func sameInputs(n *gorgonia.Node, in []*gorgonia.Node) bool {
	it := n.Graph().From(n.ID())
	for _, want := range in {
		if !it.Next() || it.Node().ID() != want.ID() {
			return false
		}
	}
	return !it.Next()
}

// Inputs returns the nodes that n is computed from, in order.
func Inputs(n *gorgonia.Node) gorgonia.Nodes {
	var in gorgonia.Nodes
	for it := n.Graph().From(n.ID()); it.Next(); {
		in = append(in, it.Node().(*gorgonia.Node))
	}
	return in
}

// shape returns n's shape after checking its number of dimensions.
func shape(name string, n *gorgonia.Node, dims int) tensor.Shape {
	s := n.Shape()
	if len(s) != dims {
		panic(fmt.Errorf("op: %s: input %q has shape %v, want %d dimensions", name, n.Name(), s, dims))
	}
	return s
}

// need panics unless ok is true: a shape does not fit.
func need(ok bool, format string, args ...any) {
	if !ok {
		panic(fmt.Errorf("op: "+format, args...))
	}
}
