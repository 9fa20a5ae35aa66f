package par

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
)

func TestALocalValueIsUsedByOneGoroutine(t *testing.T) {
	var made atomic.Int64
	type value struct{ users atomic.Int64 }
	p := Local[*value]{Make: func() (*value, error) { made.Add(1); return &value{}, nil }}
	done := make([]int, 1000)
	for range 2 { // the second time with the values of the first
		err := p.For(ctx, 4, len(done), func(v *value, i int) error {
			if v.users.Add(1) != 1 {
				t.Error("two goroutines use one value")
			}
			done[i]++
			v.users.Add(-1)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if slices.Min(done) != 2 || slices.Max(done) != 2 {
		t.Error("an index was left out or done twice")
	}
	if n := made.Load(); n < 1 || n > 4 {
		t.Errorf("%d values for 4 goroutines", n)
	}
}

func TestALocalValueThatFailedIsDropped(t *testing.T) {
	wrong := errors.New("wrong")
	n := 0
	p := Local[int]{Make: func() (int, error) {
		if n++; n > 2 {
			return 0, wrong
		}
		return n, nil
	}}
	if err := p.Do(func(int) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("got %v, want the error of the function", err)
	}
	for range 2 {
		if err := p.Do(func(v int) error {
			if v != 2 {
				t.Errorf("value %d, want the second", v)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	if err := p.Do(func(int) error { return p.Do(func(int) error { return nil }) }); !errors.Is(err, wrong) {
		t.Errorf("got %v, want the error of Make", err)
	}
}
