package export

import (
	"fmt"
	"math"

	"clustergym/nets/kernel"
	"clustergym/nets/model"
	"clustergym/nets/onnx"
)

// layer adds the layer that computes value v.
func (g *grapher) layer(v int, l model.Layer) error {
	to := func(name string, rows int) { g.values[v] = placed{name, rows} }
	switch l := l.(type) {
	case *model.Columns:
		to(g.columns(g.rows(l.In, 1), l.From, l.To, g.width[l.In]), 1)
	case *model.Dense:
		to(g.linear(l), l.Rows)
	case *model.Norm:
		eps := onnx.Attribute{Name: "epsilon", Kind: onnx.KindFloat, Float: kernel.LayerNormEps}
		to(g.act(g.with("LayerNormalization", []onnx.Attribute{integer("axis", -1), eps}, g.rows(l.In, l.Rows),
			g.param(l.Scale), g.param(l.Bias)), l.Act), l.Rows)
	case *model.Convolution:
		to(g.convolution(l), 1)
	case *model.Concat:
		xs := make([]string, len(l.In))
		for i, in := range l.In {
			xs[i] = g.rows(in, l.Rows)
		}
		axis := int64(1)
		if l.Rows > 1 {
			axis = 2
		}
		to(g.concat(axis, xs...), l.Rows)
	case *model.Pool:
		to(g.pool(l), 1)
	case *model.AddRows:
		context := g.rows(l.Context, 1)
		if l.Rows > 1 {
			context = g.reshape(context, 0, 1, int64(g.width[l.Context]))
		}
		to(g.act(g.node("Add", g.rows(l.In, l.Rows), context), l.Act), l.Rows)
	case *model.Same:
		g.values[v] = g.values[l.In]
	case *model.Duel:
		to(g.duel(g.rows(l.V, 1), g.rows(l.A, 1)), 1)
	case *model.Based:
		to(g.based(v, l), 1)
	case *model.LiveRows:
		g.lives[v] = g.liveRows(l)
	case *model.FillLive:
		to(g.fill(l), 1)
	case *model.Pack:
		to(g.pack(l), g.lives[l.Live].rows)
	case *model.Attend:
		to(g.attend(l), l.Rows)
	case *model.Add:
		to(g.node("Add", g.rows(l.A, l.Rows), g.rows(l.B, l.Rows)), l.Rows)
	case *model.Unpack:
		to(g.unpack(l), l.Rows)
	case *model.PoolLive:
		to(g.poolLive(l), 1)
	default:
		return fmt.Errorf("export: layer %T has no form in ONNX", l)
	}
	return nil
}

// convolution turns images from rows of channels to the order of ONNX, channels first, and back.
func (g *grapher) convolution(l *model.Convolution) string {
	c := l.Geometry
	x := g.columns(g.rows(l.In, 1), l.From, l.From+c.H*c.W*c.C, g.width[l.In])
	if c.C == 1 {
		x = g.reshape(x, 0, 1, int64(c.H), int64(c.W))
	} else {
		x = g.with("Transpose", []onnx.Attribute{list("perm", 0, 3, 1, 2)},
			g.reshape(x, 0, int64(c.H), int64(c.W), int64(c.C)))
	}
	weight := g.net.View(l.Weight)
	var turned []float32
	for m := range l.Filters {
		for ch := range c.C {
			for k := range c.KH * c.KW {
				turned = append(turned, weight.Data[(k*c.C+ch)*l.Filters+m])
			}
		}
	}
	x = g.with("Conv", []onnx.Attribute{
		list("kernel_shape", int64(c.KH), int64(c.KW)), list("strides", int64(c.SH), int64(c.SW)),
		list("pads", int64(c.PH), int64(c.PW), int64(c.PH), int64(c.PW)),
	}, x, g.weights(weight.Name, []int{l.Filters, c.C, c.KH, c.KW}, turned), g.param(l.Bias))
	x = g.with("Transpose", []onnx.Attribute{list("perm", 0, 2, 3, 1)}, g.act(x, l.Act))
	return g.reshape(x, 0, int64(c.OutH()*c.OutW()*l.Filters))
}

func (g *grapher) pool(l *model.Pool) string {
	if l.Rows == 1 {
		return g.rows(l.In, 1)
	}
	op := "ReduceMean"
	if l.Max {
		op = "ReduceMax"
	}
	return g.with(op, []onnx.Attribute{list("axes", 1), integer("keepdims", 0)}, g.rows(l.In, l.Rows))
}

func (g *grapher) duel(value, advantage string) string {
	none := g.node("Not",
		g.node("Greater", g.sum(g.with("Cast", []onnx.Attribute{integer("to", int64(onnx.Float32))}, g.mask), 1),
			g.floats([]float32{0})))
	counts := g.node("Or", g.mask, none)
	n := g.sum(g.with("Cast", []onnx.Attribute{integer("to", int64(onnx.Float32))}, counts), 1)
	mean := g.node("Div", g.sum(g.node("Where", counts, advantage, g.floats([]float32{0})), 1), n)
	return g.node("Add", value, g.node("Sub", advantage, mean))
}

// based adds the base, which looks at the observation as the network does.
func (g *grapher) based(v int, l *model.Based) string {
	b, actions := l.Base, g.width[v]
	score := g.slice(g.rows(0, 1), 1, b.From, b.From+(b.Slots-1)*b.Stride+1, b.Stride)
	score = g.node("Mul", score, g.floats([]float32{float32(b.Scale)}))
	if b.Slots < actions {
		score = g.node("Pad", score, g.list(0, 0, 0, int64(actions-b.Slots)), g.floats([]float32{float32(b.Rest)}))
	}
	return g.node("Add", g.rows(l.In, 1), score)
}

// liveRows says for every row whether it is live.
func (g *grapher) liveRows(l *model.LiveRows) *liveness {
	obs := g.rows(0, 1)
	always := func(rows int) string { // nothing is less than itself
		x := g.columns(obs, 0, rows, g.width[0])
		return g.node("Not", g.node("Less", x, x))
	}
	parts, rows := []string{always(1)}, 1
	zero := g.floats([]float32{0})
	for _, t := range l.Tables {
		rows += t.Rows
		switch {
		case t.Columns == 0:
			parts = append(parts, always(t.Rows))
		case t.Filled > 0:
			at := t.At + t.Filled - 1
			parts = append(parts, g.node("Greater", g.slice(obs, 1, at, at+(t.Rows-1)*t.Columns+1, t.Columns), zero))
		default:
			x := g.reshape(g.columns(obs, t.At, t.At+t.Rows*t.Columns, g.width[0]), 0, int64(t.Rows), int64(t.Columns))
			x = g.with("ReduceMax", []onnx.Attribute{list("axes", 2), integer("keepdims", 0)}, g.node("Abs", x))
			parts = append(parts, g.node("Greater", x, zero))
		}
	}
	return &liveness{is: g.concat(1, parts...), rows: rows}
}

func (g *grapher) fill(l *model.FillLive) string {
	live := g.lives[l.Live]
	var parts []string
	at := 1
	for _, r := range l.Rows {
		parts = append(parts, g.sum(g.columns(g.float(live), at, at+r, live.rows), 1))
		at += r
	}
	x := g.node("Log", g.node("Add", g.concat(1, parts...), g.floats([]float32{1})))
	return g.node("Mul", x, g.floats([]float32{float32(1 / logOf1025)}))
}

func (g *grapher) pack(l *model.Pack) string {
	xs := make([]string, len(l.In))
	for i, v := range l.In {
		if xs[i] = g.rows(v, l.Rows[i]); l.Rows[i] == 1 {
			xs[i] = g.reshape(xs[i], 0, 1, int64(l.Columns))
		}
	}
	return g.concat(1, xs...)
}

func (g *grapher) attend(l *model.Attend) string {
	qkv, d := g.rows(l.In, l.Rows), l.Width/l.Heads
	part := func(k int, perm ...int64) string {
		x := g.reshape(g.slice(qkv, 2, k*l.Width, (k+1)*l.Width, 1), 0, int64(l.Rows), int64(l.Heads), int64(d))
		return g.with("Transpose", []onnx.Attribute{list("perm", perm...)}, x)
	}
	q, k, v := part(0, 0, 2, 1, 3), part(1, 0, 2, 3, 1), part(2, 0, 2, 1, 3)
	scores := g.node("Mul", g.node("MatMul", q, k), g.floats([]float32{float32(1 / math.Sqrt(float64(d)))}))
	live := g.reshape(g.lives[l.Live].is, 0, 1, 1, int64(l.Rows))
	scores = g.node("Where", live, scores, g.floats([]float32{lowest}))
	weights := g.with("Softmax", []onnx.Attribute{integer("axis", -1)}, scores)
	x := g.with("Transpose", []onnx.Attribute{list("perm", 0, 2, 1, 3)}, g.node("MatMul", weights, v))
	return g.reshape(x, 0, int64(l.Rows), int64(l.Width))
}

func (g *grapher) unpack(l *model.Unpack) string {
	live := g.lives[l.Live]
	x, is := g.rows(l.In, l.All), g.columns(live.is, l.From, l.From+l.Rows, live.rows)
	if l.All == 1 {
		return x
	}
	x = g.slice(x, 1, l.From, l.From+l.Rows, 1)
	x = g.node("Where", g.reshape(is, 0, int64(l.Rows), 1), x, g.floats([]float32{0}))
	if l.Rows == 1 {
		return g.reshape(x, 0, int64(l.Columns))
	}
	return x
}

func (g *grapher) poolLive(l *model.PoolLive) string {
	live := g.lives[l.Live]
	x := g.rows(l.In, l.Rows)
	first := g.reshape(g.slice(x, 1, 0, 1, 1), 0, int64(l.Columns))
	all := g.node("Where", g.reshape(live.is, 0, int64(l.Rows), 1), x, g.floats([]float32{0}))
	sum := g.reshape(g.sum(all, 1), 0, int64(l.Columns))
	return g.concat(1, first, g.node("Div", sum, g.sum(g.float(live), 1)))
}
