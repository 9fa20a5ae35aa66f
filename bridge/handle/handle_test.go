package handle

import (
	"math"
	"math/rand/v2"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
)

func (e savedToy) SampleTask(src *rand.Rand, dst []float64) {
	dst[0] = 2 * src.Float64()
	dst[1], dst[2] = 2*src.Float64()-1, 2*src.Float64()-1
}

// toys is a factory of toys. edit may change the k-th one.
func toys(edit func(k int, e *toy)) *testFactory {
	k := -1
	next := func() *toy {
		k++
		e := newToy()
		if edit != nil {
			edit(k, e)
		}
		return e
	}
	return &testFactory{makers: map[string]makeOne{
		"Toy-v3":  func(wire.Map) (env.Env, error) { return savedToy{next()}, nil },
		"Bare-v3": func(wire.Map) (env.Env, error) { return next(), nil },
	}}
}

// in steps the toys of all rows with the no-op or, at odd steps, where that is masked, with 0.
func (d *driver) pass(n, times int) (m wire.Map) {
	d.t.Helper()
	for range times {
		m = d.do(wire.OpStep, field("a", i64s(make([]int64, n)...)))
	}
	return m
}

func TestStepsAreAnsweredByColumn(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Ext, wire.MPNP, wire.JSON} {
		d := newDriver(t, toys(nil))
		d.enc = enc
		d.open("Toy-v3", field("n", 3))
		m := d.do(wire.OpReset, field("seed", 10))
		is(t, "obs aa", at(m, "obs", "aa"), 10, 0, 11, 0, 12, 0)
		is(t, "obs zz", at(m, "obs", "zz"), 0.5, 0.5, 0.5)
		is(t, "mask", at(m, "info", "action_mask"), 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1)
		is(t, "_mask", at(m, "info", "_action_mask"), 1, 1, 1)
		is(t, "elapsed", at(m, "info", "elapsed_s"), 0, 0, 0)
		if m.Has("ids") || m.Has("r") || m.Has("fault") {
			t.Errorf("reply %v", m)
		}
		m = d.do(wire.OpStep, field("a", i64s(0, 2, 3)))
		is(t, "obs aa", at(m, "obs", "aa"), 10, 1, 11, 1, 12, 1)
		is(t, "r", m.Get("r"), 0, 2, 3)
		is(t, "te", m.Get("te"), 0, 0, 0)
		is(t, "tr", m.Get("tr"), 0, 0, 0)
		is(t, "mask", at(m, "info", "action_mask"), 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0)
		is(t, "discount", at(m, "info", "discount"), 0.9, 0.9, 0.9)
		is(t, "elapsed", at(m, "info", "elapsed_s"), 60, 60, 60)
		is(t, "_elapsed", at(m, "info", "_elapsed_s"), 1, 1, 1)
		if m.Has("fin") || at(m, "info", "episode") != nil || at(m, "info", "late") != nil {
			t.Errorf("reply %v", m)
		}
		if s := d.h.Stats(); s != (Stats{Steps: 3, Resets: 3}) || d.h.Stats() != (Stats{}) {
			t.Errorf("counted %+v", s)
		}
	}
}

func TestArraysAreOfTheirSpaces(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 2), field("mask", []string{"info", "obs"}), field("info", "all"),
		field("autoreset", "same_step"))
	d.do(wire.OpReset, field("seed", 0), field("ids", []int{1, 0}))
	m := d.pass(2, toyEnd)
	check := func(d wire.DType, shape []int, path ...string) {
		t.Helper()
		a, ok := at(m, path...).(wire.Array)
		if !ok || a.DType != d || len(a.Shape) != len(shape) {
			t.Errorf("%v is %v %v, want %v %v", path, a.DType, a.Shape, d, shape)
			return
		}
		for i := range shape {
			if a.Shape[i] != shape[i] {
				t.Errorf("%v is of shape %v, want %v", path, a.Shape, shape)
			}
		}
	}
	check(wire.F32, []int{2, 2}, "obs", "aa")
	check(wire.F32, []int{2, 1}, "obs", "zz")
	check(wire.U8, []int{2, 4}, "obs", "action_mask")
	check(wire.I8, []int{2, 4}, "info", "action_mask")
	check(wire.F64, []int{2}, "r")
	check(wire.Bool, []int{2}, "te")
	check(wire.Bool, []int{2}, "tr")
	check(wire.I32, []int{2}, "fin", "ids")
	check(wire.F32, []int{2, 2}, "fin", "obs", "aa")
	check(wire.U8, []int{2, 4}, "fin", "obs", "action_mask")
	check(wire.F64, []int{2}, "fin", "info", "late")
	check(wire.Bool, []int{2}, "fin", "info", "_late")
	check(wire.F64, []int{2}, "fin", "info", "episode", "r")
	check(wire.I64, []int{2}, "fin", "info", "episode", "l")
	check(wire.Bool, []int{2}, "fin", "info", "_episode")
	obs, _ := m.Sub("obs")
	if len(obs) != 3 || obs[0].Key != "aa" || obs[1].Key != "action_mask" || obs[2].Key != "zz" {
		t.Errorf("entries of the observation stand in the order %v, want sorted", obs)
	}
}

func TestRowsAreAnsweredInTheOrderAsked(t *testing.T) {
	for _, view := range []string{"dict", "flat"} {
		d := newDriver(t, toys(nil))
		d.open("Toy-v3", field("n", 5), field("obs", view))
		d.do(wire.OpReset, field("seed", 20))
		d.do(wire.OpReset, field("seed", 50), field("which", []any{false, true, false, true, false}))
		m := d.do(wire.OpStep, field("a", i64s(3, 0, 2)), field("ids", []int{3, 0, 4}))
		is(t, "ids", m.Get("ids"), 3, 0, 4)
		is(t, "r", m.Get("r"), 3, 0, 2)
		if view == "dict" {
			is(t, "obs", at(m, "obs", "aa"), 53, 1, 20, 1, 24, 1)
		} else {
			is(t, "obs", m.Get("obs"), 53, 1, 0.5, 20, 1, 0.5, 24, 1, 0.5)
		}
		// The others have not moved.
		m = d.do(wire.OpStep, field("a", i64s(0, 0)), field("ids", i64s(1, 2)))
		if view == "dict" {
			is(t, "obs", at(m, "obs", "aa"), 51, 1, 22, 1)
		} else {
			is(t, "obs", m.Get("obs"), 51, 1, 0.5, 22, 1, 0.5)
		}
		m = d.do(wire.OpMasks, field("ids", []int{4, 1}))
		is(t, "masks", m.Get("mask"), 1, 0, 1, 0, 1, 0, 1, 0)
		is(t, "ids", m.Get("ids"), 4, 1)
	}
}

func TestRowsThatAreNoneAreRefused(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 3))
	d.do(wire.OpReset, field("seed", 0))
	for _, c := range []struct {
		key  string
		v    any
		want string
	}{
		{"ids", []int{0, 3}, "bad_request: field ids names environment 3, want 0 to 2"},
		{"ids", []int{-1}, "bad_request: field ids names environment -1, want 0 to 2"},
		{"ids", []int{1, 2, 1}, "bad_request: field ids names environment 1 twice"},
		{"ids", []int{}, "bad_request: field ids is empty, want at least one index; leave it out for all"},
		{"ids", []int{0, 1, 2, 0}, "bad_request: field ids has 4 entries, want different ones of 3 environments"},
		{"ids", "0", "bad_request: field ids; got a string; want a list of whole numbers"},
		{"ids", []float64{0.5}, "bad_request: field ids; got a number; want whole numbers"},
		{"ids", shaped(i64s(0, 1), 2, 1), "bad_request: field ids; got an array of int64; want a list of whole numbers"},
		{"which", []any{true},
			"bad_request: field which, want a list or array of 3 booleans, one for each environment, one of them true"},
		{"which", []any{false, false, false},
			"bad_request: field which, want a list or array of 3 booleans, one for each environment, one of them true"},
		{"which", i64s(1, 0, 1),
			"bad_request: field which, want a list or array of 3 booleans, one for each environment, one of them true"},
	} {
		if e := d.fails(wire.BadRequest, wire.OpReset, field(c.key, c.v)); e.Error() != c.want {
			t.Errorf("%v\nwant %s", e.Error(), c.want)
		}
	}
	d.fails(wire.BadRequest, wire.OpReset, field("ids", []int{0}), field("which", []any{true, false, false}))
	// The mark of a duplicate does not outlive its request.
	is(t, "obs", at(d.do(wire.OpStep, field("a", i64s(0, 0)), field("ids", []int{1, 2})), "obs", "aa"), 1, 1, 2, 1)
}

// In next_step the reply shows the last observation, and the next step ignores its action.
func TestNextStepShowsTheEndAndThenTheBeginning(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 2), field("info", "all"))
	d.do(wire.OpReset, field("seed", 4)) // row 0 ends Terminated, row 1 Truncated
	d.do(wire.OpStep, field("a", i64s(2, 3)))
	d.pass(2, toyEnd-2)
	m := d.do(wire.OpStep, field("a", i64s(2, 0)))
	is(t, "obs", at(m, "obs", "aa"), 4, 5, 5, 5)
	is(t, "te", m.Get("te"), 1, 0)
	is(t, "tr", m.Get("tr"), 0, 1)
	is(t, "episode r", at(m, "info", "episode", "r"), 4, 3)
	is(t, "episode l", at(m, "info", "episode", "l"), 5, 5)
	is(t, "_episode", at(m, "info", "_episode"), 1, 1)
	is(t, "late", at(m, "info", "late"), 5, 5)
	if m.Has("fin") {
		t.Error("next_step has a final part")
	}
	// The action is ignored even if it is far outside the space.
	m = d.do(wire.OpStep, field("a", i64s(-99, math.MaxInt64)))
	is(t, "obs", at(m, "obs", "aa"), float64(env.EpisodeSeed(4, 1)%100), 0, float64(env.EpisodeSeed(5, 1)%100), 0)
	is(t, "r", m.Get("r"), 0, 0)
	is(t, "te", m.Get("te"), 0, 0)
	is(t, "tr", m.Get("tr"), 0, 0)
	is(t, "_late", at(m, "info", "_late"), 0, 0)
	is(t, "late", at(m, "info", "late"), 0, 0)
	is(t, "elapsed", at(m, "info", "elapsed_s"), 0, 0)
	if at(m, "info", "episode") != nil {
		t.Error("a dead step has an episode")
	}
	if s := d.h.Stats(); s != (Stats{Steps: 10, Resets: 4, Episodes: 2}) {
		t.Errorf("counted %+v", s)
	}
}

// In same_step the row has the reward of the last step and the first observation of the next episode. The final part
// has the last observation.
func TestSameStepShowsBothAtOnce(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 3), field("info", "all"), field("autoreset", "same_step"))
	d.do(wire.OpReset, field("seed", 4))
	d.do(wire.OpStep, field("a", i64s(0)), field("ids", []int{1})) // row 1 is a step ahead
	d.pass(3, toyEnd-2)
	m := d.do(wire.OpStep, field("a", i64s(2, 2, 2)))
	is(t, "obs", at(m, "obs", "aa"), 4, 4, float64(env.EpisodeSeed(5, 1)%100), 0, 6, 4)
	is(t, "r", m.Get("r"), 2, 2, 2)
	is(t, "te", m.Get("te"), 0, 0, 0)
	is(t, "tr", m.Get("tr"), 0, 1, 0)
	is(t, "mask", at(m, "info", "action_mask"), 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1)
	is(t, "elapsed", at(m, "info", "elapsed_s"), 240, 0, 240)
	is(t, "late", at(m, "info", "_late"), 1, 0, 1)
	if at(m, "info", "episode") != nil {
		t.Error("the episode stands beside the next one's first step")
	}
	is(t, "fin ids", at(m, "fin", "ids"), 1)
	is(t, "fin obs", at(m, "fin", "obs", "aa"), 5, 5)
	is(t, "fin mask", at(m, "fin", "info", "action_mask"), 1, 0, 1, 0)
	is(t, "fin elapsed", at(m, "fin", "info", "elapsed_s"), 300)
	is(t, "fin late", at(m, "fin", "info", "late"), 5)
	is(t, "fin r", at(m, "fin", "info", "episode", "r"), 2)
	is(t, "fin l", at(m, "fin", "info", "episode", "l"), 5)
	// The next episode's return begins at 0.
	m = d.do(wire.OpStep, field("a", i64s(3)), field("ids", []int{1}))
	for range toyEnd - 1 {
		m = d.do(wire.OpStep, field("a", i64s(0)), field("ids", []int{1}))
	}
	is(t, "fin r", at(m, "fin", "info", "episode", "r"), 3)
	is(t, "fin l", at(m, "fin", "info", "episode", "l"), 5)
	if s := d.h.Stats(); s.Episodes != 2 || s.Resets != 5 {
		t.Errorf("counted %+v", s)
	}
}

func TestDisabledWaitsForAReset(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 3), field("autoreset", "disabled"))
	d.do(wire.OpReset, field("seed", 0))
	d.do(wire.OpStep, field("a", i64s(0, 0)), field("ids", []int{0, 2}))
	m := d.pass(3, toyEnd-1)
	is(t, "te", m.Get("te"), 1, 0, 1)
	e := d.fails(wire.NeedsReset, wire.OpStep, field("a", i64s(0, 0, 0)))
	if len(e.Env) != 2 || e.Env[0] != 0 || e.Env[1] != 2 {
		t.Errorf("environments %v, want [0 2]", e.Env)
	}
	// Nothing was done: row 1 is where it was.
	m = d.do(wire.OpStep, field("a", i64s(0)), field("ids", []int{1}))
	is(t, "obs", at(m, "obs", "aa"), 1, 5)
	m = d.do(wire.OpReset, field("ids", []int{0}))
	is(t, "obs", at(m, "obs", "aa"), float64(env.EpisodeSeed(0, 1)%100), 0)
	d.do(wire.OpStep, field("a", i64s(0)), field("ids", []int{0}))
}

func TestNothingIsSteppedBeforeAReset(t *testing.T) {
	for _, op := range []string{wire.OpStep, wire.OpSend, wire.OpMasks, wire.OpRender, wire.OpSnapshot} {
		d := newDriver(t, toys(nil))
		d.open("Toy-v3", field("n", 2))
		d.do(wire.OpReset, field("ids", []int{1}), field("seed", 0))
		e := d.fails(wire.NeedsReset, op, field("a", i64s(0, 0)))
		if len(e.Env) != 1 || e.Env[0] != 0 {
			t.Errorf("%s: environments %v, want [0]", op, e.Env)
		}
	}
}

func TestUnknownOperationsAreErrors(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3")
	d.fails(wire.UnknownOp, "jump")
}

// Rendered texts are not bounded by open: a reply that is too long is an error, and the handle stays usable.
func TestAReplyThatIsTooLongIsAnError(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.lim.MaxFrameOut = 4 << 10
	d.open("Toy-v3")
	d.do(wire.OpReset, field("seed", 1))
	d.fails(wire.TooLarge, wire.OpCall, field("method", "sample_tasks"), field("args", wire.Map{{Key: "n", Value: 1000}}))
	d.do(wire.OpStep, field("a", i64s(0)))
}
