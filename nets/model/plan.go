package model

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gorgonia.org/gorgonia"

	"clustergym/nets"
	"clustergym/nets/kernel"
	"clustergym/nets/layer"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// plan is a network as a list of layers in order, each computing one value. Value 0 is the observation. Every value
// has a width, its number of elements for one observation.
type plan struct {
	layers []Layer
	width  []int
	home   map[int]int // values that a forward pass keeps in the memory of an earlier one
	params *nets.Params

	shapes []nets.View // names and shapes of the parameters
	init   []initialiser
	out    []int // the network's results
}

// initialiser fills a parameter before training.
type initialiser = func(v *nets.View, r *rand.Rand)

func newPlan(in Input) *plan { return &plan{width: []int{in.Size()}} }

// value adds a layer that computes a value of the given width and returns the value's number.
func (p *plan) value(width int, l Layer) int {
	p.width = append(p.width, width)
	p.layers = append(p.layers, l)
	return len(p.layers)
}

// share makes a forward pass keep value v in the memory of the earlier value at, which no layer after v reads as
// itself. It is at least as wide.
func (p *plan) share(v, at int) {
	if p.home == nil {
		p.home = map[int]int{}
	}
	if p.width[v] > p.width[at] {
		panic(fmt.Sprintf("model: a value of width %d in the memory of one of %d", p.width[v], p.width[at]))
	}
	p.home[v] = at
}

// param declares a parameter and returns its number.
func (p *plan) param(name string, init initialiser, shape ...int) int {
	p.shapes = append(p.shapes, nets.View{Name: name, Shape: slices.Clone(shape)})
	p.init = append(p.init, init)
	return len(p.shapes) - 1
}

// allocate makes the parameters and initialises them in the order of their declaration.
func (p *plan) allocate(r *rand.Rand) {
	p.params = nets.NewParams(p.shapes)
	for i, f := range p.init {
		f(&p.params.Views[i], r)
	}
}

func orthogonal(gain float64) initialiser {
	return func(v *nets.View, r *rand.Rand) { layer.Orthogonal(v, gain, r) }
}

func uniform(bound float64) initialiser {
	return func(v *nets.View, r *rand.Rand) { layer.Uniform(v, bound, r) }
}

func constant(x float32) initialiser {
	return func(v *nets.View, _ *rand.Rand) { layer.Constant(v, x) }
}

// forward is the memory of one goroutine that runs a plan.
type forward struct {
	p       *plan
	max     int
	vals    [][]float32 // by value; val returns the rows in use
	mask    []float32   // of duelling heads, nil = all legal
	scratch []float32   // of one layer at a time
}

func newForward(p *plan, maxRows int) *forward {
	if maxRows < 1 {
		panic(fmt.Sprintf("model: Forward for %d rows", maxRows))
	}
	f := &forward{p: p, max: maxRows, vals: make([][]float32, len(p.width))}
	for v, w := range p.width[1:] { // the observation belongs to the caller
		if at, shared := p.home[v+1]; shared {
			f.vals[v+1] = f.vals[at]
		} else {
			f.vals[v+1] = make([]float32, maxRows*w)
		}
	}
	f.scratch = make([]float32, p.scratch())
	return f
}

func (f *forward) val(v, n int) []float32 { return f.vals[v][:n*f.p.width[v]] }

func (f *forward) param(i int) []float32 {
	if i < 0 {
		return nil
	}
	return f.p.params.Views[i].Data
}

// rows returns how many rows a layer of rows rows computes for n observations: the live ones that value live lists, or
// all without one.
func (f *forward) rows(live, n, rows int) int {
	if live > 0 {
		return kernel.CountLive(f.val(live, n), n, rows)
	}
	return n * rows
}

// run computes all values for n observations.
func (f *forward) run(obs []float32, n int) { f.upTo(len(f.p.layers), obs, n) }

// upTo computes the values up to number last for n observations. Value 0 is the observation, and every layer computes
// the next one.
func (f *forward) upTo(last int, obs []float32, n int) {
	if n < 0 || n > f.max || len(obs) < n*f.p.width[0] {
		panic(fmt.Sprintf("model: %d rows in %d numbers; at most %d rows of %d", n, len(obs), f.max, f.p.width[0]))
	}
	f.vals[0] = obs
	for i, l := range f.p.layers[:last] {
		l.run(f, i+1, n)
	}
	f.vals[0] = nil
}

// grapher adds a plan to a graph.
type grapher struct {
	b     *tape.Builder
	nodes []*gorgonia.Node // by value
	views []*gorgonia.Node // parameters
	mask  *gorgonia.Node
	n     int
}

// graph adds the plan's nodes over obs to b and returns the results. It passes all parameters to the builder, in
// their order, so that the gradients have the layout of the plan's parameters.
func (p *plan) graph(b *tape.Builder, obs, mask *gorgonia.Node) []*gorgonia.Node {
	s := obs.Shape()
	if len(s) != 2 || s[1] != p.width[0] {
		panic(fmt.Errorf("model: observations have shape %v, want [N %d]", s, p.width[0]))
	}
	g := &grapher{b: b, nodes: make([]*gorgonia.Node, 1, len(p.width)), mask: mask, n: s[0]}
	g.nodes[0] = obs
	for i := range p.params.Views {
		g.views = append(g.views, b.Param(&p.params.Views[i]))
	}
	for _, l := range p.layers {
		g.nodes = append(g.nodes, l.node(g))
	}
	out := make([]*gorgonia.Node, len(p.out))
	for i, v := range p.out {
		out[i] = g.nodes[v]
	}
	return out
}

// rows returns value v with that many rows for each observation.
func (g *grapher) rows(v, rows int) *gorgonia.Node {
	x := g.nodes[v]
	return op.Reshape(x, g.n*rows, x.Shape().TotalSize()/(g.n*rows))
}

func (g *grapher) param(i int) *gorgonia.Node {
	if i < 0 {
		return nil
	}
	return g.views[i]
}
