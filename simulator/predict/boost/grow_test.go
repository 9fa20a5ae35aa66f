package boost

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
)

// The books of a fit are kept by leaves, and by walking for rows out of the sample. Predict must agree with them.
func TestResidualsAreTargetMinusPrediction(t *testing.T) {
	const features = 5
	rows, target := noise(stream(t, "residuals"), 400, features)
	for _, share := range []float64{1, 0.5} {
		o := DefaultOptions()
		o.RowShare, o.MinLeaf = share, 3
		tb, err := newTable(context.Background(), rows, features, 16, 1)
		if err != nil {
			t.Fatal(err)
		}
		f := newFit(tb, target, 0.7, o)
		for k := range 30 {
			if grown, err := f.addTree(context.Background(), k); !grown || err != nil {
				t.Fatalf("tree %d: %v, %v", k, grown, err)
			}
		}
		for r, y := range target {
			if want := y - f.predict(rows[r*features:][:features]); math.Abs(f.residual[r]-want) > 1e-9 {
				t.Fatalf("share %v: the residual of row %d is %v, want %v", share, r, f.residual[r], want)
			}
		}
	}
}

// Each split must be the best one of its leaf, found by counting rows for every threshold of every feature anew; and
// splits must be made in the order of gains.
func TestSplitsAreTheBestOnes(t *testing.T) {
	const features = 5
	for _, c := range []struct {
		level, l2, columns float64
		minLeaf            int
	}{{0.5, 0, 1, 1}, {0.9, 0, 1, 5}, {0.1, 3, 1, 20}, {0.5, 0, 0.4, 5}} {
		rows, target := noise(stream(t, "splits"), 500, features)
		o := DefaultOptions()
		o.MinLeaf, o.L2, o.ColumnShare, o.Leaves = c.minLeaf, c.l2, c.columns, 12
		tb, err := newTable(context.Background(), rows, features, 16, 1)
		if err != nil {
			t.Fatal(err)
		}
		f := newFit(tb, target, c.level, o)
		f.draw(0)
		g := f.grower
		if err := g.grow(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := len(g.splits); n < 2 || len(g.leaves) != n+1 || n >= o.Leaves {
			t.Fatalf("%d splits and %d leaves", n, len(g.leaves))
		}
		inside := make([][]int, len(g.splits)) // rows of each split
		inside[0] = make([]int, len(target))
		for r := range inside[0] {
			inside[0][r] = r
		}
		open := []int{0} // splits whose leaf exists already
		for i := range g.splits {
			s := &g.splits[i]
			for _, k := range open {
				if g.splits[k].gain > s.gain*(1+1e-12) {
					t.Errorf("split %d gains %v and comes before split %d, which gains %v", i, s.gain, k, g.splits[k].gain)
				}
			}
			open = slices.DeleteFunc(open, func(k int) bool { return k == i })
			if want := bestGain(f, inside[i]); math.Abs(s.gain-want) > 1e-9 {
				t.Errorf("split %d gains %v, want %v", i, s.gain, want)
			}
			if got := gainOf(f, inside[i], s.column, s.bin, s.missing); math.Abs(s.gain-got) > 1e-9 {
				t.Errorf("split %d says that it gains %v, and gains %v", i, s.gain, got)
			}
			sides := parted(f, inside[i], s.column, s.bin, s.missing)
			for side, child := range s.child {
				if child >= 0 {
					inside[child], open = sides[side], append(open, int(child))
					continue
				}
				l := &g.leaves[^child]
				var got []int
				for _, e := range g.order[l.begin:l.end] {
					got = append(got, e.row())
				}
				if !slices.Equal(got, sides[side]) {
					t.Errorf("leaf %d has rows %v, want %v", ^child, got, sides[side])
				}
			}
		}
	}
}

// parted divides rows as a split does.
func parted(f *fit, rows []int, column int, bin, missing uint8) (sides [2][]int) {
	for _, r := range rows {
		b, side := f.cells[r*len(f.columns)+column], uint8(0)
		if b > bin {
			side = 1
		}
		if b == f.columns[column].missing() {
			side = missing
		}
		sides[side] = append(sides[side], r)
	}
	return sides
}

// gainOf returns what a split gains, and -1 if a side has too few rows.
func gainOf(f *fit, rows []int, column int, bin, missing uint8) float64 {
	sides := parted(f, rows, column, bin, missing)
	if len(sides[0]) < f.MinLeaf || len(sides[1]) < f.MinLeaf {
		return -1
	}
	score := func(rows []int) float64 {
		sum := 0.0
		for _, r := range rows {
			if f.residual[r] <= 0 {
				sum += 1 - f.level
			} else {
				sum -= f.level
			}
		}
		return sum * sum / (float64(len(rows)) + f.L2)
	}
	return score(sides[0]) + score(sides[1]) - score(rows)
}

func bestGain(f *fit, rows []int) float64 {
	best := 0.0
	for _, k := range f.grower.chosen {
		for b := range f.columns[k].missing() {
			best = max(best, gainOf(f, rows, k, b, 0), gainOf(f, rows, k, b, 1))
		}
	}
	return best
}

func TestCancellationEndsATree(t *testing.T) {
	rows, target := noise(stream(t, "cancel"), 500, 3)
	tb, err := newTable(context.Background(), rows, 3, 16, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := newFit(tb, target, 0.5, DefaultOptions())
	f.draw(0)
	late := &lateContext{Context: context.Background(), left: 3}
	if err := f.grower.grow(late); !errors.Is(err, context.Canceled) || len(f.grower.splits) != 3 {
		t.Errorf("%d splits, error %v; want 3, canceled", len(f.grower.splits), err)
	}
}

// A tree of n leaves needs no more histograms than leaves that can be split.
func TestHistogramsAreUsedAgain(t *testing.T) {
	rows, target := noise(stream(t, "histograms"), 1000, 3)
	o := DefaultOptions()
	tb, err := newTable(context.Background(), rows, 3, o.Bins, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := newFit(tb, target, 0.5, o)
	for k := range 40 {
		if _, err := f.addTree(context.Background(), k); err != nil {
			t.Fatal(err)
		}
	}
	if n, most := len(f.grower.free), len(target)/(2*o.MinLeaf)+1; n < 1 || n > most {
		t.Errorf("%d histograms, want 1 to %d", n, most)
	}
}
