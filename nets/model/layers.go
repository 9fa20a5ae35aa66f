package model

import (
	"gorgonia.org/gorgonia"

	"clustergym/nets/kernel"
	"clustergym/nets/op"
)

// A value's node in a graph is a matrix [N, width], or [N·rows, width/rows] while it has several rows for each
// observation (slots); its memory is the same either way.

// columns is the columns [from, to) of the observation.
type columns struct{ in, out, from, to int }

func (l *columns) run(f *forward, n int) {
	x, y, d, w := f.val(l.in, n), f.val(l.out, n), f.p.width[l.in], l.to-l.from
	for i := 0; i < n; i++ {
		copy(y[i*w:(i+1)*w], x[i*d+l.from:i*d+l.to])
	}
}

func (l *columns) node(g *grapher) *gorgonia.Node { return op.Columns(g.nodes[l.in], l.from, l.to) }

// dense is act(x·w + b) for each of the value's rows.
type dense struct {
	in, out int
	w, b    int // parameters; b -1 = none
	rows    int // for each observation
	k, n    int // inputs and outputs of one row
	act     kernel.Act
}

func (l *dense) run(f *forward, n int) {
	kernel.MatMul(f.val(l.out, n), f.val(l.in, n), f.param(l.w), f.param(l.b), n*l.rows, l.n, l.k, l.act)
}

func (l *dense) node(g *grapher) *gorgonia.Node {
	x := op.Reshape(g.nodes[l.in], g.n*l.rows, l.k)
	return op.Dense(x, g.param(l.w), g.param(l.b), l.act)
}

// norm is layer norm over an observation's elements, then an activation.
type norm struct {
	in, out     int
	scale, bias int
	h           int
	act         kernel.Act
}

func (l *norm) run(f *forward, n int) {
	y := f.val(l.out, n)
	kernel.LayerNorm(y, f.val(l.in, n), f.param(l.scale), f.param(l.bias), n, l.h)
	kernel.Activate(y, y, l.act)
}

func (l *norm) node(g *grapher) *gorgonia.Node {
	return op.Activate(op.LayerNorm(g.nodes[l.in], g.param(l.scale), g.param(l.bias)), l.act)
}

// conv is a convolution over an observation's image, which begins at element from of the value.
type conv struct {
	in, out int
	from    int
	w, b    int
	filters int
	geom    op.Geometry
	c       kernel.Conv
	act     kernel.Act
}

func (l *conv) scratch() int { return l.c.Scratch(l.filters) }

func (l *conv) run(f *forward, n int) {
	kernel.Convolve(f.val(l.out, n), f.val(l.in, n)[l.from:], f.param(l.w), f.param(l.b), n, l.filters, &l.c, l.act, f.scratch)
}

func (l *conv) node(g *grapher) *gorgonia.Node {
	x := op.Reshape(g.nodes[l.in], g.n, g.nodes[l.in].Shape().TotalSize()/g.n)
	y := op.ConvColumns(x, g.param(l.w), g.param(l.b), l.geom, l.from, l.c.H, l.c.W, l.c.C, l.act)
	return op.Reshape(y, g.n, l.c.OutH()*l.c.OutW()*l.filters)
}

// concat puts values side by side, row by row.
type concat struct {
	in   []int
	out  int
	rows int
}

func (l *concat) run(f *forward, n int) {
	y, d, at := f.val(l.out, n), f.p.width[l.out]/l.rows, 0
	for _, v := range l.in {
		x, w := f.val(v, n), f.p.width[v]/l.rows
		for i := 0; i < n*l.rows; i++ {
			copy(y[i*d+at:i*d+at+w], x[i*w:(i+1)*w])
		}
		at += w
	}
}

func (l *concat) node(g *grapher) *gorgonia.Node {
	xs := make([]*gorgonia.Node, len(l.in))
	for i, v := range l.in {
		x := g.nodes[v]
		xs[i] = op.Reshape(x, g.n*l.rows, x.Shape().TotalSize()/(g.n*l.rows))
	}
	return op.Concat(xs...)
}

// pool is the mean or the maximum over an observation's rows.
type pool struct {
	in, out int
	rows, h int
	max     bool
}

func (l *pool) run(f *forward, n int) {
	if l.max {
		kernel.MaxRows(f.val(l.out, n), f.val(l.in, n), n, l.rows, l.h)
	} else {
		kernel.SumRows(f.val(l.out, n), f.val(l.in, n), n, l.rows, l.h, float32(l.rows))
	}
}

func (l *pool) node(g *grapher) *gorgonia.Node {
	x := op.Reshape(g.nodes[l.in], g.n*l.rows, l.h)
	if l.max {
		return op.MaxRows(x, l.rows)
	}
	return op.MeanRows(x, l.rows)
}

// addRows is act(x + context), with the context repeated for each of x's rows.
type addRows struct {
	in, context, out int
	rows, h          int
	act              kernel.Act
}

func (l *addRows) run(f *forward, n int) {
	kernel.AddRows(f.val(l.out, n), f.val(l.in, n), f.val(l.context, n), n, l.rows, l.h, l.act)
}

func (l *addRows) node(g *grapher) *gorgonia.Node {
	return op.AddRows(op.Reshape(g.nodes[l.in], g.n*l.rows, l.h), g.nodes[l.context], l.act)
}

// flatten gives a value one row for each observation again. It changes only the shape in a graph.
type flatten struct{ in, out, width int }

func (l *flatten) run(f *forward, n int) { copy(f.val(l.out, n), f.val(l.in, n)) }

func (l *flatten) node(g *grapher) *gorgonia.Node { return op.Reshape(g.nodes[l.in], g.n, l.width) }

// duel combines values [N] and advantages [N, a] into action values.
type duel struct{ v, adv, out, a int }

func (l *duel) run(f *forward, n int) {
	kernel.Duel(f.val(l.out, n), f.val(l.v, n), f.val(l.adv, n), f.mask, n, l.a)
}

func (l *duel) node(g *grapher) *gorgonia.Node {
	return op.Duel(op.Reshape(g.nodes[l.v], g.n), g.nodes[l.adv], g.mask)
}

// based is x + the base scores of actions over the observation.
type based struct {
	in, out int
	base    op.Base
}

func (l *based) run(f *forward, n int) {
	op.RunBase(l.base, f.val(l.out, n), f.val(l.in, n), f.val(0, n), n, f.p.width[l.out], f.p.width[0])
}

func (l *based) node(g *grapher) *gorgonia.Node { return op.AddBase(g.nodes[l.in], g.nodes[0], l.base) }
