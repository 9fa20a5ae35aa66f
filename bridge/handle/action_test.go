package handle

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// typed is an array of whole numbers of any type.
func typed(d wire.DType, v ...int) wire.Array {
	a := wire.Array{DType: d, Shape: []int{len(v)}}
	for _, x := range v {
		switch d {
		case wire.F64:
			a.Data = append(a.Data, f64s(float64(x)).Data...)
		case wire.F32:
			a.Data = append(a.Data, f32s(float32(x)).Data...)
		case wire.F16:
			a.Data = append(a.Data, 0, map[int]byte{0: 0, 1: 0x3c, 2: 0x40}[x])
		default:
			for k := range d.Size() {
				a.Data = append(a.Data, byte(x>>(8*k)))
			}
		}
	}
	return a
}

// spaces is a factory of toys with other actions.
func spaces(a env.ActionSpec) *testFactory {
	return toys(func(_ int, e *toy) { e.spec.Action, e.spec.NoOp = a, -1 })
}

var (
	multi = env.ActionSpec{Sizes: []int{4, 3}}
	box   = env.ActionSpec{Low: []float32{-1, 0}, High: []float32{1, 10}}
	both  = env.ActionSpec{Sizes: []int{4}, Low: []float32{0}, High: []float32{1}}
	free  = env.ActionSpec{Low: []float32{float32(math.Inf(-1))}, High: []float32{float32(math.Inf(1))}}
)

// The reward says which action arrived.
func TestActionsComeInManyForms(t *testing.T) {
	for _, c := range []struct {
		name string
		spec env.ActionSpec
		a    any
		want []float64
	}{
		{"list", env.ActionSpec{Sizes: []int{4}}, []int{2, 3}, []float64{2, 3}},
		{"list of whole floats", env.ActionSpec{Sizes: []int{4}}, []float64{2, 3}, []float64{2, 3}},
		{"multi, array", multi, shaped(i64s(2, 1, 3, 2), 2, 2), []float64{21, 32}},
		{"multi, lists", multi, []any{[]int{2, 1}, []int{3, 2}}, []float64{21, 32}},
		{"box, float32", box, shaped(f32s(0.5, 2, -1, 10), 2, 2), []float64{2.5, 9}},
		{"box, float64", box, shaped(f64s(0.5, 2, -1, 10), 2, 2), []float64{2.5, 9}},
		{"box, int8", box, shaped(typed(wire.I8, 1, 2, 0, 10), 2, 2), []float64{3, 10}},
		{"box, lists", box, []any{[]any{0.5, 2}, []any{-1, 10.0}}, []float64{2.5, 9}},
		{"both", both, wire.Map{field("disc", shaped(i64s(2, 3), 2, 1)), field("cont", shaped(f32s(0.5, 1), 2, 1))},
			[]float64{2.5, 4}},
		{"both, lists", both, wire.Map{field("cont", []any{[]any{0.5}, []any{1}}), field("disc", []any{[]any{2}, []any{3}})},
			[]float64{2.5, 4}},
		{"without bounds", free, shaped(f64s(-1e30, 7), 2, 1), []float64{-1e30, 7}},
	} {
		d := newDriver(t, spaces(c.spec))
		d.open("Bare-v3", field("n", 2))
		d.do(wire.OpReset, field("seed", 0))
		r := numbers(d.do(wire.OpStep, field("a", c.a)).Get("r"))
		for i := range r {
			if math.Abs(r[i]-c.want[i]) > 1e-6*math.Abs(c.want[i]) {
				t.Errorf("%s: rewards %v, want %v", c.name, r, c.want)
			}
		}
	}
	for _, dt := range []wire.DType{wire.I8, wire.U8, wire.I16, wire.U16, wire.I32, wire.U32, wire.I64, wire.U64} {
		d := newDriver(t, toys(nil))
		d.open("Toy-v3", field("n", 2))
		d.do(wire.OpReset, field("seed", 0))
		is(t, dt.String(), d.do(wire.OpStep, field("a", typed(dt, 2, 3))).Get("r"), 2, 3)
	}
	for _, dt := range []wire.DType{wire.F16, wire.F32, wire.F64, wire.I8, wire.U8, wire.I16, wire.U16} {
		d := newDriver(t, spaces(box))
		d.open("Bare-v3")
		d.do(wire.OpReset, field("seed", 0))
		is(t, dt.String(), d.do(wire.OpStep, field("a", shaped(typed(dt, 1, 2), 1, 2))).Get("r"), 3)
	}
}

func TestBadActionsChangeNothing(t *testing.T) {
	nan32 := float32(math.NaN())
	for _, c := range []struct {
		name string
		spec env.ActionSpec
		a    any
		want string
		env  []int
	}{
		{"too large", toySpec().Action, i64s(0, 4, 2),
			"actions of 1 environments are outside the space; nothing was done; got env 1: 4; want 0 to 3", []int{1}},
		{"every one is listed", toySpec().Action, i64s(-1, 0, 99),
			"actions of 2 environments are outside the space; nothing was done; got env 0: -1, env 2: 99; want 0 to 3",
			[]int{0, 2}},
		{"in a list", toySpec().Action, []int{0, 0, 4},
			"actions of 1 environments are outside the space; nothing was done; got env 2: 4; want 0 to 3", []int{2}},
		{"uint64", toySpec().Action,
			wire.Array{DType: wire.U64, Shape: []int{3}, Data: append(typed(wire.U64, 0, 0).Data, 0, 0, 0, 0, 0, 0, 0, 255)},
			"actions of 1 environments are outside the space; nothing was done; got env 2: 9223372036854775807; want 0 to 3",
			[]int{2}},
		{"float array", toySpec().Action, f64s(0, 0, 0), "the type of the actions; got float64; want integers", nil},
		{"bool array", toySpec().Action, wire.Array{DType: wire.Bool, Shape: []int{3}, Data: []byte{0, 0, 0}},
			"the type of the actions; got bool; want integers", nil},
		{"fractions", toySpec().Action, []float64{0.5, 1, 1}, "field a; got 0.5; want a list of 3 whole numbers", nil},
		{"too few", toySpec().Action, i64s(0, 0), "the shape of the actions; got [2]; want [3]", nil},
		{"too few in a list", toySpec().Action, []int{0, 0}, "field a; got a list of 2; want a list of 3 whole numbers", nil},
		{"a column", toySpec().Action, shaped(i64s(0, 0, 0), 3, 1), "the shape of the actions; got [3, 1]; want [3]", nil},
		{"text", toySpec().Action, "left", `field a; got "left"; want an array of integers`, nil},
		{"a map", toySpec().Action, wire.Map{field("disc", i64s(0, 0, 0))}, "field a; got a map; want an array of integers",
			nil},
		{"multi", multi, shaped(i64s(0, 0, 2, 3, 4, -1), 3, 2),
			"actions of 2 environments are outside the space; nothing was done; got env 1 position 1: 3 (0 to 2), env 2 position 0: 4 (0 to 3), env 2 position 1: -1 (0 to 2); want what stands in brackets", []int{1, 2}},
		{"multi, flat", multi, i64s(0, 0, 0, 0, 0, 0), "the shape of the actions; got [6]; want [3, 2]", nil},
		{"multi, ragged", multi, []any{[]int{0, 0}, []int{0}, []int{0, 0}},
			"field a; got a list of 1 at position 1; want a list of 3 lists of 2 whole numbers", nil},
		{"box", box, shaped(f32s(0, 0, -1.5, 0, 0, nan32), 3, 2),
			"actions of 2 environments are outside the space; nothing was done; got env 1 position 0: -1.5 (-1 to 1), env 2 position 1: NaN (0 to 10); want what stands in brackets", []int{1, 2}},
		{"box, wide integers", box, shaped(i64s(0, 0, 0, 0, 0, 0), 3, 2),
			"the type of the actions; got int64; want float32, float64 or float16", nil},
		{"box, text", box, []any{[]any{"x", 0}, []any{0, 0}, []any{0, 0}},
			`field a; got "x"; want a list of 3 lists of 2 numbers`, nil},
		{"box, nothing", box, "x", `field a; got "x"; want an array of numbers`, nil},
		{"without bounds, infinite", free, shaped(f64s(0, math.Inf(1), 1e300), 3, 1),
			"actions of 2 environments are outside the space; nothing was done; got env 1: +Inf, env 2: 1e+300; want -Inf to +Inf", []int{1, 2}},
		{"both, one is missing", both, wire.Map{field("disc", shaped(i64s(0, 0, 0), 3, 1))},
			"field a, want a map with disc and cont", nil},
		{"both, an array", both, i64s(0, 0, 0), "field a, want a map with disc and cont", nil},
		{"both, bad in both", both,
			wire.Map{field("disc", shaped(i64s(0, 9, 0), 3, 1)), field("cont", shaped(f32s(0, 2, 2), 3, 1))},
			"actions of 2 environments are outside the space; nothing was done; got env 1 position 0: 9 (0 to 3), env 1 position 0: 2 (0 to 1), env 2 position 0: 2 (0 to 1); want what stands in brackets", []int{1, 2}},
	} {
		d := newDriver(t, spaces(c.spec))
		d.open("Bare-v3", field("n", 3), field("invalid", "error"))
		before := d.do(wire.OpReset, field("seed", 0))
		for _, op := range []string{wire.OpStep, wire.OpSend} {
			e := d.fails(wire.BadAction, op, field("a", c.a))
			if got := strings.TrimPrefix(e.Error(), "bad_action: "); got != c.want {
				t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
			}
			if !reflect.DeepEqual(e.Env, c.env) {
				t.Errorf("%s: environments %v, want %v", c.name, e.Env, c.env)
			}
		}
		for _, g := range d.h.guards {
			if e := g.inner.(*toy); e.steps != 0 {
				t.Errorf("%s: environment %d has been stepped", c.name, g.index)
			}
		}
		_ = before
	}
	d := newDriver(t, toys(nil))
	d.open("Toy-v3")
	d.do(wire.OpReset, field("seed", 0))
	d.fails(wire.BadRequest, wire.OpStep)
}

func TestLongListsOfBadActionsAreCut(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 1000))
	d.do(wire.OpReset, field("seed", 0))
	a := make([]int64, 1000)
	for i := range a {
		a[i] = 77
	}
	e := d.fails(wire.BadAction, wire.OpStep, field("a", i64s(a...)))
	if len(e.Env) != 1000 || !strings.HasSuffix(e.Got, "env 31: 77, and 968 more") {
		t.Errorf("%d environments, got %q", len(e.Env), e.Got)
	}
}

// Action 1 is always masked; the no-op 3 is legal after even numbers of steps.
func TestMaskedActionsAreReplaced(t *testing.T) {
	for _, c := range []struct {
		invalid string
		more    []wire.Pair
		cost    float64
	}{
		{"noop", nil, 0},
		{"penalty", nil, 0.1},
		{"penalty", []wire.Pair{field("penalty", 2)}, 2},
		{"penalty", []wire.Pair{field("kwargs", wire.Map{field("penalty", 0.5)})}, 0.5},
	} {
		d := newDriver(t, toys(nil))
		d.open("Toy-v3", append(c.more, field("n", 3), field("invalid", c.invalid))...)
		d.do(wire.OpReset, field("seed", 0))
		m := d.do(wire.OpStep, field("a", i64s(1, 2, 1)))
		is(t, "the no-op", m.Get("r"), 3-c.cost, 2, 3-c.cost)
		is(t, "invalid", at(m, "info", "invalid"), 1, 0, 1)
		is(t, "_invalid", at(m, "info", "_invalid"), 1, 0, 1)
		m = d.do(wire.OpStep, field("a", i64s(3, 1, 0)))
		is(t, "the lowest legal action", m.Get("r"), -c.cost, -c.cost, 0)
		is(t, "invalid", at(m, "info", "invalid"), 1, 1, 0)
		m = d.do(wire.OpStep, field("a", i64s(0, 0, 0)))
		if at(m, "info", "invalid") != nil {
			t.Error("invalid is told where nothing was")
		}
		// The cost is part of the return.
		d.pass(3, 1)
		m = d.do(wire.OpStep, field("a", i64s(0, 0, 1)))
		is(t, "return", at(m, "info", "episode", "r"), 3-c.cost-c.cost, 2-c.cost, (3-c.cost)+(3-c.cost))
		is(t, "invalid at the end", at(m, "info", "_invalid"), 0, 0, 1)
	}
}

func TestInSameStepTheLastActionIsToldWithTheEnd(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 2), field("autoreset", "same_step"))
	d.do(wire.OpReset, field("seed", 0))
	d.do(wire.OpStep, field("a", i64s(0)), field("ids", []int{0}))
	d.pass(2, toyEnd-2)
	m := d.do(wire.OpStep, field("a", i64s(1, 1)))
	is(t, "invalid", at(m, "info", "_invalid"), 0, 1)
	is(t, "fin invalid", at(m, "fin", "info", "invalid"), 1)
}

func TestMaskedActionsAreErrorsWhereAskedFor(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 3), field("invalid", "error"))
	d.do(wire.OpReset, field("seed", 0))
	e := d.fails(wire.BadAction, wire.OpStep, field("a", i64s(0, 1, 1)))
	if want := "bad_action: actions of 2 environments are masked; nothing was done; got env 1: 1, env 2: 1; want an action whose mask is 1"; e.Error() != want {
		t.Errorf("%v\nwant %s", e.Error(), want)
	}
	is(t, "obs", at(d.do(wire.OpStep, field("a", i64s(0, 0, 0))), "obs", "aa"), 0, 1, 1, 1, 2, 1)
}

func TestEachFactorHasItsMask(t *testing.T) {
	// Of the seven bits only 1 and 3, both of the first factor, can be clear.
	d := newDriver(t, spaces(multi))
	d.open("Bare-v3", field("n", 2))
	d.do(wire.OpReset, field("seed", 0))
	m := d.do(wire.OpStep, field("a", shaped(i64s(1, 2, 2, 1), 2, 2)))
	is(t, "the lowest legal index of the factor", m.Get("r"), 2, 21)
	is(t, "invalid", at(m, "info", "_invalid"), 1, 0)
}

// An environment may refuse an action that its mask allows. Its row is then unchanged, and the others are stepped.
func TestAnActionThatTheEnvironmentRefusesLeavesItAsItWas(t *testing.T) {
	d := newDriver(t, toys(func(k int, e *toy) {
		if k == 1 {
			e.refuse = 2
		}
	}))
	d.open("Toy-v3", field("n", 2))
	d.do(wire.OpReset, field("seed", 0))
	m := d.do(wire.OpStep, field("a", i64s(2, 2)))
	is(t, "r", m.Get("r"), 2, 0)
	is(t, "obs", at(m, "obs", "aa"), 0, 1, 1, 0)
	if got := fmt.Sprint(m.Get("fault")); got != "[[{code bad_action} {msg env: illegal action: 2} {env [1]}]]" {
		t.Errorf("fault %v", got)
	}
	is(t, "obs", at(d.do(wire.OpStep, field("a", i64s(0, 0))), "obs", "aa"), 0, 2, 1, 1)
	if e := d.fails(wire.BadAction, wire.OpStep, field("a", i64s(2)), field("ids", []int{1})); len(e.Env) != 1 ||
		e.Env[0] != 1 {
		t.Errorf("environments %v", e.Env)
	}
}
