package statistic

import (
	"math"
	"testing"
)

func TestPairedDifference(t *testing.T) {
	a := Sample{{8, 18, 30, 40}}
	b := Sample{{10, 20, 30, 30}}
	p := Compare(1, "a", "b", "jct_s", a, b, false)
	if want := 100 * (96.0 - 90) / 90; math.Abs(p.Difference-want) > 1e-9 {
		t.Errorf("difference %v, want %v", p.Difference, want)
	}
	if p.Wins != 2 || p.Ties != 1 || p.WinRate != 2.5/4 {
		t.Errorf("wins %d, ties %d, rate %v", p.Wins, p.Ties, p.WinRate)
	}
	if p.CI95[0] > p.Difference || p.CI95[1] < p.Difference {
		t.Errorf("interval %v does not hold %v", p.CI95, p.Difference)
	}
	if q := Compare(1, "a", "b", "jct_s", a, b, false); q != p {
		t.Error("two comparisons of the same numbers differ")
	}
	// A policy that is faster by the same share in all windows has an interval without width.
	p = Compare(1, "a", "b", "jct_s", Sample{{9, 18, 27}}, Sample{{10, 20, 30}}, false)
	if math.Abs(p.CI95[0]+10) > 1e-9 || math.Abs(p.CI95[1]+10) > 1e-9 {
		t.Errorf("interval %v, want [-10, -10]", p.CI95)
	}
}

// The interval of runs that differ, on windows that do not, is that of drawing runs: of two at −50 % and +50 % it spans
// both. Windows that differ widen it; a run or a window alone has no spread of its own.
func TestRunsAreDrawnApartFromWindows(t *testing.T) {
	rival := []float64{4, 4, 4, 4}
	p := CompareRuns(1, "a", "b", "jct_s", Sample{{2, 2, 2, 2}, {6, 6, 6, 6}}, rival, false)
	if p.Difference != 0 || p.CI95 != [2]float64{-50, 50} || p.Ties != 4 {
		t.Errorf("two runs: %+v", p)
	}
	if p := CompareRuns(1, "a", "b", "jct_s", Sample{{2, 2, 2, 2}}, rival, false); p.Difference != -50 ||
		p.CI95 != [2]float64{-50, -50} || p.Wins != 4 {
		t.Errorf("one run on equal windows: %+v", p)
	}
	// One run, on windows whose ratio is 1 or 2: every share of them is drawn.
	p = CompareRuns(1, "a", "b", "return", Sample{{4, 8}}, []float64{4, 4}, true)
	if p.Difference != 50 || p.CI95 != [2]float64{0, 100} || p.Wins != 1 || p.Ties != 1 {
		t.Errorf("two windows: %+v", p)
	}
	// Runs drawn together see the same windows. A rival that equals their mean in every window therefore differs by 0.
	if p := CompareRuns(1, "a", "b", "jct_s", Sample{{1, 100}, {1, 100}}, []float64{1, 100}, false); p.CI95 !=
		[2]float64{0, 0} {
		t.Errorf("the rival itself: %+v", p)
	}
}

func TestSeedsAreDrawnWithinWindows(t *testing.T) {
	// Two seeds that disagree widen the interval; the mean over seeds is what the table shows.
	s := Sample{{0, 0, 0, 0}, {2, 2, 2, 2}}
	d := Describe(1, s)
	if d.Mean != 1 || d.CI95[0] == d.CI95[1] {
		t.Errorf("got %+v, want mean 1 and an interval with width", d)
	}
	one := Describe(1, Sample{{1, 1, 1, 1}})
	if one.CI95 != [2]float64{1, 1} {
		t.Errorf("got %v, want [1, 1]", one.CI95)
	}
}
