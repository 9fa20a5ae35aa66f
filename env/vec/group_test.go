package vec_test

import (
	"slices"
	"testing"

	"clustergym/env"
	"clustergym/env/vec"
)

// Rows of a group play the same episodes, those of different groups others, also after an end.
func TestRowsOfAGroupPlayTheSameEpisodes(t *testing.T) {
	v := newVec(t, vec.Config{Autoreset: vec.SameStep}, envs(t, "CartPole-v1", 6)...)
	v.SeedGroups(11, 3)
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
