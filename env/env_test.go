package env

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every published result depends on the episode seeds, in Go and over the bridge, so these must never change.
func TestEpisodeSeedGolden(t *testing.T) {
	for _, c := range []struct {
		x    uint64
		k    int
		want uint64
	}{
		{0, 0, 0}, {7, 0, 7}, {math.MaxUint64, 0, math.MaxUint64},
		{0, 1, 0x521586bde8eb6bd1}, {0, 2, 0x3b6ff6a32b312722}, {7, 1, 0xe79ec56b0fc60a94}, {7, 1000, 0x92c174badb8123f7},
		{math.MaxUint64, 1, 0xb2c7f90092dd2207},
	} {
		if got := EpisodeSeed(c.x, c.k); got != c.want {
			t.Errorf("EpisodeSeed(%d, %d) = %#x, want %#x", c.x, c.k, got, c.want)
		}
	}
}

func TestEpisodeSeedsDoNotMeet(t *testing.T) {
	seen := map[uint64]bool{}
	for x := range uint64(100) {
		for k := range 100 {
			seen[EpisodeSeed(x, k)] = true
		}
	}
	if len(seen) != 100*100 {
		t.Errorf("%d different seeds, want 10000", len(seen))
	}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		k               Kind
		last, bootstrap bool
		name            string
	}{
		{First, false, true, "First"}, {Mid, false, true, "Mid"}, {Terminated, true, false, "Terminated"},
		{Truncated, true, true, "Truncated"},
	} {
		if c.k.Last() != c.last || c.k.Bootstrap() != c.bootstrap || c.k.String() != c.name {
			t.Errorf("%v: Last %v, Bootstrap %v", c.k, c.k.Last(), c.k.Bootstrap())
		}
	}
}

func sample() Spec {
	return Spec{
		ID: "Sample-v1",
		Obs: []Field{
			{Name: "a", Shape: []int{2, 3}, Low: -1, High: 1},
			{Name: "b", Low: 0, High: float32(math.Inf(1))},
		},
		Action: ActionSpec{Sizes: []int{2, 3}, Low: []float32{0}, High: []float32{1}},
		Info:   []Field{{Name: "x"}, {Name: "y"}},
	}
}

func TestLengths(t *testing.T) {
	s := sample()
	if s.ObsLen() != 7 || s.MaskLen() != 5 || s.Obs[0].Len() != 6 || s.Obs[1].Len() != 1 {
		t.Errorf("ObsLen %d, MaskLen %d, fields %d and %d", s.ObsLen(), s.MaskLen(), s.Obs[0].Len(), s.Obs[1].Len())
	}
	ts := NewTimeStep(s)
	if len(ts.Obs) != 7 || len(ts.Mask) != 5 || len(ts.Info) != 2 {
		t.Errorf("a time step of %d, %d, %d", len(ts.Obs), len(ts.Mask), len(ts.Info))
	}
}

func TestCheckNamesEveryBreach(t *testing.T) {
	s := sample()
	good := func() *TimeStep {
		ts := NewTimeStep(s)
		ts.Mask[1], ts.Mask[4] = true, true
		ts.Info[1] = math.NaN() // unknown is allowed
		return ts
	}
	for _, kind := range []Kind{First, Mid, Terminated, Truncated} {
		ts := good()
		ts.Kind = kind
		if err := s.Check(ts); err != nil {
			t.Errorf("a good time step: %v", err)
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(ts *TimeStep)
		want  string
	}{
		{"short observation", func(ts *TimeStep) { ts.Obs = ts.Obs[1:] },
			"time step has 6 observations, 5 mask bits and 2 infos, want 7, 5 and 2"},
		{"long mask", func(ts *TimeStep) { ts.Mask = append(ts.Mask, true) }, "6 mask bits"},
		{"no info", func(ts *TimeStep) { ts.Info = nil }, "0 infos"},
		{"NaN reward", func(ts *TimeStep) { ts.Kind, ts.Reward = Mid, math.NaN() }, "reward is NaN"},
		{"infinite reward", func(ts *TimeStep) { ts.Kind, ts.Reward = Mid, math.Inf(-1) }, "reward is -Inf"},
		{"time going back", func(ts *TimeStep) { ts.Kind, ts.Elapsed = Mid, -time.Second }, "elapsed is -1s"},
		{"no such kind", func(ts *TimeStep) { ts.Kind = 4 }, "kind is 4"},
		{"first step pays", func(ts *TimeStep) { ts.Reward = 1 }, "first step has reward 1"},
		{"first step takes time", func(ts *TimeStep) { ts.Elapsed = 1 }, "elapsed 1ns, want 0"},
		{"observation too large", func(ts *TimeStep) { ts.Obs[5] = 1.5 }, "observation a[5] is 1.5, outside [-1, 1]"},
		{"observation NaN", func(ts *TimeStep) { ts.Obs[6] = float32(math.NaN()) }, "observation b[0] is NaN"},
		{"nothing legal", func(ts *TimeStep) { ts.Mask[4] = false }, "no action of factor 1 is legal"},
	} {
		ts := good()
		c.spoil(ts)
		if err := s.Check(ts); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "Sample-v1: ") {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	over := good()
	over.Kind, over.Mask[1] = Terminated, false
	if err := s.Check(over); err != nil {
		t.Errorf("after the end nothing need be legal: %v", err)
	}
}

func TestDiscountFollowsTime(t *testing.T) {
	s := Spec{Tau: time.Hour}
	for _, c := range []struct {
		gamma   float64
		elapsed time.Duration
		want    float64
	}{
		{0.9, 0, 1}, {0.9, time.Hour, 0.9}, {0.9, 2 * time.Hour, 0.81}, {0.81, 30 * time.Minute, 0.9}, {1, 99 * time.Hour, 1},
	} {
		if got := s.Discount(c.gamma, c.elapsed); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("Discount(%v, %v) = %v, want %v", c.gamma, c.elapsed, got, c.want)
		}
	}
	if got := (Spec{}).Discount(0.9, 5*time.Hour); got != 0.9 {
		t.Errorf("without Tau the discount is %v, want one factor per step", got)
	}
}

func TestActionRowsAreViews(t *testing.T) {
	a := NewActions(sample(), 3)
	for i := range a.N {
		r := a.Row(i)
		if len(r.Disc) != 2 || len(r.Cont) != 1 {
			t.Fatalf("row %d has %d indices and %d numbers", i, len(r.Disc), len(r.Cont))
		}
		r.Disc[0], r.Disc[1], r.Cont[0] = int32(10*i), int32(10*i+1), float32(i)
	}
	if !slices.Equal(a.Disc, []int32{0, 1, 10, 11, 20, 21}) || !slices.Equal(a.Cont, []float32{0, 1, 2}) {
		t.Errorf("columns %v, %v", a.Disc, a.Cont)
	}
	only := NewActions(Spec{Action: ActionSpec{Sizes: []int{4}}}, 2)
	if r := only.Row(1); len(r.Disc) != 1 || len(r.Cont) != 0 {
		t.Errorf("row %v of a discrete action", r)
	}
}

func TestBatchCopiesAreDeep(t *testing.T) {
	s := sample()
	src, dst := NewBatch(s, 2), NewBatch(s, 2)
	if len(src.Obs) != 14 || len(src.Mask) != 10 || len(src.Info) != 4 || len(src.Kind) != 2 || len(src.FinalRows) != 0 {
		t.Fatalf("batch %+v", src)
	}
	fill := func(b *Batch, v float64) {
		for i := range b.N {
			b.Kind[i], b.Reward[i], b.Elapsed[i] = Kind(v), v, time.Duration(v)
		}
		for i := range b.Obs {
			b.Obs[i] = float32(v)
		}
		for i := range b.Info {
			b.Info[i] = v
		}
		for i := range b.Mask {
			b.Mask[i] = v > 1
		}
		b.FinalRows = append(b.FinalRows[:0], int(v))
		b.FinalObs = append(b.FinalObs[:0], src.Obs[:7]...)
		b.FinalMask = append(b.FinalMask[:0], src.Mask[:5]...)
		b.FinalInfo = append(b.FinalInfo[:0], v, v)
	}
	fill(src, 1)
	fill(dst, 3)
	dst.CopyFrom(src)
	if !reflect.DeepEqual(dst, src) {
		t.Errorf("the copy is %+v, want %+v", dst, src)
	}
	fill(src, 2)
	if dst.Reward[0] != 1 || dst.Obs[0] != 1 || dst.FinalRows[0] != 1 || dst.FinalInfo[1] != 1 || dst.Mask[0] {
		t.Error("the copy follows its source")
	}
	src.FinalRows, src.FinalObs, src.FinalMask, src.FinalInfo = src.FinalRows[:0], src.FinalObs[:0], src.FinalMask[:0],
		src.FinalInfo[:0]
	if n := testing.AllocsPerRun(100, func() { dst.CopyFrom(src) }); n != 0 || len(dst.FinalRows) != 0 {
		t.Errorf("%v allocations, final rows %v", n, dst.FinalRows)
	}
}

func TestSentinelsAreDistinct(t *testing.T) {
	all := []error{ErrClosed, ErrResetNeeded, ErrIllegalAction, ErrSnapshot}
	for i, a := range all {
		for k, b := range all {
			if errors.Is(a, b) != (i == k) {
				t.Errorf("%v is %v", a, b)
			}
		}
	}
}
