package wire

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func everything() Map {
	return Map{
		{"nil", nil}, {"bool", true}, {"int", int64(-3)}, {"float", 2.0}, {"half", 0.5}, {"big", uint64(1 << 63)},
		{"str", "s"},
		{"bin", []byte{1}}, {"list", []any{int64(1), 2.0}}, {"strs", []any{"a", "b"}}, {"map", Map{{"k", nil}}},
		{"ints", ints(I32, []int{2}, 4, 5)}, {"two", ints(I32, []int{1, 2}, 4, 5)}, {"floats", f64s(1)},
		{"bools", bools(true)},
		{"huge", ints(U64, []int{1}, -1)}, {"base64", "AQ=="},
	}
}

// Every accessor accepts its type, returns the default for nil, and for anything else an error that names the field,
// the type found and the type wanted.
func TestFieldsAreReadByType(t *testing.T) {
	m := everything()
	for _, c := range []struct {
		name string
		get  func(key string) (any, *Error)
		good map[string]any // what is read at which key
	}{
		{"Str", func(k string) (any, *Error) { v, e := m.Str(k, "def"); return v, e },
			map[string]any{"nil": "def", "none": "def", "str": "s", "base64": "AQ=="}},
		{"Bool", func(k string) (any, *Error) { v, e := m.Bool(k, true); return v, e },
			map[string]any{"nil": true, "none": true, "bool": true}},
		{"Int", func(k string) (any, *Error) { v, e := m.Int(k, 7, -10, 10); return v, e },
			map[string]any{"nil": int64(7), "none": int64(7), "int": int64(-3), "float": int64(2)}},
		{"Bytes", func(k string) (any, *Error) { v, e := m.Bytes(k); return v, e },
			map[string]any{"nil": []byte(nil), "none": []byte(nil), "bin": []byte{1}, "base64": []byte{1}}},
		{"Ints", func(k string) (any, *Error) { v, e := m.Ints(k); return v, e },
			map[string]any{"nil": []int64(nil), "none": []int64(nil), "ints": []int64{4, 5}, "list": []int64{1, 2}}},
		{"Strs", func(k string) (any, *Error) { v, e := m.Strs(k, []string{"d"}); return v, e },
			map[string]any{"nil": []string{"d"}, "none": []string{"d"}, "strs": []string{"a", "b"}}},
		{"Sub", func(k string) (any, *Error) { v, e := m.Sub(k); return v, e },
			map[string]any{"nil": Map(nil), "none": Map(nil), "map": Map{{"k", nil}}}},
	} {
		for _, k := range append([]Pair{{"none", nil}}, m...) {
			got, e := c.get(k.Key)
			want, ok := c.good[k.Key]
			switch {
			case ok && (e != nil || !reflect.DeepEqual(got, want)):
				t.Errorf("%s(%s) is %v, %v; want %v", c.name, k.Key, got, e, want)
			case !ok && e == nil:
				t.Errorf("%s(%s) is %v, want an error", c.name, k.Key, got)
			case !ok && (e.Code != BadRequest || !strings.Contains(e.Error(), k.Key) || e.Got == "" || e.Want == ""):
				t.Errorf("%s(%s): %v does not say what is wrong", c.name, k.Key, e)
			}
		}
	}
}

func TestWholeNumbersAreHeldAgainstTheirRange(t *testing.T) {
	m := Map{{"n", int64(5)}, {"f", 5.5}, {"inf", math.Inf(1)}, {"far", 9007199254740992.0}}
	if _, e := m.Int("n", 0, 6, 9); e == nil || e.Got != "5" || e.Want != "a whole number from 6 to 9" {
		t.Errorf("%v", e)
	}
	for _, k := range []string{"f", "inf", "far"} {
		if n, e := m.Int(k, 0, math.MinInt64, math.MaxInt64); e == nil {
			t.Errorf("%s is taken for %d", k, n)
		}
	}
}

func TestMapsTellNilFromNothing(t *testing.T) {
	m := everything()
	if !m.Has("nil") || m.Has("none") || m.Get("nil") != nil || m.Get("none") != nil {
		t.Errorf("nil is there: %v, none is there: %v", m.Has("nil"), m.Has("none"))
	}
}

func TestErrorsSurviveTheWire(t *testing.T) {
	for _, want := range []*Error{
		{Code: BadAction, Msg: "env 3: 7", Env: []int{3, 5}, Want: "0 to 2", Got: "7"},
		{Code: Busy, Msg: "four are unanswered", Retry: true},
		{Code: Internal},
	} {
		for _, enc := range encodings3() {
			w := NewWriter(enc)
			want.Reply(w, 9)
			m, e := Decode(w.Bytes(), enc, DefaultLimits())
			if e != nil || !w.Complete() {
				t.Fatal(e)
			}
			got := ErrorOf(m)
			if re, _ := m.Int("re", 0, 0, 100); re != 9 || !reflect.DeepEqual(got, want) {
				t.Errorf("%v: %+v becomes %+v", enc, want, got)
			}
		}
	}
	e := ErrorOf(Map{{"code", "bad_action"}, {"env", ints(I32, []int{2}, 1, 4)}, {"msg", 5}})
	if e.Code != BadAction || !slices.Equal(e.Env, []int{1, 4}) || e.Msg != "" {
		t.Errorf("%+v", e)
	}
	if s := (&Error{Code: BadSeed, Msg: "field seed", Got: "a map", Want: "a number"}).Error(); s !=
		"bad_seed: field seed; got a map; want a number" {
		t.Error(s)
	}
}
