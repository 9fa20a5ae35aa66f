package model

import (
	"gorgonia.org/gorgonia"

	"clustergym/nets/kernel"
	"clustergym/nets/op"
)

// Layer is one layer of a network, one of the types of this package: it computes one value and can run in two ways.
// Each type says in its comment what it computes, for one observation and with values row by row. Parameters are
// numbers of Description.View; -1 = none.
//
// A value's node in a graph is a matrix [N, width], or [N·rows, width/rows] while it has several rows for each
// observation (slots); its memory is the same either way.
//
// Layers with Live work on sequences of rows of which only the live ones are computed (nets/kernel, live.go): value
// Live lists them, 0 = all rows. Other values have room for all rows.
type Layer interface {
	run(f *forward, out, n int) // sets value out for n observations
	node(g *grapher) *gorgonia.Node
}

// Columns is the elements [From, To) of value In.
type Columns struct{ In, From, To int }

func (l *Columns) run(f *forward, out, n int) {
	x, y, d, w := f.val(l.In, n), f.val(out, n), f.p.width[l.In], l.To-l.From
	for i := 0; i < n; i++ {
		copy(y[i*w:(i+1)*w], x[i*d+l.From:i*d+l.To])
	}
}

func (l *Columns) node(g *grapher) *gorgonia.Node { return op.Columns(g.nodes[l.In], l.From, l.To) }

// Dense is Act(x·Weight + Bias) for each of Rows rows x of value In. Weight is [inputs, outputs], Bias [outputs] or -1.
type Dense struct {
	In           int
	Weight, Bias int // parameters
	Rows         int
	Act          kernel.Act
	Live         int
}

func (l *Dense) run(f *forward, out, n int) {
	w := f.p.shapes[l.Weight].Shape
	m := f.rows(l.Live, n, l.Rows)
	kernel.MatMul(f.val(out, n), f.val(l.In, n), f.param(l.Weight), f.param(l.Bias), m, w[1], w[0], l.Act)
}

func (l *Dense) node(g *grapher) *gorgonia.Node {
	x, w, b := g.nodes[l.In], g.param(l.Weight), g.param(l.Bias)
	if l.Live > 0 {
		return op.DenseLive(x, w, b, g.nodes[l.Live], l.Act)
	}
	return op.Dense(op.Reshape(x, g.n*l.Rows, w.Shape()[0]), w, b, l.Act)
}

// Norm is Act of the layer norm (kernel.LayerNorm) of each of Rows rows of value In, with Scale and Bias [columns].
type Norm struct {
	In          int
	Scale, Bias int // parameters
	Rows        int
	Act         kernel.Act // none with Live
	Live        int
}

func (l *Norm) run(f *forward, out, n int) {
	y, h := f.val(out, n), f.p.shapes[l.Scale].Shape[0]
	kernel.LayerNorm(y, f.val(l.In, n), f.param(l.Scale), f.param(l.Bias), f.rows(l.Live, n, l.Rows), h)
	if l.Act != kernel.Identity {
		kernel.Activate(y, y, l.Act)
	}
}

func (l *Norm) node(g *grapher) *gorgonia.Node {
	x, scale, bias := g.nodes[l.In], g.param(l.Scale), g.param(l.Bias)
	if l.Live > 0 {
		return op.NormLive(x, scale, bias, g.nodes[l.Live])
	}
	return op.Activate(op.LayerNorm(x, scale, bias), l.Act)
}

// Convolution is Act of a convolution over the image [Geometry.H, W, C] that begins at element From of value In.
// Weight is [KH, KW, C, filters], and so the result [OutH, OutW, filters].
type Convolution struct {
	In, From     int
	Weight, Bias int // parameters
	Filters      int
	Geometry     kernel.Conv
	Act          kernel.Act
}

func (l *Convolution) run(f *forward, out, n int) {
	kernel.Convolve(f.val(out, n), f.val(l.In, n)[l.From:], f.param(l.Weight), f.param(l.Bias), n, l.Filters, &l.Geometry,
		l.Act, f.scratch)
}

func (l *Convolution) node(g *grapher) *gorgonia.Node {
	x := op.Reshape(g.nodes[l.In], g.n, g.nodes[l.In].Shape().TotalSize()/g.n)
	y := op.ConvColumns(x, g.param(l.Weight), g.param(l.Bias), l.Geometry, l.From, l.Act)
	return op.Reshape(y, g.n, l.Geometry.OutH()*l.Geometry.OutW()*l.Filters)
}

// Concat is values side by side, row by row: each has Rows rows.
type Concat struct {
	In   []int
	Rows int
}

func (l *Concat) run(f *forward, out, n int) {
	y, d, at := f.val(out, n), f.p.width[out]/l.Rows, 0
	for _, v := range l.In {
		x, w := f.val(v, n), f.p.width[v]/l.Rows
		for i := 0; i < n*l.Rows; i++ {
			copy(y[i*d+at:i*d+at+w], x[i*w:(i+1)*w])
		}
		at += w
	}
}

func (l *Concat) node(g *grapher) *gorgonia.Node {
	xs := make([]*gorgonia.Node, len(l.In))
	for i, v := range l.In {
		xs[i] = g.rows(v, l.Rows)
	}
	return op.Concat(xs...)
}

// Pool is the mean, or with Max the maximum, over the Rows rows of value In, column by column.
type Pool struct {
	In, Rows int
	Max      bool
}

func (l *Pool) run(f *forward, out, n int) {
	if l.Max {
		kernel.MaxRows(f.val(out, n), f.val(l.In, n), n, l.Rows, f.p.width[out])
	} else {
		kernel.SumRows(f.val(out, n), f.val(l.In, n), n, l.Rows, f.p.width[out], float32(l.Rows))
	}
}

func (l *Pool) node(g *grapher) *gorgonia.Node {
	if l.Max {
		return op.MaxRows(g.rows(l.In, l.Rows), l.Rows)
	}
	return op.MeanRows(g.rows(l.In, l.Rows), l.Rows)
}

// AddRows is Act(x + value Context) for each of the Rows rows x of value In.
type AddRows struct {
	In, Context, Rows int
	Act               kernel.Act
}

func (l *AddRows) run(f *forward, out, n int) {
	kernel.AddRows(f.val(out, n), f.val(l.In, n), f.val(l.Context, n), n, l.Rows, f.p.width[l.Context], l.Act)
}

func (l *AddRows) node(g *grapher) *gorgonia.Node {
	return op.AddRows(g.rows(l.In, l.Rows), g.nodes[l.Context], l.Act)
}

// Same is value In itself, in one row for each observation. It changes only the shape in a graph.
type Same struct{ In int }

func (l *Same) run(f *forward, out, n int) { copy(f.val(out, n), f.val(l.In, n)) }

func (l *Same) node(g *grapher) *gorgonia.Node { return g.rows(l.In, 1) }

// Duel is value V, one number, + the advantages A − their mean over the legal actions, over all if none is legal
// (kernel.Duel).
type Duel struct{ V, A int }

func (l *Duel) run(f *forward, out, n int) {
	kernel.Duel(f.val(out, n), f.val(l.V, n), f.val(l.A, n), f.mask, n, f.p.width[out])
}

func (l *Duel) node(g *grapher) *gorgonia.Node {
	return op.Duel(op.Reshape(g.nodes[l.V], g.n), g.nodes[l.A], g.mask)
}

// Based is value In + the scores that op.Base has over the observation.
type Based struct {
	In   int
	Base op.Base
}

func (l *Based) run(f *forward, out, n int) {
	op.RunBase(l.Base, f.val(out, n), f.val(l.In, n), f.val(0, n), n, f.p.width[out], f.p.width[0])
}

func (l *Based) node(g *grapher) *gorgonia.Node { return op.AddBase(g.nodes[l.In], g.nodes[0], l.Base) }
