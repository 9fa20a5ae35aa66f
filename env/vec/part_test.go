package vec_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"clustergym/env"
	"clustergym/env/vec"
)

// Two parts are stepped at the same time, one more often than the other. Their rows must equal those of the whole; the
// whole must then continue from there, and its snapshot must be the same.
func TestPartsAreRowsOfTheWhole(t *testing.T) {
	const rows = 5
	for _, id := range []string{"InvalidAction-v1", "ProbeTruncation-v1", "ProbeDeadStep-v1"} {
		for _, mode := range []vec.Autoreset{vec.SameStep, vec.NextStep} {
			whole, split := newVec(t, vec.Config{Autoreset: mode},
				envs(t, id, rows)...), newVec(t, vec.Config{Autoreset: mode}, envs(t, id, rows)...)
			s := whole.Spec()
			bounds := [][2]int{{0, 2}, {2, 5}}
			steps := []int{130, 47}

			// What each row observes when stepped only with the rows of its part.
			want, last := make([][]string, rows), env.NewBatch(s, rows)
			whole.Seed(3)
			if err := whole.Reset(ctx, nil, nil, last); err != nil {
				t.Fatal(err)
			}
			b, a, c := env.NewBatch(s, rows), env.NewActions(s, rows), choosers(rows)
			for k, bound := range bounds {
				for i := bound[0]; i < bound[1]; i++ {
					cur := last
					for range steps[k] {
						c.one(s, cur, a, i)
						if err := whole.Step(ctx, []int{i}, a, b); err != nil {
							t.Fatal(err)
						}
						want[i], cur = append(want[i], rowBits(s, b, i)), b
					}
				}
			}

			split.Seed(3)
			first := env.NewBatch(s, rows)
			if err := split.Reset(ctx, nil, nil, first); err != nil {
				t.Fatal(err)
			}
			got := make([][]string, rows)
			var wg sync.WaitGroup
			errs := make([]error, len(bounds))
			for k, bound := range bounds {
				p, err := split.Part(bound[0], bound[1])
				if err != nil {
					t.Fatal(err)
				}
				n := bound[1] - bound[0]
				if p.Len() != n || p.Config().Autoreset != mode {
					t.Fatalf("a part of %d rows in mode %v, want %d and %v", p.Len(), p.Config().Autoreset, n, mode)
				}
				wg.Go(func() {
					pb, pa, draw := env.NewBatch(s, n), env.NewActions(s, n), choosers(rows)
					m := s.MaskLen()
					copy(pb.Mask, first.Mask[bound[0]*m:bound[1]*m])
					full := env.NewBatch(s, rows) // choosers index rows of the whole
					fa := env.NewActions(s, rows)
					for range steps[k] {
						copy(full.Mask[bound[0]*m:], pb.Mask)
						for i := range n {
							draw.one(s, full, fa, bound[0]+i)
						}
						copy(pa.Disc, fa.Disc[bound[0]*len(s.Action.Sizes):])
						if errs[k] = p.Step(ctx, nil, pa, pb); errs[k] != nil {
							return
						}
						for i := range n {
							got[bound[0]+i] = append(got[bound[0]+i], rowBits(s, pb, i))
						}
					}
				})
			}
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if at := firstDifference(got[i], want[i]); at >= 0 {
					t.Fatalf("%s, %v: row %d, step %d is\n%s, want\n%s", id, mode, i, at, got[i][at], want[i][at])
				}
			}
			x, err := split.AppendSnapshot(nil)
			y, err2 := whole.AppendSnapshot(nil)
			if err := errors.Join(err, err2); err != nil || !bytes.Equal(x, y) {
				t.Errorf("%s, %v: the snapshot differs (%v)", id, mode, err)
			}
			// A part continues from what was restored into the whole.
			p, err := split.Part(1, 2)
			if err != nil {
				t.Fatal(err)
			}
			if err := split.RestoreSnapshot(y, first); err != nil {
				t.Fatal(err)
			}
			if _, n := p.Episode(0); n < 1 {
				t.Errorf("a part's row is in episode %d", n)
			}
		}
	}
}

func TestPartsThatCannotBe(t *testing.T) {
	v := newVec(t, vec.Config{Autoreset: vec.SameStep}, envs(t, "ProbeConstant-v1", 4)...)
	for _, r := range [][2]int{{-1, 2}, {2, 2}, {3, 2}, {0, 5}} {
		if _, err := v.Part(r[0], r[1]); err == nil || !strings.Contains(err.Error(), "of 4") {
			t.Errorf("rows %v: error %v", r, err)
		}
	}
	b := env.NewBatch(v.Spec(), 4)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	if err := v.Send([]int{2}, env.NewActions(v.Spec(), 4)); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Part(1, 3); !errors.Is(err, vec.ErrOut) || !strings.Contains(err.Error(), "row 2") {
		t.Errorf("a row that is out: error %v, want ErrOut of row 2", err)
	}
	if _, err := v.Part(0, 2); err != nil {
		t.Errorf("other rows: %v", err)
	}
	if _, err := v.Recv(ctx, 1, b); err != nil {
		t.Fatal(err)
	}
}
