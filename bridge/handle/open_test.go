package handle

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
)

func TestOpenDescribesTheEnvironment(t *testing.T) {
	f := toys(nil)
	f.sha, f.meta = "abc123", map[string]any{"windows": 8, "noop": "not this one"}
	d := newDriver(t, f)
	m := d.open("Toy-v3")
	if h, _ := m.Int("h", 0, 0, 100); h != 7 {
		t.Errorf("handle %d, want 7", h)
	}
	obs, err := wire.ParseSpace(m.Get("obs_space"))
	if err != nil || obs.Kind != "dict" || !reflect.DeepEqual(obs.Names, []string{"aa", "zz"}) ||
		obs.Items[1].Shape[0] != 1 || obs.Items[0].High[0] != 100 {
		t.Errorf("observations %+v, error %v", obs, err)
	}
	act, err := wire.ParseSpace(m.Get("act_space"))
	if err != nil || act.Kind != "discrete" || act.N != 4 {
		t.Errorf("actions %+v, error %v", act, err)
	}
	want := wire.Map{
		field("id",
			"Toy-v3"), field("version", int64(3)), field("max_episode_steps", int64(toyEnd)), field("reward_threshold", nil),
		field("reward_range",
			[]any{math.Inf(-1), math.Inf(1)}), field("nondeterministic", false), field("scenario_sha", "abc123"),
	}
	if got := m.Get("spec"); !reflect.DeepEqual(got, want) {
		t.Errorf("spec %v\nwant %v", got, want)
	}
	word := func(name string, low, high float64, unit, doc string, shape ...any) wire.Map {
		return wire.Map{field("name", name), field("shape", append([]any{}, shape...)), field("low", low),
			field("high", high), field("unit", unit), field("doc", doc)}
	}
	want = wire.Map{
		field("fields",
			[]any{word("aa", 0, 100, "steps", "seed and steps", int64(2)), word("zz", 0, 1, "fraction", "a half")}),
		field("info",
			[]any{word("discount", 0, 1, "fraction", "per step"), word("late", 0, 10, "steps", "known from the third step on")}),
		field("noop", int64(3)), field("tau_s", 3600.0), field("autoreset", "next_step"), field("snapshots", true),
		field("render_modes",
			[]any{"ansi", "rgb_array"}), field("render_fps", int64(4)), field("methods",
			[]any{"set_task", "get_task", "sample_tasks", "metrics", "heuristic"}),
		field("windows", int64(8)),
	}
	if got := m.Get("meta"); !reflect.DeepEqual(got, want) {
		t.Errorf("meta %v\nwant %v", got, want)
	}
	if got := m.Get("tasks"); !reflect.DeepEqual(got,
		[]any{word("speed", 0, 2, "m/s", ""), word("goal", -1, 1, "", "", int64(2))}) {
		t.Errorf("tasks %v", got)
	}

	d = newDriver(t, toys(nil))
	m = d.open("Bare-v3", field("obs", "flat"), field("n", 2))
	obs, err = wire.ParseSpace(m.Get("obs_space"))
	if err != nil || obs.Kind != "box" || !reflect.DeepEqual(obs.High, []float64{100, 100, 1}) {
		t.Errorf("observations %+v, error %v", obs, err)
	}
	if m.Has("tasks") || at(m, "meta", "snapshots") != false || len(at(m, "meta", "methods").([]any)) != 0 ||
		d.h.Envs() != 2 {
		t.Errorf("a bare environment: %v", m)
	}
}

func TestIdsEndInTheirVersion(t *testing.T) {
	for id, want := range map[string]int{"Toy-v3": 3, "A-v2-v0": 0, "A-v12": 12, "plain": -1, "A-vx": -1, "A-v-1": -1} {
		v, ok := version(id)
		if ok != (want >= 0) || ok && v != want {
			t.Errorf("version(%q) is %d, %v; want %d", id, v, ok, want)
		}
	}
}

func TestBadFieldsOfOpenAreNamed(t *testing.T) {
	for _, c := range []struct {
		fields wire.Map
		want   string
	}{
		{wire.Map{field("env", "")}, "bad_request: field env is missing, want the id of an environment"},
		{wire.Map{field("env", 3)}, "bad_request: field env; got an integer; want a string"},
		{wire.Map{field("n", 0)}, "bad_request: field n; got 0; want a whole number from 1 to 2147483648"},
		{wire.Map{field("n", 1.5)}, "bad_request: field n; got a number; want a whole number from 1 to 2147483648"},
		{wire.Map{field("n", 65)}, "capacity: environments of one handle; got 65; want at most 64"},
		{wire.Map{field("kwargs", []any{})}, "bad_request: field kwargs; got a list; want a map"},
		{wire.Map{field("autoreset", "sometimes")},
			`bad_request: field autoreset; got "sometimes"; want next_step, same_step, disabled`},
		{wire.Map{field("obs", "picture")}, `bad_request: field obs; got "picture"; want dict, flat`},
		{wire.Map{field("obs", "graph")}, `bad_request: field obs; got "graph"; want dict, flat`},
		{wire.Map{field("mask", "info")}, "bad_request: field mask; got a string; want a list of strings"},
		{wire.Map{field("mask", []string{"info", "hat"})}, `bad_request: field mask; got "hat"; want a list of info and obs`},
		{wire.Map{field("mask", []string{"obs"}), field("obs", "flat")},
			"bad_request: field mask: the mask stands in the observation only with obs dict, want mask info with obs flat"},
		{wire.Map{field("invalid", "maybe")}, `bad_request: field invalid; got "maybe"; want noop, penalty, error`},
		{wire.Map{field("penalty", 1.0)}, "bad_request: field penalty has a meaning only with invalid penalty"},
		{wire.Map{field("invalid", "penalty"), field("penalty", -1)},
			"bad_request: field penalty; got -1; want a number, 0 or more"},
		{wire.Map{field("invalid", "penalty"), field("penalty", "x")},
			`bad_request: field penalty; got "x"; want a number, 0 or more`},
		{wire.Map{field("invalid", "penalty"), field("penalty", math.Inf(1))},
			"bad_request: field penalty; got +Inf; want a number, 0 or more"},
		{wire.Map{field("info", "some")},
			`bad_request: field info; got "some"; want none, metrics, episode, all or a list of keys`},
		{wire.Map{field("info", []string{"late", "early"})},
			`bad_request: field info; got "early"; want keys among episode, metrics, discount, late, elapsed_s`},
		{wire.Map{field("info", 3)}, "bad_request: field info; got an integer; want a list of strings"},
		{wire.Map{field("render_mode", "human")}, `unsupported: field render_mode; got "human"; want ansi, rgb_array`},
		{wire.Map{field("env", "Bare-v3"), field("render_mode", "ansi")},
			`unsupported: field render_mode; got "ansi"; want rgb_array`},
		{wire.Map{field("recv", "some")}, `bad_request: field recv; got "some"; want all, any`},
		{wire.Map{field("batch", 1)}, "bad_request: field batch has a meaning only with recv any"},
		{wire.Map{field("recv", "any"), field("n", 4), field("batch", 5)},
			"bad_request: field batch; got 5; want a whole number from 1 to 4"},
		{wire.Map{field("env", "Nothing-v1")}, `unknown_env: no environment "Nothing-v1"`},
	} {
		d := newDriver(t, toys(nil))
		d.lim.MaxEnvs = 64
		fields := c.fields
		if !fields.Has("env") {
			fields = append(wire.Map{field("env", "Toy-v3")}, fields...)
		}
		if _, err := d.tryOpen(fields); err == nil || err.Error() != c.want {
			t.Errorf("%v\ngot  %v\nwant %s", c.fields, err, c.want)
		}
	}
	d := newDriver(t, toys(nil))
	d.o.Async = false
	if _, err := d.tryOpen(wire.Map{field("env", "Toy-v3"), field("recv", "any")}); err == nil ||
		err.Code != wire.Unsupported {
		t.Errorf("recv any without its feature: %v", err)
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("colour", "blue"))
	d.do(wire.OpReset, field("seed", 1), field("colour", "blue"))
	d.do(wire.OpStep, field("a", i64s(0)), field("colour", "blue"))
}

// open refuses a handle whose replies could be too large.
func TestRepliesThatCouldBeTooLargeAreRefusedAtOpen(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Ext, wire.MPNP, wire.JSON} {
		for _, mode := range []string{"next_step", "same_step"} {
			// The replies of the largest handle that opens must fit.
			try := func(n int) (*driver, *wire.Error) {
				d := newDriver(t, toys(nil))
				d.enc, d.lim.MaxFrameOut = enc, 16<<10
				_, err := d.tryOpen(wire.Map{field("env", "Toy-v3"), field("n", n), field("info", "all"), field("mask", []string{"info", "obs"}), field("autoreset", mode)})
				return d, err
			}
			n := 1
			for ; ; n++ {
				if _, err := try(n); err != nil {
					if err.Code != wire.TooLarge || n < 8 {
						t.Fatalf("%v, %s: %d environments: %v", enc, mode, n, err)
					}
					n--
					break
				}
			}
			d, err := try(n)
			if err != nil {
				t.Fatal(err)
			}
			d.do(wire.OpReset, field("seed", uint64(math.MaxUint64-100)))
			for range toyEnd {
				d.pass(n, 1)
				if len(d.raw) > 16<<10 {
					t.Errorf("%v, %s: a step of %d environments takes %d bytes", enc, mode, n, len(d.raw))
				}
			}
		}
	}
}

// failing is a factory that fails in the ways that factories can.
type failing struct {
	err   error
	panic bool
	made  *Made
}

func (f failing) List() []Listing { return nil }

func (f failing) Make(context.Context, string, wire.Map, int) (*Made, error) {
	if f.panic {
		panic("the factory burns")
	}
	return f.made, f.err
}

func TestAFactoryThatFailsIsAnErrorOfTheServer(t *testing.T) {
	e := newToy()
	for _, c := range []struct {
		f    failing
		want string
		wire bool
	}{
		{failing{err: wire.Errorf(wire.BadKwargs, "kwarg gpus")}, "bad_kwargs: kwarg gpus", true},
		{failing{err: errors.New("disk full")}, "disk full", false},
		{failing{panic: true}, `making 2 of "Toy-v3" panicked: the factory burns`, false},
		{failing{made: &Made{Envs: []env.Env{e}}}, `making 2 of "Toy-v3" gave 1 environments`, false},
	} {
		d := newDriver(t, toys(nil))
		o := d.o
		o.Req = d.frame(wire.OpOpen, wire.Map{field("env", "Toy-v3"), field("n", 2)})
		h, err := Open(context.Background(), c.f, d.lim, &o, d.w)
		var we *wire.Error
		if h != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) || errors.As(err, &we) != c.wire {
			t.Errorf("handle %v, error %v, want %q", h, err, c.want)
		}
	}
	if !e.closed {
		t.Error("an environment of a handle that was not opened is not closed")
	}
}

func TestEnvironmentsThatAreNotOpenedAreClosed(t *testing.T) {
	var all []*toy
	f := toys(func(_ int, e *toy) { all = append(all, e) })
	d := newDriver(t, f)
	d.lim.MaxFrameOut = 1 << 10
	if _, err := d.tryOpen(wire.Map{field("env", "Toy-v3"), field("n", 3)}); err == nil || err.Code != wire.TooLarge {
		t.Fatalf("error %v", err)
	}
	for i, e := range all {
		if !e.closed {
			t.Errorf("environment %d is open", i)
		}
	}
	if len(all) != 3 {
		t.Errorf("%d environments were made, want 3", len(all))
	}
}

func TestInfoCarriesWhatWasAskedFor(t *testing.T) {
	for _, c := range []struct {
		info any
		keys []string // of an ended step, in order
	}{
		{nil, []string{"action_mask", "discount", "elapsed_s", "episode", "invalid"}},
		{"episode", []string{"action_mask", "discount", "elapsed_s", "episode", "invalid"}},
		{"none", []string{"action_mask"}},
		{"all", []string{"action_mask", "discount", "elapsed_s", "late", "episode", "invalid"}},
		{[]string{"late"}, []string{"action_mask", "late", "invalid"}},
		{[]string{"late", "late", "episode"}, []string{"action_mask", "late", "episode", "invalid"}},
		{[]string{}, []string{"action_mask", "invalid"}},
		{"metrics", []string{"action_mask", "discount", "elapsed_s", "late", "invalid"}},
		{[]string{"metrics"}, []string{"action_mask", "discount", "elapsed_s", "late", "invalid"}},
		{[]string{"episode", "metrics", "metrics"},
			[]string{"action_mask", "discount", "elapsed_s", "late", "episode", "invalid"}},
		{[]string{"metrics", "late", "elapsed_s"}, []string{"action_mask", "discount", "elapsed_s", "late", "invalid"}},
	} {
		d := newDriver(t, toys(func(_ int, e *toy) { e.spec.Info[1].Metric = true }))
		d.open("Toy-v3", field("n", 2), field("info", c.info))
		d.do(wire.OpReset, field("seed", 0))
		d.pass(2, toyEnd-1)
		m := d.do(wire.OpStep, field("a", i64s(1, 0))) // 1 is masked
		info, _ := m.Sub("info")
		var want []string
		for _, k := range c.keys {
			want = append(want, k, "_"+k)
		}
		var got []string
		for _, p := range info {
			got = append(got, p.Key)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("info %v has %v, want %v", c.info, got, want)
		}
	}
}

// Metrics come with an episode's last step, also those that are known before; asked for by name, they come with every
// step.
func TestMetricsComeWithLastSteps(t *testing.T) {
	late := func(_ int, e *toy) { e.spec.Info[1].Metric = true }
	d := newDriver(t, toys(late))
	m := d.open("Toy-v3", field("n", 2), field("info", "metrics"))
	if infos := at(m, "meta", "info").([]any); infos[0].(wire.Map).Has("metric") ||
		infos[1].(wire.Map).Get("metric") != true {
		t.Errorf("meta.info %v", infos)
	}
	d.do(wire.OpReset, field("seed", 0))
	d.do(wire.OpStep, field("a", i64s(0, 0)))
	d.do(wire.OpReset, field("ids", []int{1}))
	for k := 2; k < toyEnd; k++ {
		if m := d.do(wire.OpStep, field("a", i64s(0, 0))); at(m, "info", "late") != nil || at(m, "info", "episode") != nil {
			t.Errorf("step %d: info %v", k, at(m, "info"))
		}
	}
	// Row 1 is at its fourth step, when the environment knows it too.
	m = d.do(wire.OpStep, field("a", i64s(0, 0)))
	is(t, "te", m.Get("te"), 1, 0)
	is(t, "late", at(m, "info", "late"), toyEnd, 0)
	is(t, "_late", at(m, "info", "_late"), 1, 0)

	d = newDriver(t, toys(late))
	d.open("Toy-v3", field("n", 2), field("info", "metrics"), field("autoreset", "same_step"))
	d.do(wire.OpReset, field("seed", 0))
	d.pass(2, toyEnd-1)
	m = d.do(wire.OpStep, field("a", i64s(0, 0)))
	is(t, "fin late", at(m, "fin", "info", "late"), toyEnd, toyEnd)
	if at(m, "info", "late") != nil || at(m, "fin", "info", "episode") != nil {
		t.Errorf("info %v, fin %v", at(m, "info"), at(m, "fin", "info"))
	}

	d = newDriver(t, toys(late))
	d.open("Toy-v3", field("n", 2), field("info", []string{"metrics", "late"}))
	d.do(wire.OpReset, field("seed", 0))
	d.pass(2, 2)
	m = d.do(wire.OpStep, field("a", i64s(0, 0)))
	is(t, "late, asked for by name", at(m, "info", "_late"), 1, 1)
}

// If every decision takes one step, info has no times.
func TestWithoutTimeInfoHasNoTime(t *testing.T) {
	d := newDriver(t, toys(func(_ int, e *toy) { e.spec.Tau = 0 }))
	d.open("Toy-v3")
	info, _ := d.do(wire.OpReset, field("seed", 0)).Sub("info")
	if len(info) != 2 || info[0].Key != "action_mask" {
		t.Errorf("info %v", info)
	}
}

func TestKwargsNameTheScenarioWhereNoHashDoes(t *testing.T) {
	a := wire.Map{field("x", int64(1)), field("y", "b")}
	b := wire.Map{field("y", "b"), field("x", int64(1))}
	c := wire.Map{field("x", int64(2)), field("y", "b")}
	if origin("E", "", a) != origin("E", "", b) {
		t.Error("the order of kwargs makes another scenario")
	}
	if origin("E", "", a) == origin("E", "", c) || origin("E", "", a) == origin("F", "", a) ||
		origin("E", "", nil) == origin("E", "s", nil) {
		t.Error("two scenarios are the same")
	}
	if origin("E", "s", a) != origin("E", "s", c) {
		t.Error("kwargs count although the scenario has a hash")
	}
	if a[0].Key != "x" || b[0].Key != "y" {
		t.Error("kwargs were put in another order")
	}
}
