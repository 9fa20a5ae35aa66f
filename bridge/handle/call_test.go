package handle

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
)

func TestMasksAreThoseOfTheLastReply(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 2), field("mask", []any{}))
	if m := d.do(wire.OpReset, field("seed", 0)); at(m, "info", "action_mask") != nil {
		t.Error("a mask was not asked for")
	}
	d.do(wire.OpStep, field("a", i64s(0)), field("ids", []int{1}))
	m := d.do(wire.OpMasks)
	is(t, "mask", m.Get("mask"), 1, 0, 1, 1, 1, 0, 1, 0)
	if a := m.Get("mask").(wire.Array); a.DType != wire.I8 || m.Has("ids") {
		t.Errorf("reply %v", m)
	}
	d = newDriver(t, spaces(box))
	d.open("Bare-v3")
	if m := d.do(wire.OpReset, field("seed", 0)); at(m, "info", "action_mask") != nil {
		t.Error("numbers have a mask")
	}
	d.fails(wire.Unsupported, wire.OpMasks)
}

func TestSampledTasksAreOfTheirSeed(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3")
	sample := func(args wire.Map) []any {
		t.Helper()
		return d.do(wire.OpCall, field("method", "sample_tasks"), field("args", args)).Get("ret").([]any)
	}
	a, b := sample(wire.Map{field("n", 3), field("seed", 5)}), sample(wire.Map{field("n", 3), field("seed", 5)})
	if len(a) != 3 || !reflect.DeepEqual(a, b) || reflect.DeepEqual(a[0], a[1]) {
		t.Errorf("tasks %v and %v", a, b)
	}
	if c := sample(nil); len(c) != 1 || reflect.DeepEqual(c[0], sample(nil)[0]) {
		t.Error("without a seed two samples are the same")
	}
	for _, x := range a[2].([]any) {
		if v := x.(float64); math.Abs(v) > 2 {
			t.Errorf("task %v", a[2])
		}
	}
	d.fails(wire.BadRequest, wire.OpCall, field("method", "sample_tasks"), field("args", wire.Map{field("n", 0)}))
	d.fails(wire.BadSeed, wire.OpCall, field("method", "sample_tasks"), field("args", wire.Map{field("seed", "x")}))
	d.fails(wire.BadRequest, wire.OpCall, field("method", "set_task"))
	d.fails(wire.BadRequest, wire.OpCall, field("method", "set_task"), field("args", wire.Map{field("tasks", []any{})}))
	d.fails(wire.BadRequest, wire.OpCall, field("method", "set_task"), field("args", wire.Map{field("task", 1)}))
}

func TestMethodsAnswerForEachEnvironment(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 3))
	d.fails(wire.NeedsReset, wire.OpCall, field("method", "metrics"))
	d.do(wire.OpReset, field("seed", 0))
	d.do(wire.OpStep, field("a", i64s(2)), field("ids", []int{1}))
	m := d.do(wire.OpCall, field("method", "metrics"), field("ids", []int{1, 0}))
	want := []any{wire.Map{field("steps", int64(1)), field("total", 2.0)},
		wire.Map{field("steps", int64(0)), field("total", 0.0)}}
	if got := m.Get("ret"); !reflect.DeepEqual(got, want) {
		t.Errorf("metrics %v, want %v", got, want)
	}
	m = d.do(wire.OpCall, field("method", "heuristic"), field("args", wire.Map{field("rule", "sjf")}))
	if got := m.Get("ret"); !reflect.DeepEqual(got, []any{int64(3), int64(3), int64(3)}) {
		t.Errorf("heuristic %v", got)
	}
	e := d.fails(wire.BadRequest, wire.OpCall, field("method", "heuristic"), field("args", wire.Map{field("rule", 7)}),
		field("ids", []int{2}))
	if e.Msg != "field rule" || !reflect.DeepEqual(e.Env, []int{2}) {
		t.Errorf("%v of %v", e.Error(), e.Env)
	}
	// A method that panics ends its environment's episode and affects no other environment.
	e = d.fails(wire.EnvFault, wire.OpCall, field("method", "heuristic"), field("args", wire.Map{field("rule", "burst")}))
	if !reflect.DeepEqual(e.Env, []int{0}) || !strings.HasPrefix(e.Msg, "the environment panicked in call: see fault ") {
		t.Errorf("%v of %v", e.Error(), e.Env)
	}
	d.fails(wire.EnvFault, wire.OpStep, field("a", i64s(0, 0, 0)))
	d.do(wire.OpStep, field("a", i64s(0, 0)), field("ids", []int{1, 2}))

	for _, c := range []struct {
		id, method string
		code       wire.Code
	}{
		{"Toy-v3", "rm", wire.BadRequest}, {"Toy-v3", "", wire.BadRequest}, {"Bare-v3", "metrics", wire.Unsupported},
		{"Bare-v3", "get_task", wire.Unsupported},
	} {
		d := newDriver(t, toys(nil))
		d.open(c.id)
		d.do(wire.OpReset, field("seed", 0))
		d.fails(c.code, wire.OpCall, field("method", c.method))
	}
}

func TestPicturesAreTexts(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 2), field("render_mode", "ansi"))
	d.do(wire.OpReset, field("seed", 0))
	d.do(wire.OpStep, field("a", i64s(0)), field("ids", []int{1}))
	if got := d.do(wire.OpRender).Get("render"); !reflect.DeepEqual(got, []any{"step 0 in ansi\n", "step 1 in ansi\n"}) {
		t.Errorf("pictures %q", got)
	}
	m := d.do(wire.OpRender, field("ids", []int{1}), field("mode", "ansi"))
	if got := m.Get("render"); !reflect.DeepEqual(got, []any{"step 1 in ansi\n"}) {
		t.Errorf("pictures %q", got)
	}
	is(t, "ids", m.Get("ids"), 1)
	d = newDriver(t, toys(nil))
	d.open("Bare-v3")
	d.do(wire.OpReset, field("seed", 0))
	if e := d.fails(wire.Unsupported, wire.OpRender, field("mode", "ansi")); e.Want != "rgb_array" {
		t.Error(e.Error())
	}
}

func TestErrorsOfMethodsKeepTheirMeaning(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3")
	h := d.h
	for _, c := range []struct {
		err  error
		code wire.Code
	}{
		{wire.Errorf(wire.Unsupported, "not this rule"), wire.Unsupported}, {env.ErrResetNeeded, wire.NeedsReset},
		{errors.New("no"), wire.BadRequest},
	} {
		var e *wire.Error
		if err := h.callFailed(0, c.err); !errors.As(err, &e) || e.Code != c.code || !reflect.DeepEqual(e.Env, []int{0}) {
			t.Errorf("%v becomes %v", c.err, err)
		}
	}
}
