package wire

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"clustergym/env"
)

func TestAnObservationsSpaceIsADictOfItsFields(t *testing.T) {
	want := `{"t":"dict","k":[` +
		`["free",{"t":"box","shape":[1],"dtype":"float32","low":0.0,"high":1.0}],` +
		`["jobs",{"t":"box","shape":[2,2],"dtype":"float32","low":0.0,"high":null}]]}`
	if got := string(encode(JSON, ObsSpace(exampleSpec(), ViewDict, false))); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// The flat view has the order of the dict, whose names are sorted, as Gymnasium's flatten has.
func TestTheFlatViewHasABoundForEachElement(t *testing.T) {
	s := ObsSpace(exampleSpec(), ViewFlat, false)
	inf := math.Inf(1)
	if s.Kind != "box" || !slices.Equal(s.Shape, []int{5}) || !slices.Equal(s.Low, []float64{0}) ||
		!slices.Equal(s.High, []float64{1, inf, inf, inf, inf}) {
		t.Errorf("%+v", s)
	}
	if s := ObsSpace(env.Spec{}, ViewFlat, false); !slices.Equal(s.Shape, []int{0}) {
		t.Errorf("without fields: %+v", s)
	}
}

// The mask is one of the fields, sorted among their names.
func TestTheMaskStandsAmongTheFieldsByName(t *testing.T) {
	for _, c := range []struct{ fields, want []string }{
		{[]string{"free", "jobs"}, []string{MaskKey, "free", "jobs"}},
		{[]string{"a", "jobs"}, []string{"a", MaskKey, "jobs"}},
		{[]string{"a", "aa"}, []string{"a", "aa", MaskKey}},
	} {
		s := env.Spec{Action: env.ActionSpec{Sizes: []int{3, 2}}}
		for _, f := range c.fields {
			s.Obs = append(s.Obs, env.Field{Name: f})
		}
		d := ObsSpace(s, ViewDict, true)
		i := slices.Index(d.Names, MaskKey)
		if !slices.Equal(d.Names, c.want) || d.Items[i].DType != U8 || !slices.Equal(d.Items[i].Shape, []int{5}) {
			t.Errorf("%v, want %v; %+v", d.Names, c.want, d.Items)
		}
	}
	s := env.Spec{Obs: []env.Field{{Name: "x"}}, Action: env.ActionSpec{Low: []float32{0}, High: []float32{1}}}
	if d := ObsSpace(s, ViewDict, true); len(d.Names) != 1 {
		t.Errorf("without discrete actions: %v", d.Names)
	}
}

func TestActionsSpaces(t *testing.T) {
	for _, c := range []struct {
		name string
		a    env.ActionSpec
		want string
	}{
		{"one size", env.ActionSpec{Sizes: []int{3}}, `{"t":"discrete","n":3,"start":0,"dtype":"int64"}`},
		{"several sizes", env.ActionSpec{Sizes: []int{3, 2}}, `{"t":"mdiscrete","nvec":[3,2],"start":[0,0],"dtype":"int64"}`},
		{"bounds", env.ActionSpec{Low: []float32{-1, 0}, High: []float32{1, 1}},
			`{"t":"box","shape":[2],"dtype":"float32","low":[-1.0,0.0],"high":1.0}`},
		{"both", env.ActionSpec{Sizes: []int{3}, Low: []float32{0}, High: []float32{1}},
			`{"t":"dict","k":[["cont",{"t":"box","shape":[1],"dtype":"float32","low":0.0,"high":1.0}],["disc",{"t":"discrete","n":3,"start":0,"dtype":"int64"}]]}`},
	} {
		if got := string(encode(JSON, ActionSpace(env.Spec{Action: c.a}))); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestSpacesSurviveTheWire(t *testing.T) {
	for _, c := range spaces() {
		want := c.value.(Map)[0].Value.(Space)
		for _, enc := range encodings3() {
			m, e := Decode(encode(enc, c.value), enc, DefaultLimits())
			if e != nil {
				t.Fatal(e)
			}
			got, e := ParseSpace(m.Get("space"))
			if e != nil {
				t.Errorf("%s (%v): %v", c.name, enc, e)
				continue
			}
			if want.Kind == "mdiscrete" && want.First == nil {
				want.First = make([]int64, len(want.NVec))
			}
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("%s (%v): %+v, want %+v", c.name, enc, *got, want)
			}
		}
	}
}

func TestSpacesThatAreRefused(t *testing.T) {
	box := `{"t":"box","shape":[2],"dtype":"float32","low":0,"high":1}`
	deep := box
	for range 7 {
		deep = `{"t":"seq","s":` + deep + `}`
	}
	if _, e := parseText(t, deep); e != nil {
		t.Errorf("8 levels: %v", e)
	}
	for _, bad := range []string{
		`5`, `null`, `[]`, `{}`, `{"t":5}`, `{"t":"ball"}`, `{"t":"seq","s":` + deep + `}`,
		`{"t":"box"}`, `{"t":"box","shape":null}`, `{"t":"box","shape":[0]}`, `{"t":"box","shape":[-1]}`,
		`{"t":"box","shape":2}`,
		`{"t":"box","shape":[65536,65536]}`, `{"t":"box","shape":[1,1,1,1,1,1,1,1,1]}`,
		`{"t":"box","shape":[2],"dtype":"float"}`,
		`{"t":"box","shape":[2],"dtype":1}`, `{"t":"box","shape":[2],"low":[1]}`, `{"t":"box","shape":[2],"low":[1,2,3]}`,
		`{"t":"box","shape":[2],"low":"0"}`, `{"t":"box","shape":[2],"low":["0","0"]}`,
		`{"t":"box","shape":[2],"low":2,"high":1}`,
		`{"t":"box","shape":[2],"low":0,"high":[1,-1]}`,
		`{"t":"discrete"}`, `{"t":"discrete","n":null}`, `{"t":"discrete","n":0}`, `{"t":"discrete","n":1.5}`,
		`{"t":"discrete","n":2,"dtype":"float32"}`,
		`{"t":"discrete","n":2,"dtype":"bool"}`, `{"t":"discrete","n":2,"start":"0"}`,
		`{"t":"discrete","n":9223372036854775807,"start":1}`,
		`{"t":"mdiscrete"}`, `{"t":"mdiscrete","nvec":[]}`, `{"t":"mdiscrete","nvec":[0]}`,
		`{"t":"mdiscrete","nvec":[2],"start":[0,0]}`,
		`{"t":"mdiscrete","nvec":[2],"start":[9223372036854775807]}`, `{"t":"mdiscrete","nvec":3}`,
		`{"t":"mdiscrete","nvec":[2],"dtype":"float64"}`,
		`{"t":"mbinary"}`, `{"t":"dict"}`, `{"t":"dict","k":[["a"]]}`, `{"t":"dict","k":["a"]}`,
		`{"t":"dict","k":[[1,` + box + `]]}`,
		`{"t":"dict","k":[["a",` + box + `],["a",` + box + `]]}`, `{"t":"dict","k":{"a":` + box + `}}`,
		`{"t":"dict","k":[["a",1]]}`,
		`{"t":"tuple"}`, `{"t":"tuple","s":[1]}`, `{"t":"text"}`, `{"t":"text","max":-1}`, `{"t":"text","min":3,"max":2}`,
		`{"t":"text","max":2,"chars":1}`,
		`{"t":"graph"}`, `{"t":"graph","node":` + box + `,"edge":1}`, `{"t":"seq"}`,
	} {
		if s, e := parseText(t, bad); e == nil || e.Code != BadRequest {
			t.Errorf("%s: %+v, %v", bad, s, e)
		}
	}
	for _, m := range []Map{
		{{"t", "box"}, {"shape", []any{int64(1)}}, {"low", math.NaN()}},
		{{"t", "box"}, {"shape", []any{int64(1)}}, {"low", math.Inf(1)}},
		{{"t", "box"}, {"shape", []any{int64(1)}}, {"high", math.Inf(-1)}},
		{{"t", "box"}, {"shape", []any{int64(2)}}, {"low", f64s(0)}},
	} {
		if s, e := ParseSpace(m); e == nil {
			t.Errorf("%v: %+v", m, s)
		}
	}
}

func parseText(t *testing.T, s string) (*Space, *Error) {
	t.Helper()
	m, e := Decode([]byte(`{"space":`+s+`}`), JSON, Limits{Depth: 64, String: 1000})
	if e != nil {
		t.Fatalf("%s: %v", s, e)
	}
	return ParseSpace(m.Get("space"))
}
