package op

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/nets/kernel"
)

// The operations in this file compute only the live rows of sequences, which are packed (nets/kernel, live.go): live
// [N, 1+T] says which they are, and a packed value [N·T, H] has no meaning below its live rows.

// LiveRows lists the live rows of observations x [N, D] as live [N, 1+T]: row 0 of each sequence, which every
// observation has, then those of the tables.
func LiveRows(x *gorgonia.Node, tables []kernel.Table) *gorgonia.Node {
	s := shape("liverows", x, 2)
	t := 1
	for _, tab := range tables {
		need(tab.At+tab.Rows*tab.Columns <= s[1], "liverows: table %+v in %d columns", tab, s[1])
		t += tab.Rows
	}
	return apply(spec{name: fmt.Sprintf("liverows %v", tables), out: tensor.Shape{s[0], 1 + t}},
		runLiveRows[float32](s[0], s[1], t, tables), runLiveRows[float64](s[0], s[1], t, tables), x)
}

func runLiveRows[T kernel.Float](n, d, t int, tables []kernel.Table) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.ListLive(out, in[0], n, d, tables, t) }
}

// FillLive is how many rows of each part are live, ln(1+k)/ln 1025, in shape [N, parts]: after row 0 of a sequence come
// the parts, with that many rows each.
func FillLive(live *gorgonia.Node, rows []int) *gorgonia.Node {
	n, t := of("filllive", live)
	return apply(spec{name: fmt.Sprintf("filllive %v", rows), out: tensor.Shape{n, len(rows)}},
		runFillLive[float32](n, t, rows), runFillLive[float64](n, t, rows), live)
}

func runFillLive[T kernel.Float](n, t int, rows []int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.FillLive(out, in[0], n, t, rows) }
}

// of returns N and T of live.
func of(name string, live *gorgonia.Node) (n, t int) {
	s := shape(name, live, 2)
	need(s[1] > 1, "%s: live has shape %v", name, s)
	return s[0], s[1] - 1
}

// packed returns N, T and H after checking that x is packed memory for live.
func packed(name string, x, live *gorgonia.Node) (n, t, h int) {
	n, t = of(name, live)
	s := shape(name, x, 2)
	need(s[0] == n*t, "%s: %d rows for %d sequences of %d", name, s[0], n, t)
	return n, t, s[1]
}

// Pack packs the live rows of parts into one value [N·T, H]. The parts [N·rows, H] have the rows of the sequences in
// order.
func Pack(live *gorgonia.Node, parts ...*gorgonia.Node) *gorgonia.Node {
	n, t := of("pack", live)
	rows, h, all := make([]int, len(parts)), 0, 0
	for i, p := range parts {
		s := shape("pack", p, 2)
		need(s[0]%n == 0 && (i == 0 || s[1] == h), "pack: part of shape %v for %d sequences", s, n)
		rows[i], h = s[0]/n, s[1]
		all += rows[i]
	}
	need(all == t, "pack: parts of %d rows for sequences of %d", all, t)
	return apply(spec{
		name: fmt.Sprintf("pack %v", rows),
		out:  tensor.Shape{n * t, h},
		diff: len(parts),
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			gs, from := gorgonia.Nodes{}, 0
			for _, r := range rows {
				gs = append(gs, unpack(grad, in[len(in)-1], from, r))
				from += r
			}
			return gs
		},
	}, runPackAll[float32](n, t, h,
		rows), runPackAll[float64](n, t, h, rows), append(append(gorgonia.Nodes{}, parts...), live)...)
}

func runPackAll[T kernel.Float](n, t, h int, rows []int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		from := 0
		for i, r := range rows {
			kernel.Pack(out, in[i], in[len(rows)], n, t, h, from, r, false)
			from += r
		}
	}
}

// Unpack is the rows [from, from+rows) of each sequence of packed x, in shape [N·rows, H]; those that are not live are
// 0.
func Unpack(x, live *gorgonia.Node, from, rows int) *gorgonia.Node {
	_, t, _ := packed("unpack", x, live)
	need(from >= 0 && rows > 0 && from+rows <= t, "unpack: rows %d to %d of %d", from, from+rows, t)
	return unpack(x, live, from, rows)
}

func unpack(x, live *gorgonia.Node, from, rows int) *gorgonia.Node {
	n, t, h := packed("unpack", x, live)
	return apply(spec{
		name: fmt.Sprintf("unpack %d %d", from, rows),
		out:  tensor.Shape{n * rows, h},
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{apply(spec{name: fmt.Sprintf("pack alone %d %d", from, rows), out: tensor.Shape{n * t, h}},
				runPack[float32](n, t, h, from, rows), runPack[float64](n, t, h, from, rows), grad, in[1])}
		},
	}, runUnpack[float32](n, t, h, from, rows), runUnpack[float64](n, t, h, from, rows), x, live)
}

func runUnpack[T kernel.Float](n, t, h, from, rows int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.Unpack(out, in[0], in[1], n, t, h, from, rows) }
}

func runPack[T kernel.Float](n, t, h, from, rows int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.Pack(out, in[0], in[1], n, t, h, from, rows, true) }
}

// PoolLive is each sequence's first row and the mean of its live rows, side by side, in shape [N, 2·H].
func PoolLive(x, live *gorgonia.Node) *gorgonia.Node {
	n, t, h := packed("poollive", x, live)
	return apply(spec{
		name: "poollive",
		out:  tensor.Shape{n, 2 * h},
		diff: 1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{apply(spec{name: "poollive-grad", out: tensor.Shape{n * t, h}},
				runPoolLiveGrad[float32](n, t, h), runPoolLiveGrad[float64](n, t, h), grad, in[1])}
		},
	}, runPoolLive[float32](n, t, h), runPoolLive[float64](n, t, h), x, live)
}

func runPoolLive[T kernel.Float](n, t, h int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.PoolLive(out, in[0], in[1], n, t, h) }
}

func runPoolLiveGrad[T kernel.Float](n, t, h int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) { kernel.PoolLiveGrad(out, in[0], in[1], n, t, h) }
}

// AttendLive is scaled dot-product attention of every live row to the live rows of its sequence (kernel.Attend), from
// packed queries, keys and values side by side, qkv [N·T, 3·H].
func AttendLive(qkv, live *gorgonia.Node, heads int) *gorgonia.Node {
	n, t, w := packed("attend", qkv, live)
	h := w / 3
	need(heads > 0 && w == 3*h && h%heads == 0, "attend: %d heads over %d columns", heads, w)
	scratch := kernel.AttendScratch(t, h, heads)
	return apply(spec{
		name:    fmt.Sprintf("attend %d", heads),
		out:     tensor.Shape{n * t, h},
		scratch: scratch,
		diff:    1,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{apply(spec{name: fmt.Sprintf("attend-grad %d", heads), out: tensor.Shape{n * t, 3 * h},
				scratch: scratch},
				runAttendGrad[float32](n, t, h, heads), runAttendGrad[float64](n, t, h, heads), in[0], grad, in[1])}
		},
	}, runAttend[float32](n, t, h, heads), runAttend[float64](n, t, h, heads), qkv, live)
}

func runAttend[T kernel.Float](n, t, h, heads int) runFunc[T] {
	return func(out []T, in [][]T, scratch []T) { kernel.AttendLive(out, in[0], in[1], n, t, h, heads, scratch) }
}

func runAttendGrad[T kernel.Float](n, t, h, heads int) runFunc[T] {
	return func(out []T, in [][]T, scratch []T) {
		kernel.AttendLiveGrad(out, in[0], in[1], in[2], n, t, h, heads, scratch)
	}
}

// DenseLive is Dense over the live rows of packed x [N·T, in].
func DenseLive(x, w, b, live *gorgonia.Node, act Act) *gorgonia.Node {
	packed("denselive", x, live)
	return dense("denselive", x, w, b, live, act)
}

// NormLive is LayerNorm over the live rows of packed x [N·T, H].
func NormLive(x, gamma, beta, live *gorgonia.Node) *gorgonia.Node {
	packed("normlive", x, live)
	return norm("normlive", x, gamma, beta, live)
}

// AddLive is a + b over the live rows of packed values.
func AddLive(a, b, live *gorgonia.Node) *gorgonia.Node {
	n, t, h := packed("addlive", a, live)
	need(a.Shape().Eq(b.Shape()), "addlive: %v and %v", a.Shape(), b.Shape())
	return apply(spec{
		name: "addlive",
		out:  a.Shape(),
		over: 1,
		diff: 2,
		grad: func(in gorgonia.Nodes, out, grad *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{grad, grad}
		},
	}, runAddLive[float32](n, t, h), runAddLive[float64](n, t, h), a, b, live)
}

func runAddLive[T kernel.Float](n, t, h int) runFunc[T] {
	return func(out []T, in [][]T, _ []T) {
		m := kernel.CountLive(in[2], n, t) * h
		kernel.Add(out[:m], in[0], in[1])
	}
}
