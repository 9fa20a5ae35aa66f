package envs

import (
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/queuerank"
	"clustergym/env/workerplace"
	"clustergym/internal/rng"
)

// The row that a legal action stands for is filled, by the column that its field names. Some rows of the episodes are
// empty.
func TestLegalActionsStandForFilledRows(t *testing.T) {
	r := registry(t, nil)
	for _, c := range []struct {
		id, field string
		kwargs    wire.Map
	}{
		{jobselect.V1, "jobs", smallKwargs()},
		{queuerank.V1, "jobs", nil},
		{workerplace.ID, "pairs", wire.Map{{Key: "obs", Value: "pairs"}}},
	} {
		e := makeEnvs(t, r, c.id, c.kwargs, 1).Envs[0]
		s := e.Spec()
		at, k := 0, 0
		for s.Obs[k].Name != c.field {
			at += s.Obs[k].Len()
			k++
		}
		f := s.Obs[k]
		if f.Filled == 0 {
			t.Errorf("%s: field %s does not say which rows are filled", c.id, f.Name)
			continue
		}
		ts, empty := env.NewTimeStep(s), 0
		if err := e.Reset(t.Context(), env.Episode{Seed: 3, Window: -1}, ts); err != nil {
			t.Fatal(err)
		}
		for step := uint64(0); !ts.Kind.Last() && step < 500; step++ {
			for i := range f.Shape[0] {
				full := ts.Obs[at+i*f.Shape[1]+f.Filled-1] > 0
				if ts.Mask[i] && !full {
					t.Fatalf("%s, step %d: action %d is legal and row %d of %s empty", c.id, step, i, i, f.Name)
				}
				if !full {
					empty++
				}
			}
			a := env.Action{Disc: []int32{0}}
			for k := rng.At(3, step) % uint64(len(ts.Mask)); ; k = (k + 1) % uint64(len(ts.Mask)) {
				if ts.Mask[k] {
					a.Disc[0] = int32(k)
					break
				}
			}
			if err := e.Step(t.Context(), a, ts); err != nil {
				t.Fatal(err)
			}
		}
		if empty == 0 {
			t.Errorf("%s: no row of %s was ever empty", c.id, f.Name)
		}
	}
}
