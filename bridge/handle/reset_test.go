package handle

import (
	"fmt"
	"reflect"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
)

func theToy(d *driver, i int) *toy {
	switch e := d.h.guards[i].inner.(type) {
	case savedToy:
		return e.toy
	case *toy:
		return e
	}
	return nil
}

func TestAResetOfSomeLeavesTheOthers(t *testing.T) {
	for _, some := range []wire.Pair{
		field("ids", []int{2, 0}), field("which", []any{true, false, true}),
		field("which", wire.Array{DType: wire.Bool, Shape: []int{3}, Data: []byte{1, 0, 1}}),
	} {
		d := newDriver(t, toys(nil))
		d.open("Toy-v3", field("n", 3))
		d.do(wire.OpReset, field("seed", 10))
		d.pass(3, 2)
		m := d.do(wire.OpReset, some, field("seed", 30))
		if some.Key == "ids" {
			is(t, "ids", m.Get("ids"), 2, 0)
			is(t, "obs", at(m, "obs", "aa"), 32, 0, 30, 0)
		} else {
			is(t, "ids", m.Get("ids"), 0, 2)
			is(t, "obs", at(m, "obs", "aa"), 30, 0, 32, 0)
		}
		is(t, "obs", at(d.pass(3, 1), "obs", "aa"), 30, 1, 11, 3, 32, 1)
	}
}

func TestOptionsPickTheEpisode(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 2))
	windows := func(want ...int) {
		t.Helper()
		for i, w := range want {
			if got := theToy(d, i).window; got != w {
				t.Errorf("environment %d has window %d, want %d", i, got, w)
			}
		}
	}
	d.do(wire.OpReset, field("seed", 0), field("options", wire.Map{}))
	windows(-1, -1)
	d.do(wire.OpReset, field("options", wire.Map{field("split", "test"), field("window", 4)}))
	windows(4, 4)
	d.do(wire.OpReset, field("options", []any{nil, wire.Map{field("window", 7)}}))
	windows(-1, 7)
	if e := theToy(d, 1); e.seed != env.EpisodeSeed(1, 2) {
		t.Errorf("options have moved the stream: seed %d", e.seed)
	}
	d.do(wire.OpReset, field("seed", 50), field("options", wire.Map{field("window", 2)}))
	if e := theToy(d, 1); e.seed != 51 || e.window != 2 {
		t.Errorf("seed %d, window %d", e.seed, e.window)
	}
	// A window is for one reset only: the next episode draws its own.
	d.pass(2, toyEnd+1)
	windows(-1, -1)
}

func TestBadOptionsAreNamed(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 2))
	d.do(wire.OpReset, field("seed", 0))
	for _, c := range []struct {
		options any
		want    string
	}{
		{"test", "bad_request: field options, want a map, or a list of maps with one for each environment asked"},
		{[]any{nil}, "bad_request: field options has 1 entry for 2 environments"},
		{[]any{nil, 3}, "bad_request: field options has something else than a map at position 1"},
		{wire.Map{field("windw", 3)}, `bad_request: field options; got "windw"; want split, window and task`},
		{wire.Map{field("split", 3)}, "bad_request: field split; got an integer; want a string"},
		{wire.Map{field("window", -2)}, "bad_request: field window; got -2; want a whole number from -1 to 2147483647"},
		{wire.Map{field("window", "first")},
			"bad_request: field window; got a string; want a whole number from -1 to 2147483647"},
		{wire.Map{field("task", []float64{1})}, "bad_request: a task; got 1 number; want 3 numbers"},
		{wire.Map{field("task", 7)}, "bad_request: a task; got 7; want 3 numbers"},
		{wire.Map{field("task", []any{1, 0, "x"})}, `bad_request: a task; got "x"; want 3 numbers`},
		{wire.Map{field("task", f64s(1, 0, 1.5))}, "bad_request: a task: goal; got 1.5; want -1 to 1"},
		{wire.Map{field("task", f64s(nan, 0, 0))}, "bad_request: a task: speed; got NaN; want 0 to 2"},
	} {
		if e := d.fails(wire.BadRequest, wire.OpReset, field("options", c.options)); e.Error() != c.want {
			t.Errorf("%v\nwant %s", e.Error(), c.want)
		}
	}
	is(t, "nothing was reset", at(d.pass(2, 1), "obs", "aa"), 0, 1, 1, 1)
	d = newDriver(t, toys(nil))
	d.open("Bare-v3")
	if e := d.fails(wire.Unsupported, wire.OpReset, field("options", wire.Map{field("task", []float64{1})})); e.Msg !=
		"Bare-v3 has no tasks" {
		t.Error(e.Error())
	}
}

// Asking for an episode that an environment does not have is an error that changes nothing, not even in the
// environments that have theirs.
func TestAnEpisodeThatDoesNotExistChangesNothing(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 4))
	d.do(wire.OpReset, field("seed", 10), field("ids", []int{0, 1, 2})) // row 3 has no episode
	d.do(wire.OpStep, field("a", i64s(2, 2, 2)), field("ids", []int{0, 1, 2}))
	var before []toy
	for i := range 3 {
		before = append(before, *theToy(d, i))
	}
	for _, seed := range []any{nil, 70} {
		e := d.fails(wire.BadRequest, wire.OpReset, field("seed", seed),
			field("options",
				[]any{wire.Map{field("window", 3)}, wire.Map{field("window", 8)}, wire.Map{field("split", "train")}, wire.Map{}}))
		if want := "field options: env: no such episode: window 8, want 0 to 7"; e.Msg != want ||
			!reflect.DeepEqual(e.Env, []int{1, 2}) {
			t.Errorf("%v of %v, want %s of [1 2]", e.Error(), e.Env, want)
		}
		for i := range 3 {
			e := theToy(d, i)
			if e.seed != before[i].seed || e.steps != before[i].steps || e.window != before[i].window {
				t.Errorf("environment %d has changed: %+v", i, e)
			}
		}
		d.fails(wire.NeedsReset, wire.OpStep, field("a", i64s(0)), field("ids", []int{3}))
	}
	m := d.do(wire.OpStep, field("a", i64s(0, 0, 0)), field("ids", []int{0, 1, 2}))
	is(t, "obs", at(m, "obs", "aa"), 10, 2, 11, 2, 12, 2)
	for range toyEnd - 2 {
		m = d.do(wire.OpStep, field("a", i64s(0, 0, 0)), field("ids", []int{0, 1, 2}))
	}
	is(t, "return", at(m, "info", "episode", "r"), 2, 2, 2)
	m = d.do(wire.OpReset, field("ids", []int{0, 3}))
	is(t, "the stream has not moved", numbers(at(m, "obs", "aa"))[:2], float64(env.EpisodeSeed(10, 1)%100), 0)
	is(t, "what was never seeded is still not", at(m, "info", "_seed"), 0, 1)
}

// Without snapshots a refused reset cannot be undone, and its rows need another reset.
func TestWithoutSnapshotsARefusedEpisodeNeedsAReset(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Bare-v3", field("n", 2))
	d.do(wire.OpReset, field("seed", 10))
	d.fails(wire.BadRequest, wire.OpReset, field("options", wire.Map{field("window", 9)}), field("ids", []int{1}))
	d.fails(wire.NeedsReset, wire.OpStep, field("a", i64s(0, 0)))
	d.do(wire.OpStep, field("a", i64s(0)), field("ids", []int{0}))
	d.do(wire.OpReset, field("ids", []int{1}))
	d.pass(2, 1)
}

func TestATaskHoldsUntilAnotherIsSet(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 3))
	d.do(wire.OpReset, field("seed", 0))
	task := func(i int, want ...float64) {
		t.Helper()
		if got := theToy(d, i).task; !reflect.DeepEqual(got, append([]float64(nil), want...)) {
			t.Errorf("environment %d plays task %v, want %v", i, got, want)
		}
	}
	ret := d.do(wire.OpCall, field("method", "set_task"), field("args", wire.Map{field("task", []any{1, 0, 0.5})}),
		field("ids", []int{1})).Get("ret")
	if !reflect.DeepEqual(ret, []any{nil}) {
		t.Errorf("set_task answers %v", ret)
	}
	task(1) // not before the next reset
	d.pass(3, toyEnd+1)
	task(0)
	task(1, 1, 0, 0.5)
	d.do(wire.OpReset, field("seed", 9))
	task(1, 1, 0, 0.5)
	d.do(wire.OpReset, field("options", wire.Map{field("window", 1)}))
	task(1, 1, 0, 0.5)
	d.do(wire.OpReset, field("options", []any{wire.Map{field("task", f64s(2, 1, 1))}, wire.Map{field("task", nil)}, nil}))
	task(0, 2, 1, 1)
	task(1)
	task(2)
	d.do(wire.OpReset)
	task(0, 2, 1, 1)
	ret = d.do(wire.OpCall, field("method", "get_task")).Get("ret")
	if !reflect.DeepEqual(ret, []any{[]any{2.0, 1.0, 1.0}, nil, nil}) {
		t.Errorf("get_task answers %v", ret)
	}
	d.do(wire.OpCall, field("method", "set_task"), field("args", wire.Map{field("tasks", []any{[]int{0, 0, 0}, nil})}),
		field("ids", []int{2, 0}))
	ret = d.do(wire.OpCall, field("method", "get_task"), field("ids", []int{0, 2})).Get("ret")
	if !reflect.DeepEqual(ret, []any{nil, []any{0.0, 0.0, 0.0}}) {
		t.Errorf("get_task answers %v", ret)
	}
}

// A row whose environment has no episode although none was asked for by name has failed by itself: the request is not
// refused, nobody's options are blamed, and the other rows are reset.
func TestARowWithoutAnEpisodeDoesNotRefuseTheOthers(t *testing.T) {
	for _, options := range []any{nil, wire.Map{}, wire.Map{field("window", -1)},
		[]any{wire.Map{field("window", 3)}, nil, wire.Map{field("split", "test")}}} {
		d := newDriver(t, toys(func(k int, e *toy) { e.barren = k == 1 }))
		d.open("Toy-v3", field("n", 3))
		m := d.do(wire.OpReset, field("seed", 10), field("options", options))
		is(t, "obs", at(m, "obs", "aa"), 10, 0, 0, 0, 12, 0)
		f, _ := m.Get("fault").([]any)
		if len(f) != 1 || fmt.Sprint(f[0]) !=
			"[{code env_fault} {msg the environment failed: env: no such episode: a barren toy} {env [1]}]" {
			t.Errorf("options %v: fault %v", options, f)
		}
		d.fails(wire.EnvFault, wire.OpStep, field("a", i64s(0)), field("ids", []int{1}))
		d.do(wire.OpStep, field("a", i64s(0, 0)), field("ids", []int{0, 2}))
	}
	// Where a row's options name what does not exist, the request changes nothing, and only that row is blamed.
	d := newDriver(t, toys(func(k int, e *toy) { e.barren = k == 1 }))
	d.open("Toy-v3", field("n", 3), field("invalid", "penalty"))
	d.do(wire.OpReset, field("seed", 10))
	d.do(wire.OpStep, field("a", i64s(1, 1)), field("ids", []int{0, 2})) // masked
	before := d.do(wire.OpSnapshot, field("ids", []int{0, 2})).Get("blob")
	e := d.fails(wire.BadRequest, wire.OpReset, field("options", []any{wire.Map{field("window", 9)}, nil, nil}))
	if !reflect.DeepEqual(e.Env, []int{0}) {
		t.Errorf("environments %v, want [0]: %s", e.Env, e.Error())
	}
	if after := d.do(wire.OpSnapshot, field("ids", []int{0, 2})).Get("blob"); !reflect.DeepEqual(before, after) {
		t.Error("a refused reset has changed the other rows, or what their last step paid")
	}
}
