package vec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/env/vec"
)

func TestRowsAreSavedAndRestoredOneByOne(t *testing.T) {
	const rows = 6
	for _, id := range []string{"InvalidAction-v1", "ProbeDeadStep-v1"} {
		v := newVec(t, vec.Config{Autoreset: vec.NextStep}, envs(t, id, rows)...)
		v.Seed(3)
		s := v.Spec()
		b, a, c := env.NewBatch(s, rows), env.NewActions(s, rows), choosers(rows)
		step := func(v *vec.Vec, b *env.Batch, rows ...int) {
			t.Helper()
			for _, i := range rows {
				c.one(s, b, a, i)
			}
			if err := v.Step(ctx, rows, a, b); err != nil {
				t.Fatal(err)
			}
		}
		if err := v.Reset(ctx, []int{1, 3, 5}, nil, b); err != nil {
			t.Fatal(err)
		}
		for range 7 {
			step(v, b, 1, 3)
		}
		blob, err := v.AppendRows(nil, []int{3, 0, 1}) // row 0 has never been reset
		if err != nil {
			t.Fatal(err)
		}
		saved := slices.Clone(c)
		var want []string
		for range 40 {
			step(v, b, 1, 3)
			want = append(want, rowBits(s, b, 3)+rowBits(s, b, 1))
		}
		// Restore into other rows of another Vec in another mode: row 3 continues in row 1, and row 1 in row 2.
		for _, mode := range []vec.Autoreset{vec.NextStep, vec.Disabled} {
			w := newVec(t, vec.Config{Autoreset: mode}, envs(t, id, rows)...)
			wb := env.NewBatch(s, rows)
			if err := w.Reset(ctx, nil, nil, wb); err != nil {
				t.Fatal(err)
			}
			other := rowBits(s, wb, 4)
			if err := w.RestoreRows(blob, []int{1, 0, 2}, wb); err != nil {
				t.Fatal(err)
			}
			if rowBits(s, wb, 4) != other {
				t.Error("a row that was not asked for has changed")
			}
			if err := w.Step(ctx, []int{0}, a, wb); !errors.Is(err, env.ErrResetNeeded) {
				t.Errorf("a row restored from one without an episode: %v", err)
			}
			if again, err := w.AppendRows(nil, []int{1, 0, 2}); err != nil || mode == vec.NextStep && !bytes.Equal(again, blob) {
				t.Errorf("saved again, the bytes differ (error %v)", err)
			}
			if mode == vec.Disabled {
				continue
			}
			c[1], c[2] = saved[3], saved[1]
			wa := env.NewActions(s, rows)
			for k := range want {
				c.one(s, wb, wa, 1)
				c.one(s, wb, wa, 2)
				if err := w.Step(ctx, []int{1, 2}, wa, wb); err != nil {
					t.Fatal(err)
				}
				if got := rowBits(s, wb, 1) + rowBits(s, wb, 2); got != want[k] {
					t.Fatalf("%s: step %d after the restored one gives\n%s, want\n%s", id, k, got, want[k])
				}
			}
		}
		for n, into := range [][]int{{1, 2}, {0, 1, 2, 3}} {
			if err := v.RestoreRows(blob, into, b); !errors.Is(err, env.ErrSnapshot) {
				t.Errorf("%d: a snapshot of 3 rows into %d: %v", n, len(into), err)
			}
		}
	}
}

// SameStep has no state for a row that has ended and waits for its next episode.
func TestAnEndedRowDoesNotGoIntoSameStep(t *testing.T) {
	v := newVec(t, vec.Config{Autoreset: vec.Disabled}, envs(t, "ProbeConstant-v1", 1)...)
	b, a := env.NewBatch(v.Spec(), 1), env.NewActions(v.Spec(), 1)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	running, err := v.AppendRows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for !b.Kind[0].Last() {
		if err := v.Step(ctx, nil, a, b); err != nil {
			t.Fatal(err)
		}
	}
	ended, err := v.AppendRows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newVec(t, vec.Config{Autoreset: vec.SameStep}, envs(t, "ProbeConstant-v1", 1)...)
	if err := w.RestoreRows(ended, nil, b); !errors.Is(err, env.ErrSnapshot) ||
		!strings.Contains(err.Error(), "rows [0] are at the end of their episodes") {
		t.Errorf("error %v", err)
	}
	if err := w.RestoreRows(running, nil, b); err != nil {
		t.Errorf("a row whose episode goes on: %v", err)
	}
}

func TestContinueGoesOnWithTheStream(t *testing.T) {
	e := &episodes{Env: envs(t, "ProbeConstant-v1", 1)[0]}
	v := newVec(t, vec.Config{}, e)
	b := env.NewBatch(v.Spec(), 1)
	v.Seed(40)
	for _, ep := range []env.Episode{{Seed: 1, Window: 5}, {Window: 2, Split: "test", Task: []float64{7}}} {
		if err := v.Continue(ctx, nil, []env.Episode{ep}, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint([]env.Episode{
		{Seed: 40, Window: 5},
		{Seed: env.EpisodeSeed(40, 1), Window: 2, Split: "test", Task: []float64{7}},
		{Seed: env.EpisodeSeed(40, 2), Window: -1, Task: []float64{7}},
	})
	if got := fmt.Sprint(e.seen); got != want {
		t.Errorf("episodes %v, want %v", got, want)
	}
	if err := v.Continue(ctx, nil, nil, b); err == nil {
		t.Error("no episode for a row is accepted")
	}
}

// episodes records the episodes that it is given, and resets its environment to their seeds only.
type episodes struct {
	env.Env
	seen []env.Episode
}

func (e *episodes) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	seen := ep
	seen.Task = slices.Clone(ep.Task)
	e.seen = append(e.seen, seen)
	return e.Env.Reset(ctx, env.Episode{Seed: ep.Seed, Window: -1}, ts)
}

func TestADroppedRowNeedsAReset(t *testing.T) {
	v := newVec(t, vec.Config{}, envs(t, "InvalidAction-v1", 2)...)
	b, a := env.NewBatch(v.Spec(), 2), env.NewActions(v.Spec(), 2)
	v.Seed(5)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	v.Drop(1)
	choosers(2).choose(v.Spec(), b, a)
	var re *vec.RowError
	if err := v.Step(ctx, nil, a, b); !errors.As(err, &re) || re.Row != 1 || !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("error %v", err)
	}
	if err := v.Reset(ctx, []int{1}, nil, b); err != nil {
		t.Fatal(err)
	}
	if seed, k := v.Episode(1); seed != 6 || k != 1 {
		t.Errorf("the row is at episode %d of the stream of %d, want 1 of 6", k, seed)
	}
}
