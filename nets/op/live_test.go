package op_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/nets/kernel"
	"clustergym/nets/op"
	"clustergym/nets/tape"
)

// liveTables are two tables of observations of 2·3 + 4·2 + 1 numbers: one with a column that says which rows are
// filled, and one whose rows of zeros are empty; and two rows that are always there.
var liveTables = []kernel.Table{{At: 0, Rows: 2, Columns: 3, Filled: 2}, {At: 6, Rows: 4, Columns: 2}, {Rows: 2}}

const (
	liveWidth = 15
	liveSeqs  = 3
	liveMost  = 9 // 1 + 2 + 4 + 2
)

// liveObs has sequences with all rows, with some, and with none of the two tables'.
func liveObs(i int) float64 {
	seq, at := i/liveWidth, i%liveWidth
	switch {
	case seq == 0:
		return 1 + cell(i)/2
	case seq == 1 && (at == 1 || at == 9): // row 0 of the first table, row 1 of the second
		return 0.5
	case seq == 1 && at == 3: // no sign that row 1 of the first is filled
		return 7
	}
	return 0
}

func (e *env) live() *gorgonia.Node {
	return op.LiveRows(e.input("obs", liveObs, liveSeqs, liveWidth), liveTables)
}

// packed is live rows of width h, of which some come from each of three parts.
func (e *env) packed(h int) (x, live *gorgonia.Node) {
	live = e.live()
	return op.Pack(live, e.param("global", liveSeqs, h), e.param("first", liveSeqs*2, h),
		e.param("second", liveSeqs*6, h)), live
}

func all(x, live *gorgonia.Node) *gorgonia.Node { return op.Unpack(x, live, 0, liveMost) }

var liveCases = []gradCase{
	{"pack and unpack", func(e *env) *gorgonia.Node { return all(e.packed(3)) }},
	{"unpack some", func(e *env) *gorgonia.Node {
		x, live := e.packed(3)
		return op.Unpack(x, live, 2, 3)
	}},
	{"pool live", func(e *env) *gorgonia.Node { return op.PoolLive(e.packed(4)) }},
	{"dense live tanh", func(e *env) *gorgonia.Node {
		x, live := e.packed(5)
		return all(op.DenseLive(x, e.param("w", 5, 7), e.param("b", 7), live, op.Tanh), live)
	}},
	{"dense live without bias", func(e *env) *gorgonia.Node {
		x, live := e.packed(5)
		return all(op.DenseLive(x, e.param("w", 5, 4), nil, live, op.Identity), live)
	}},
	{"norm live", func(e *env) *gorgonia.Node {
		x, live := e.packed(6)
		return all(op.NormLive(x, e.param("gamma", 6), e.param("beta", 6), live), live)
	}},
	{"add live", func(e *env) *gorgonia.Node {
		x, live := e.packed(4)
		return all(op.AddLive(x, op.DenseLive(x, e.param("w", 4, 4), nil, live, op.Tanh), live), live)
	}},
	{"attend", func(e *env) *gorgonia.Node {
		x, live := e.packed(12)
		return all(op.AttendLive(x, live, 2), live)
	}},
	{"a transformer's layer", func(e *env) *gorgonia.Node {
		const h = 6
		x, live := e.packed(h)
		y := op.NormLive(x, e.param("gamma", h), e.param("beta", h), live)
		y = op.AttendLive(op.DenseLive(y, e.param("in", h, 3*h), e.param("bias", 3*h), live, op.Identity), live, 3)
		x = op.AddLive(x, op.DenseLive(y, e.param("out", h, h), nil, live, op.Identity), live)
		y = op.NormLive(x, e.param("gamma2", h), e.param("beta2", h), live)
		y = op.DenseLive(y, e.param("wide", h, 9), nil, live, op.Tanh)
		x = op.AddLive(x, op.DenseLive(y, e.param("back", 9, h), e.param("bias2", h), live, op.Identity), live)
		slots := op.Reshape(op.Unpack(x, live, 1, 2), liveSeqs, 2*h)
		return op.Concat(slots, op.PoolLive(x, live))
	}},
}

func TestLiveRowsAreThoseThatHoldSomething(t *testing.T) {
	e := &env{fill: map[string]func(int) float64{}}
	p, err := tape.Build(tensor.Float64, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
		e.b = b
		return nil, []*gorgonia.Node{e.live()}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.InputF64("obs") {
		p.InputF64("obs")[i] = liveObs(i)
	}
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{9, 0, 1, 2, 3, 4, 5, 6, 7, 8}, {5, 0, 1, 4, 7, 8}, {3, 0, 7, 8}} {
		if got := p.OutputF64(0)[i*(1+liveMost):][:len(want)]; !slices.Equal(got, want) {
			t.Errorf("sequence %d: %v, want %v", i, got, want)
		}
	}
}

// What stands in rows that are not live, and in packed memory below the live rows, reaches neither results nor
// gradients.
func TestEmptyRowsReachNothing(t *testing.T) {
	const h = 6
	run := func(junk float32) []float32 {
		r := rng.Stream(7, "junk")
		var views []nets.View
		view := func(name string, shape ...int) *nets.View {
			v := nets.View{Name: name, Shape: shape}
			v.Data = make([]float32, v.Size())
			for i := range v.Data {
				v.Data[i] = float32(r.NormFloat64())
			}
			views = append(views, v)
			return &views[len(views)-1]
		}
		views = make([]nets.View, 0, 5)
		for _, v := range []*nets.View{view("second", liveSeqs*6, h)} {
			for i := range v.Data { // the last two sequences have no row 0 of the second table
				if row := i / h; row == 6 || row == 12 {
					v.Data[i] = junk
				}
			}
		}
		global, first, in, gamma := view("global", liveSeqs,
			h), view("first", liveSeqs*2, h), view("in", h, 3*h), view("gamma", h)
		p, err := tape.Build(tensor.Float32, func(b *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			live := op.LiveRows(b.Input("obs", liveSeqs, liveWidth), liveTables)
			x := op.Pack(live, b.Param(global), b.Param(first), b.Param(&views[0]))
			y := op.NormLive(x, b.Param(gamma), b.Param(gamma), live)
			y = op.AddLive(x, op.AttendLive(op.DenseLive(y, b.Param(in), nil, live, op.Identity), live, 3), live)
			out := op.Concat(op.Reshape(op.Unpack(y, live, 0, liveMost), liveSeqs, liveMost*h), op.PoolLive(y, live))
			return gorgonia.Must(gorgonia.Sum(op.Square(out))), []*gorgonia.Node{out}
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Input("obs") {
			p.Input("obs")[i] = float32(liveObs(i))
		}
		for range 2 { // the second run finds what the first has left in memory
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
		}
		return append(slices.Clone(p.Output(0)), p.Grad().Data...)
	}
	want := run(1)
	for _, junk := range []float32{1e30, float32(math.NaN())} {
		got := run(junk)
		if !slices.Equal(got, want) {
			t.Errorf("%v in empty rows changes something", junk)
		}
	}
	if !slices.ContainsFunc(want, func(x float32) bool { return x != 0 }) ||
		slices.ContainsFunc(want, func(x float32) bool { return x != x }) {
		t.Error("results are 0 or not numbers:", fmt.Sprint(want[:10]))
	}
}
