package model

import (
	"clustergym/nets"
	"clustergym/nets/kernel"
	"clustergym/nets/op"
)

// Description is a network as a list of layers, for whoever writes it down in another form. Layer k computes value k+1; value 0
// is the observation. A value has Width elements for each observation. It is a view of the network: its slices and parameters
// must not be changed.
type Description struct {
	Width  []int // by value
	Layers []Layer
	Out    []int // the results: logits and value of an ActorCritic, action values of a QNet
}

// Layer is one of the types below. Each says in its comment what it computes, for one observation and with values row by row;
// parameters may be nil where a comment says so.
type Layer interface{ layer() }

// Columns is the elements [From, To) of value In.
type Columns struct{ In, From, To int }

// Dense is Act(x·Weight + Bias) for each of Rows rows x of value In. Weight is [inputs, outputs], Bias [outputs] or nil. With Live,
// a value of LiveRows, only the rows that it lists have a meaning.
type Dense struct {
	In           int
	Weight, Bias *nets.View
	Rows         int
	Act          kernel.Act
	Live         int // 0 = all rows
}

// Norm is Act of the layer norm (kernel.LayerNorm) of each of Rows rows of value In, with Scale and Bias [columns].
type Norm struct {
	In          int
	Scale, Bias *nets.View
	Rows        int
	Act         kernel.Act
	Live        int // as in Dense
}

// Convolution is Act of a convolution over the image [Geometry.H, W, C] that begins at element From of value In. Weight is
// [KH, KW, C, filters], and so the result [OutH, OutW, filters].
type Convolution struct {
	In, From     int
	Weight, Bias *nets.View
	Filters      int
	Geometry     kernel.Conv
	Act          kernel.Act
}

// Concat is values side by side, row by row: each has Rows rows.
type Concat struct {
	In   []int
	Rows int
}

// Pool is the mean, or with Max the maximum, over the Rows rows of value In, column by column.
type Pool struct {
	In, Rows int
	Max      bool
}

// AddRows is Act(x + value Context) for each of the Rows rows x of value In.
type AddRows struct {
	In, Context, Rows int
	Act               kernel.Act
}

// Same is value In itself.
type Same struct{ In int }

// Duel is value V, one number, + the advantages A − their mean over the legal actions, over all if none is legal (kernel.Duel).
type Duel struct{ V, A int }

// Based is value In + the scores that op.Base has over the observation.
type Based struct {
	In   int
	Base op.Base
}

// LiveRows says which of 1 + the rows of all Tables are live (kernel.ListLive); row 0 always is. The value has a form of its own,
// which only layers with Live read.
type LiveRows struct{ Tables []kernel.Table }

// FillLive is ln(1+k)/ln 1025 for each part, k the number of its live rows: after row 0 come the parts, with Rows rows each.
type FillLive struct {
	Live int
	Rows []int
}

// Pack is the rows of the values In, one below the other; value i has Rows[i] of them.
type Pack struct {
	Live     int
	In, Rows []int
	Columns  int
}

// Attend is attention of each live row to the live ones (kernel.Attend): value In has queries, keys and values side by side, 3·Width
// columns, and Rows rows.
type Attend struct {
	In, Live, Rows, Width, Heads int
}

// Add is value A + value B, row by row.
type Add struct{ A, B, Live, Rows int }

// Unpack is the rows [From, From+Rows) of value In, which has Columns columns; those that are not live are 0.
type Unpack struct {
	In, Live, From, Rows, Columns int
	All                           int // rows of In
}

// PoolLive is row 0 and the mean of the live rows of value In side by side.
type PoolLive struct{ In, Live, Rows, Columns int }

func (Columns) layer()     {}
func (Dense) layer()       {}
func (Norm) layer()        {}
func (Convolution) layer() {}
func (Concat) layer()      {}
func (Pool) layer()        {}
func (AddRows) layer()     {}
func (Same) layer()        {}
func (Duel) layer()        {}
func (Based) layer()       {}
func (LiveRows) layer()    {}
func (FillLive) layer()    {}
func (Pack) layer()        {}
func (Attend) layer()      {}
func (Add) layer()         {}
func (Unpack) layer()      {}
func (PoolLive) layer()    {}

// Describe returns the network's layers. Out is the logits, or logits and means, and the value.
func (m *ActorCritic) Describe() Description { return m.p.description() }

// Describe returns the network's layers. Out is the action values.
func (m *QNet) Describe() Description { return m.p.description() }

func (p *plan) description() Description {
	d := Description{Width: p.width, Out: p.out}
	for _, l := range p.layers {
		d.Layers = append(d.Layers, l.describe(p))
	}
	return d
}

// view returns a parameter, nil for -1.
func (p *plan) view(i int) *nets.View {
	if i < 0 {
		return nil
	}
	return &p.params.Views[i]
}

func (l *columns) describe(*plan) Layer { return Columns{l.in, l.from, l.to} }

func (l *dense) describe(p *plan) Layer {
	return Dense{In: l.in, Weight: p.view(l.w), Bias: p.view(l.b), Rows: l.rows, Act: l.act}
}

func (l *norm) describe(p *plan) Layer {
	return Norm{In: l.in, Scale: p.view(l.scale), Bias: p.view(l.bias), Rows: 1, Act: l.act}
}

func (l *conv) describe(p *plan) Layer {
	return Convolution{In: l.in, From: l.from, Weight: p.view(l.w), Bias: p.view(l.b), Filters: l.filters, Geometry: l.c, Act: l.act}
}

func (l *concat) describe(*plan) Layer  { return Concat{l.in, l.rows} }
func (l *pool) describe(*plan) Layer    { return Pool{l.in, l.rows, l.max} }
func (l *addRows) describe(*plan) Layer { return AddRows{l.in, l.context, l.rows, l.act} }
func (l *flatten) describe(*plan) Layer { return Same{l.in} }
func (l *duel) describe(*plan) Layer    { return Duel{l.v, l.adv} }
func (l *based) describe(*plan) Layer   { return Based{l.in, l.base} }

func (l *liveRows) describe(*plan) Layer { return LiveRows{l.tables} }
func (l *fillLive) describe(*plan) Layer { return FillLive{l.live, l.rows} }
func (l *packLive) describe(*plan) Layer { return Pack{l.live, l.in, l.rows, l.h} }

func (l *denseLive) describe(p *plan) Layer {
	return Dense{In: l.in, Weight: p.view(l.w), Bias: p.view(l.b), Rows: l.t, Act: l.act, Live: l.live}
}

func (l *normLive) describe(p *plan) Layer {
	return Norm{In: l.in, Scale: p.view(l.scale), Bias: p.view(l.bias), Rows: l.t, Live: l.live}
}

func (l *attendLive) describe(*plan) Layer { return Attend{l.in, l.live, l.t, l.h, l.heads} }
func (l *addLive) describe(*plan) Layer    { return Add{l.a, l.b, l.live, l.t} }
func (l *poolLive) describe(*plan) Layer   { return PoolLive{l.in, l.live, l.t, l.h} }

func (l *unpackLive) describe(*plan) Layer {
	return Unpack{In: l.in, Live: l.live, From: l.from, Rows: l.rows, Columns: l.h, All: l.t}
}
