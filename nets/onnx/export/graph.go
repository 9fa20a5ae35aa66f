package export

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"clustergym/nets/kernel"
	"clustergym/nets/model"
	"clustergym/nets/onnx"
)

// grapher adds a network to a graph. All tensors have the batch as their first dimension. A value of a network is a
// matrix [N, width], or [N, rows, width/rows] while it has several rows.
type grapher struct {
	onnx.Graph
	net    *model.Description
	width  []int // of its values
	values []placed
	lives  map[int]*liveness
	mask   string
	count  map[string]int
	known  map[string]string // constants by their content
	shaped map[string]string // results of reshape
}

// placed is where a value is in the graph.
type placed struct {
	name string
	rows int
}

// liveness is a value of model.LiveRows.
type liveness struct {
	is     string // bool [N, rows]
	number string // float32, 1 or 0; "" until it is needed
	rows   int
}

func newGrapher(name string, net *model.Description) *grapher {
	g := &grapher{
		net: net, width: net.Width, values: make([]placed, len(net.Width)), lives: map[int]*liveness{},
		count: map[string]int{}, known: map[string]string{}, shaped: map[string]string{},
	}
	g.Name = name
	return g
}

func shaped(typ onnx.Type, name string, shape []int) onnx.Value {
	v := onnx.Value{Name: name, Type: typ, Shape: shape, Known: true, Dims: make([]string, len(shape))}
	if shape[0] < 0 {
		v.Dims[0] = "N"
	}
	return v
}

func (g *grapher) input(name string, typ onnx.Type, shape ...int) {
	g.Inputs = append(g.Inputs, shaped(typ, name, shape))
}

// output makes tensor from an output called name.
func (g *grapher) output(name string, typ onnx.Type, from string, shape ...int) {
	g.Nodes = append(g.Nodes, onnx.Node{Op: "Identity", Inputs: []string{from}, Outputs: []string{name}})
	g.Outputs = append(g.Outputs, shaped(typ, name, shape))
}

func (g *grapher) fresh(kind string) string {
	g.count[kind]++
	return fmt.Sprintf("%s.%d", strings.ToLower(kind), g.count[kind])
}

// with adds a node of one result, whose name it returns.
func (g *grapher) with(op string, set []onnx.Attribute, in ...string) string {
	out := g.fresh(op)
	g.Nodes = append(g.Nodes, onnx.Node{Op: op, Name: out, Inputs: in, Outputs: []string{out}, Attributes: set})
	return out
}

func (g *grapher) node(op string, in ...string) string { return g.with(op, nil, in...) }

func integer(name string, x int64) onnx.Attribute {
	return onnx.Attribute{Name: name, Kind: onnx.KindInt, Int: x}
}

func list(name string, x ...int64) onnx.Attribute {
	return onnx.Attribute{Name: name, Kind: onnx.KindInts, Ints: x}
}

// constant adds a tensor, once for each content.
func (g *grapher) constant(t onnx.Tensor) string {
	key := fmt.Sprint(t.Type, t.Shape, t.Floats, t.Ints)
	if name := g.known[key]; name != "" {
		return name
	}
	t.Name = g.fresh("constant")
	g.Tensors = append(g.Tensors, t)
	g.known[key] = t.Name
	return t.Name
}

func (g *grapher) floats(x []float32, shape ...int) string {
	if len(shape) == 0 && len(x) != 1 {
		panic("export: numbers without a shape")
	}
	return g.constant(onnx.Tensor{Type: onnx.Float32, Shape: shape, Floats: x})
}

// ints is a scalar for one number, else a list.
func (g *grapher) ints(x ...int64) string {
	if len(x) == 1 {
		return g.constant(onnx.Tensor{Type: onnx.Int64, Ints: x})
	}
	return g.list(x...)
}

func (g *grapher) list(x ...int64) string {
	return g.constant(onnx.Tensor{Type: onnx.Int64, Shape: []int{len(x)}, Ints: x})
}

// param adds a copy of a parameter under its own name.
func (g *grapher) param(i int) string {
	v := g.net.View(i)
	return g.weights(v.Name, v.Shape, slices.Clone(v.Data))
}

// weights adds a tensor under a name, once.
func (g *grapher) weights(name string, shape []int, data []float32) string {
	if g.known[name] == "" {
		g.Tensors = append(g.Tensors, onnx.Tensor{Name: name, Type: onnx.Float32, Shape: shape, Floats: data})
		g.known[name] = name
	}
	return name
}

// reshape returns x with another shape; 0 keeps a dimension, -1 follows from the others.
func (g *grapher) reshape(x string, shape ...int64) string {
	key := fmt.Sprint(x, shape)
	if y := g.shaped[key]; y != "" {
		return y
	}
	y := g.node("Reshape", x, g.list(shape...))
	g.shaped[key] = y
	return y
}

// rows returns value v with that many rows.
func (g *grapher) rows(v, rows int) string {
	p := g.values[v]
	switch {
	case p.rows == rows:
		return p.name
	case rows == 1:
		return g.reshape(p.name, 0, int64(g.width[v]))
	}
	return g.reshape(p.name, 0, int64(rows), int64(g.width[v]/rows))
}

// slice returns the elements [from, to) of an axis, every step-th.
func (g *grapher) slice(x string, axis, from, to, step int) string {
	return g.node("Slice", x, g.list(int64(from)), g.list(int64(to)), g.list(int64(axis)), g.list(int64(step)))
}

// columns returns the columns [from, to) of the width of a matrix.
func (g *grapher) columns(x string, from, to, width int) string {
	if from == 0 && to == width {
		return x
	}
	return g.slice(x, 1, from, to, 1)
}

func (g *grapher) concat(axis int64, xs ...string) string {
	if len(xs) == 1 {
		return xs[0]
	}
	return g.with("Concat", []onnx.Attribute{integer("axis", axis)}, xs...)
}

// sum returns the sum over an axis, which stays with length 1.
func (g *grapher) sum(x string, axis int64) string { return g.node("ReduceSum", x, g.list(axis)) }

func (g *grapher) act(x string, a kernel.Act) string {
	switch a {
	case kernel.ReLU:
		return g.node("Relu", x)
	case kernel.Tanh:
		return g.node("Tanh", x)
	}
	return x
}

func (g *grapher) linear(l *model.Dense) string {
	x, weight := g.rows(l.In, l.Rows), g.param(l.Weight)
	switch {
	case l.Rows == 1 && l.Bias >= 0:
		x = g.node("Gemm", x, weight, g.param(l.Bias))
	case l.Bias >= 0:
		x = g.node("Add", g.node("MatMul", x, weight), g.param(l.Bias))
	default:
		x = g.node("MatMul", x, weight)
	}
	return g.act(x, l.Act)
}

// float returns the liveness as numbers.
func (g *grapher) float(l *liveness) string {
	if l.number == "" {
		l.number = g.with("Cast", []onnx.Attribute{integer("to", int64(onnx.Float32))}, l.is)
	}
	return l.number
}

var logOf1025 = math.Log(1025)
