package model

import (
	"gorgonia.org/gorgonia"

	"clustergym/nets/kernel"
	"clustergym/nets/op"
)

// LiveRows says which of 1 + the rows of all Tables, Rows in all, are live (kernel.ListLive); row 0 always is. The
// value has a form of its own, which only layers with Live read.
type LiveRows struct {
	Tables []kernel.Table
	Rows   int
}

func (l *LiveRows) run(f *forward, out, n int) {
	kernel.ListLive(f.val(out, n), f.vals[0], n, f.p.width[0], l.Tables, l.Rows)
}

func (l *LiveRows) node(g *grapher) *gorgonia.Node { return op.LiveRows(g.nodes[0], l.Tables) }

// FillLive is ln(1+k)/ln 1025 for each part, k the number of its live rows: after row 0 come the parts, with Rows rows
// each, All in all.
type FillLive struct {
	Live int
	Rows []int
	All  int
}

func (l *FillLive) run(f *forward, out, n int) {
	kernel.FillLive(f.val(out, n), f.val(l.Live, n), n, l.All, l.Rows)
}

func (l *FillLive) node(g *grapher) *gorgonia.Node { return op.FillLive(g.nodes[l.Live], l.Rows) }

// Pack is the rows of the values In, All in all, one below the other; value i has Rows[i] of them.
type Pack struct {
	Live         int
	In, Rows     []int
	All, Columns int
}

func (l *Pack) run(f *forward, out, n int) {
	from := 0
	for i, v := range l.In {
		kernel.Pack(f.val(out, n), f.val(v, n), f.val(l.Live, n), n, l.All, l.Columns, from, l.Rows[i], false)
		from += l.Rows[i]
	}
}

func (l *Pack) node(g *grapher) *gorgonia.Node {
	parts := make([]*gorgonia.Node, len(l.In))
	for i, v := range l.In {
		parts[i] = g.rows(v, l.Rows[i])
	}
	return op.Pack(g.nodes[l.Live], parts...)
}

// Attend is attention of each live row to the live ones (kernel.Attend): value In has queries, keys and values side by
// side, 3·Width columns, and Rows rows.
type Attend struct{ In, Live, Rows, Width, Heads int }

func (l *Attend) run(f *forward, out, n int) {
	kernel.AttendLive(f.val(out, n), f.val(l.In, n), f.val(l.Live, n), n, l.Rows, l.Width, l.Heads, f.scratch)
}

func (l *Attend) node(g *grapher) *gorgonia.Node {
	return op.AttendLive(g.nodes[l.In], g.nodes[l.Live], l.Heads)
}

// Add is value A + value B, row by row.
type Add struct{ A, B, Live, Rows int }

func (l *Add) run(f *forward, out, n int) {
	m := f.rows(l.Live, n, l.Rows) * (f.p.width[out] / l.Rows)
	kernel.Add(f.val(out, n)[:m], f.val(l.A, n), f.val(l.B, n))
}

func (l *Add) node(g *grapher) *gorgonia.Node {
	return op.AddLive(g.nodes[l.A], g.nodes[l.B], g.nodes[l.Live])
}

// Unpack is the rows [From, From+Rows) of value In, which has All rows and Columns columns; those that are not live
// are 0.
type Unpack struct{ In, Live, From, Rows, All, Columns int }

func (l *Unpack) run(f *forward, out, n int) {
	kernel.Unpack(f.val(out, n), f.val(l.In, n), f.val(l.Live, n), n, l.All, l.Columns, l.From, l.Rows)
}

func (l *Unpack) node(g *grapher) *gorgonia.Node {
	return op.Unpack(g.nodes[l.In], g.nodes[l.Live], l.From, l.Rows)
}

// PoolLive is row 0 and the mean of the live rows of value In side by side.
type PoolLive struct{ In, Live, Rows, Columns int }

func (l *PoolLive) run(f *forward, out, n int) {
	kernel.PoolLive(f.val(out, n), f.val(l.In, n), f.val(l.Live, n), n, l.Rows, l.Columns)
}

func (l *PoolLive) node(g *grapher) *gorgonia.Node {
	return op.PoolLive(g.nodes[l.In], g.nodes[l.Live])
}

// once reports whether programs have one value of a layer and reuse its gradient's memory.
func once(l Layer) bool {
	switch l := l.(type) {
	case *Dense:
		return l.Live > 0
	case *Norm:
		return l.Live > 0
	case *Pack, *Attend, *Add:
		return true
	}
	return false
}
