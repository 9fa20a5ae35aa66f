package vec_test

import (
	"errors"
	"slices"
	"testing"

	"clustergym/env"
	"clustergym/env/vec"
)

// Rows of a group play the same episodes, those of different groups others, also after an end.
func TestRowsOfAGroupPlayTheSameEpisodes(t *testing.T) {
	v := newVec(t, vec.Config{Autoreset: vec.SameStep}, envs(t, "CartPole-v1", 6)...)
	v.SeedGroups(11, 3, 0)
	b, a := env.NewBatch(v.Spec(), 6), env.NewActions(v.Spec(), 6)
	if err := v.Reset(t.Context(), nil, nil, b); err != nil {
		t.Fatal(err)
	}
	ends := 0
	for range 100 { // equal actions keep equal episodes together
		row := func(i int) []float32 { return b.Obs[4*i : 4*i+4] }
		for _, i := range []int{1, 2} {
			if !slices.Equal(row(i), row(0)) || !slices.Equal(row(3+i), row(3)) {
				t.Fatal("rows of a group differ")
			}
		}
		if slices.Equal(row(0), row(3)) {
			t.Fatal("two groups are equal")
		}
		if err := v.Step(t.Context(), nil, a, b); err != nil {
			t.Fatal(err)
		}
		ends += len(b.FinalRows)
	}
	if ends == 0 {
		t.Error("no episode ended")
	}
}

// Vecs with a share of the rows each play what one with all rows plays, and their snapshots joined are its own.
func TestSharesOfRowsAreTheWhole(t *testing.T) {
	const n, share = 6, 2
	play := func(v *vec.Vec, steps int) {
		t.Helper()
		b, a := env.NewBatch(v.Spec(), v.Len()), env.NewActions(v.Spec(), v.Len())
		if err := v.Reset(t.Context(), nil, nil, b); err != nil {
			t.Fatal(err)
		}
		for range steps {
			if err := v.Step(t.Context(), nil, a, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := newVec(t, vec.Config{Autoreset: vec.SameStep}, envs(t, "CartPole-v1", n)...)
	all.SeedGroups(11, 3, 0)
	play(all, 33)
	want, err := all.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	var parts [][]byte
	for first := 0; first < n; first += share {
		v := newVec(t, vec.Config{Autoreset: vec.SameStep}, envs(t, "CartPole-v1", share)...)
		v.SeedGroups(11, 3, first)
		play(v, 33)
		part, err := v.AppendSnapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
		cut, err := v.CutSnapshot(want, n, first, first+share)
		if err != nil || !slices.Equal(cut, part) {
			t.Errorf("rows from %d on cut from the whole differ: %v", first, err)
		}
	}
	joined, err := all.JoinSnapshots(parts...)
	if err != nil || !slices.Equal(joined, want) {
		t.Errorf("the shares joined differ from the whole: %v", err)
	}
	if _, err := all.JoinSnapshots(parts[0], want[:len(want)-1]); !errors.Is(err, env.ErrSnapshot) {
		t.Errorf("a damaged share: %v", err)
	}
	if _, err := all.CutSnapshot(want, n+1, 0, 1); !errors.Is(err, env.ErrSnapshot) {
		t.Errorf("another number of rows: %v", err)
	}
	if _, err := all.CutSnapshot(want, n, 5, 7); err == nil {
		t.Error("rows that there are not: no error")
	}
}
