package handle

import (
	"math"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
)

func TestASeedNamesEveryRow(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 4))
	seeds := func(v any) (all []uint64) {
		t.Helper()
		for _, g := range d.h.guards {
			all = append(all, g.inner.(savedToy).seed)
		}
		return all
	}
	same := func(what string, want ...uint64) {
		t.Helper()
		got := seeds(nil)
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: seeds %v, want %v", what, got, want)
				return
			}
		}
	}
	d.do(wire.OpReset, field("seed", 10))
	same("a number", 10, 11, 12, 13)
	d.do(wire.OpReset, field("seed", 10), field("ids", []int{3, 1}))
	same("a number for some rows is of their index in the handle", 10, 11, 12, 13)
	d.do(wire.OpReset, field("seed", 90), field("ids", []int{3, 1}))
	same("a number for some rows", 10, 91, 12, 93)
	d.do(wire.OpReset, field("seed", []any{5, nil}), field("ids", []int{3, 0}))
	same("a list with nothing in it", env.EpisodeSeed(10, 1), 91, 12, 5)
	d.do(wire.OpReset, field("seed", i64s(1, 2, 3, 4)))
	same("an array", 1, 2, 3, 4)
	d.do(wire.OpReset)
	d.do(wire.OpReset, field("seed", nil))
	same("nothing goes on", env.EpisodeSeed(1, 2), env.EpisodeSeed(2, 2), env.EpisodeSeed(3, 2), env.EpisodeSeed(4, 2))
	d.do(wire.OpReset, field("seed", uint64(math.MaxUint64-1)))
	same("at the end of the range it goes round", math.MaxUint64-1, math.MaxUint64, 0, 1)
	d.do(wire.OpReset,
		field("seed",
			wire.Array{DType: wire.U64, Shape: []int{4},
				Data: append(i64s(1, 2, 3).Data, 255, 255, 255, 255, 255, 255, 255, 255)}))
	same("an array of the largest", 1, 2, 3, math.MaxUint64)
	d.do(wire.OpReset, field("seed", 7.0))
	same("as JSON may have it", 7, 8, 9, 10)
	// Episodes that autoreset begins belong to the same stream.
	d.do(wire.OpReset, field("seed", 40))
	d.pass(4, toyEnd+1)
	same("the next episode", env.EpisodeSeed(40, 1), env.EpisodeSeed(41, 1), env.EpisodeSeed(42, 1),
		env.EpisodeSeed(43, 1))
}

func TestARowThatWasNeverSeededTellsWhatWasDrawn(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 3))
	m := d.do(wire.OpReset, field("seed", []any{nil, 8, nil}))
	is(t, "_seed", at(m, "info", "_seed"), 1, 0, 1)
	a, ok := at(m, "info", "seed").(wire.Array)
	if !ok || a.DType != wire.U64 {
		t.Fatalf("seed %v", at(m, "info", "seed"))
	}
	first, _ := a.Int(0)
	other, _ := a.Int(2)
	if none, _ := a.Int(1); none != 0 || first == other || first >= 1<<53 {
		t.Errorf("seeds %d, %d, %d", first, none, other)
	}
	want := at(m, "obs", "aa")
	m = d.do(wire.OpReset)
	if at(m, "info", "seed") != nil {
		t.Error("a seed is told that was not drawn")
	}
	is(t, "the stream goes on", at(m, "obs", "aa"), float64(env.EpisodeSeed(uint64(first), 1)%100), 0,
		float64(env.EpisodeSeed(8, 1)%100), 0, float64(env.EpisodeSeed(uint64(other), 1)%100), 0)
	// The reported seed repeats the episode.
	is(t, "repeated", at(d.do(wire.OpReset, field("seed", i64s(first, 8, other))), "obs", "aa"), numbers(want)...)

	d = newDriver(t, toys(nil))
	d.open("Toy-v3", field("info", "none"))
	if m := d.do(wire.OpReset); at(m, "info", "seed") != nil {
		t.Error("info none has a seed")
	}
}

func TestWhatIsNoSeedIsRefused(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 2))
	d.do(wire.OpReset, field("seed", 3))
	for _, c := range []struct {
		seed any
		want string
	}{
		{-1, "field seed: no whole number, or one below 0"},
		{0.5, "field seed: no whole number, or one below 0"},
		{math.NaN(), "field seed: no whole number, or one below 0"},
		{1e300, "field seed: no whole number, or one below 0"},
		{"7", "field seed: no whole number, or one below 0"},
		{true, "field seed: no whole number, or one below 0"},
		{[]int{1}, "field seed: 1 entry for 2 environments"},
		{[]int{1, 2, 3}, "field seed: 3 entries for 2 environments"},
		{[]any{1, "x"}, "field seed: no seed at position 1"},
		{[]any{-1, nil}, "field seed: no seed at position 0"},
		{i64s(4, -4), "field seed: no seed at position 1"},
		{f64s(1, 2), "field seed: an array that is no list of integers"},
		{shaped(i64s(1, 2), 1, 2), "field seed: an array that is no list of integers"},
		{i64s(1), "field seed: 1 entry for 2 environments"},
	} {
		e := d.fails(wire.BadSeed, wire.OpReset, field("seed", c.seed))
		if e.Msg != c.want || e.Want != seedWant {
			t.Errorf("seed %v: %v", c.seed, e.Error())
		}
	}
	is(t, "nothing was reset", at(d.do(wire.OpStep, field("a", i64s(0, 0))), "obs", "aa"), 3, 1, 4, 1)
}
