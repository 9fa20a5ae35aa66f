package model

import (
	"gorgonia.org/gorgonia"

	"clustergym/nets/kernel"
	"clustergym/nets/op"
)

// The layers in this file work on sequences of at most t tokens, of which only the live ones are computed (nets/kernel, live.go).
// Value live lists them; other values have room for t tokens of h numbers. outLive is the value of a layer that programs keep once.

// liveRows lists the live tokens of an observation.
type liveRows struct {
	out    int
	tables []kernel.Table
	t      int
}

func (l *liveRows) run(f *forward, n int) {
	kernel.ListLive(f.val(l.out, n), f.vals[0], n, f.p.width[0], l.tables, l.t)
}

func (l *liveRows) node(g *grapher) *gorgonia.Node { return op.LiveRows(g.nodes[0], l.tables) }

// fillLive is how many tokens of each part are live, on a logarithmic scale.
type fillLive struct {
	live, out int
	rows      []int // of each part
	t         int
}

func (l *fillLive) run(f *forward, n int) {
	kernel.FillLive(f.val(l.out, n), f.val(l.live, n), n, l.t, l.rows)
}

func (l *fillLive) node(g *grapher) *gorgonia.Node { return op.FillLive(g.nodes[l.live], l.rows) }

// packLive packs the live tokens of all parts.
type packLive struct {
	live, out int
	in, rows  []int // values of the parts, and their tokens
	t, h      int
}

func (l *packLive) outLive() int { return l.out }

func (l *packLive) run(f *forward, n int) {
	from := 0
	for i, v := range l.in {
		kernel.Pack(f.val(l.out, n), f.val(v, n), f.val(l.live, n), n, l.t, l.h, from, l.rows[i], false)
		from += l.rows[i]
	}
}

func (l *packLive) node(g *grapher) *gorgonia.Node {
	parts := make([]*gorgonia.Node, len(l.in))
	for i, v := range l.in {
		parts[i] = op.Reshape(g.nodes[v], g.n*l.rows[i], l.h)
	}
	return op.Pack(g.nodes[l.live], parts...)
}

// denseLive is act(x·w + b) for each live token.
type denseLive struct {
	in, live, out int
	w, b          int // parameters
	t, k, h       int // inputs and outputs of one token
	act           kernel.Act
}

func (l *denseLive) outLive() int { return l.out }

func (l *denseLive) run(f *forward, n int) {
	m := kernel.CountLive(f.val(l.live, n), n, l.t)
	kernel.MatMul(f.val(l.out, n), f.val(l.in, n), f.param(l.w), f.param(l.b), m, l.h, l.k, l.act)
}

func (l *denseLive) node(g *grapher) *gorgonia.Node {
	return op.DenseLive(g.nodes[l.in], g.param(l.w), g.param(l.b), g.nodes[l.live], l.act)
}

// normLive is layer norm of each live token.
type normLive struct {
	in, live, out int
	scale, bias   int
	t, h          int
}

func (l *normLive) outLive() int { return l.out }

func (l *normLive) run(f *forward, n int) {
	m := kernel.CountLive(f.val(l.live, n), n, l.t)
	kernel.LayerNorm(f.val(l.out, n), f.val(l.in, n), f.param(l.scale), f.param(l.bias), m, l.h)
}

func (l *normLive) node(g *grapher) *gorgonia.Node {
	return op.NormLive(g.nodes[l.in], g.param(l.scale), g.param(l.bias), g.nodes[l.live])
}

// attendLive is attention of each live token to those of its sequence, from queries, keys and values side by side.
type attendLive struct {
	in, live, out int
	t, h, heads   int
}

func (l *attendLive) scratch() int { return kernel.AttendScratch(l.t, l.h, l.heads) }

func (l *attendLive) outLive() int { return l.out }

func (l *attendLive) run(f *forward, n int) {
	kernel.AttendLive(f.val(l.out, n), f.val(l.in, n), f.val(l.live, n), n, l.t, l.h, l.heads, f.scratch)
}

func (l *attendLive) node(g *grapher) *gorgonia.Node {
	return op.AttendLive(g.nodes[l.in], g.nodes[l.live], l.heads)
}

// addLive is a + b of each live token.
type addLive struct {
	a, b, live, out int
	t, h            int
}

func (l *addLive) outLive() int { return l.out }

func (l *addLive) run(f *forward, n int) {
	m := kernel.CountLive(f.val(l.live, n), n, l.t) * l.h
	kernel.Add(f.val(l.out, n)[:m], f.val(l.a, n), f.val(l.b, n))
}

func (l *addLive) node(g *grapher) *gorgonia.Node {
	return op.AddLive(g.nodes[l.a], g.nodes[l.b], g.nodes[l.live])
}

// unpackLive is the tokens [from, from+rows) of each sequence, 0 where they are not live.
type unpackLive struct {
	in, live, out    int
	from, rows, t, h int
}

func (l *unpackLive) run(f *forward, n int) {
	kernel.Unpack(f.val(l.out, n), f.val(l.in, n), f.val(l.live, n), n, l.t, l.h, l.from, l.rows)
}

func (l *unpackLive) node(g *grapher) *gorgonia.Node {
	return op.Unpack(g.nodes[l.in], g.nodes[l.live], l.from, l.rows)
}

// poolLive is the first token and the mean of the live ones, side by side.
type poolLive struct {
	in, live, out int
	t, h          int
}

func (l *poolLive) run(f *forward, n int) {
	kernel.PoolLive(f.val(l.out, n), f.val(l.in, n), f.val(l.live, n), n, l.t, l.h)
}

func (l *poolLive) node(g *grapher) *gorgonia.Node {
	return op.PoolLive(g.nodes[l.in], g.nodes[l.live])
}
