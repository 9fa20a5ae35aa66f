package compare

import (
	"math"
	"slices"
	"strings"
	"testing"

	"clustergym/bridge/wire"
)

func arr(d wire.DType, v []int, shape ...int) wire.Array { return Array(d, v, shape...) }

func TestReadTakesArraysAndNestedLists(t *testing.T) {
	for _, c := range []struct {
		v     any
		shape []int
		want  []float64
		dtype wire.DType
	}{
		{arr(wire.F32, []int{1, 2, 3, 4}, 2, 2), []int{2, 2}, []float64{1, 2, 3, 4}, wire.F32},
		{[]any{[]any{int64(1), 2.5}, []any{true, uint64(4)}}, []int{2, 2}, []float64{1, 2.5, 1, 4}, 0},
	} {
		got, err := Read(c.v)
		if err != nil || !slices.Equal(got.Shape, c.shape) || !slices.Equal(got.V, c.want) || got.DType != c.dtype {
			t.Errorf("%v: %+v, %v", c.v, got, err)
		}
	}
	if got, err := Read([]any{nil}); err != nil || len(got.V) != 1 || !math.IsNaN(got.V[0]) {
		t.Errorf("null: %v, %v", got, err)
	}
	for _, v := range []any{nil, 1, "x", []any{"x"}, []any{[]any{int64(1)}, []any{}}, []any{int64(1), []any{int64(2)}},
		[]any{[]any{int64(1)}, int64(2)}} {
		if got, err := Read(v); err == nil {
			t.Errorf("%v is read as %+v", v, got)
		}
	}
	m := wire.Map{{Key: "r", Value: arr(wire.F64, []int{1, 2}, 2)}}
	if _, err := At(m, "r", wire.F64, 2); err != nil {
		t.Error(err)
	}
	for _, err := range []error{second(At(m, "r", wire.F32, 2)), second(At(m, "r", wire.F64, 3)),
		second(At(m, "x", wire.F64, 2))} {
		if err == nil {
			t.Error("another type, another number of rows or a missing key is accepted")
		}
	}
}

func second(_ Column, err error) error { return err }

func TestRowsAreCutFromEveryArray(t *testing.T) {
	reply := wire.Map{
		{Key: "re", Value: int64(4)}, {Key: "r", Value: arr(wire.F64, []int{5, 6}, 2)},
		{Key: "info", Value: wire.Map{
			{Key: "a", Value: arr(wire.I8, []int{1, 2, 3, 4}, 2, 2)}, {Key: "_a", Value: arr(wire.Bool, []int{1, 1}, 2)},
			{Key: "b", Value: arr(wire.I8, []int{7, 0}, 2)}, {Key: "_b", Value: arr(wire.Bool, []int{1, 0}, 2)},
		}},
	}
	got, err := Row(reply, 1, 2)
	want := wire.Map{{Key: "r", Value: arr(wire.F64, []int{6})},
		{Key: "info", Value: wire.Map{{Key: "a", Value: arr(wire.I8, []int{3, 4}, 2)}}}}
	if err != nil || SameBut(got, want) != nil {
		t.Errorf("row 1 is %v (%v), want %v", got, err, want)
	}
	if _, err := Row(reply, 0, 3); err == nil {
		t.Error("a row of three is cut from two")
	}
}

func TestDifferencesAreNamed(t *testing.T) {
	x := wire.Map{{Key: "re", Value: int64(1)}, {Key: "obs", Value: arr(wire.F32, []int{1, 2}, 2)}, {Key: "n", Value: 0.1}}
	with := func(key string, v any) wire.Map {
		out := slices.Clone(x)
		for i := range out {
			if out[i].Key == key {
				out[i].Value = v
			}
		}
		return out
	}
	if err := Same(x, with("re", int64(2))); err != nil {
		t.Errorf("only the request differs: %v", err)
	}
	if err := Same(x, with("n", 0.2)); err == nil || !strings.Contains(err.Error(), ".n") {
		t.Errorf("n differs: %v", err)
	}
	if err := Alike("x", x, with("obs", []any{1.0, 2.0})); err != nil {
		t.Errorf("the same in JSON: %v", err)
	}
	if err := Alike("x", x, with("obs", []any{1.0, 2.5})); err == nil || !strings.Contains(err.Error(), "x.obs") {
		t.Errorf("obs differs: %v", err)
	}
	if err := Clean("x", x); err != nil {
		t.Error(err)
	}
	if err := Clean("x", with("n", math.Inf(1))); err == nil || !strings.Contains(err.Error(), "x.n") {
		t.Errorf("an infinity: %v", err)
	}
}
