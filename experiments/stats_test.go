package experiments

import (
	"math"
	"testing"
)

func TestIQMCutsAQuarterOnEachSide(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{1, 2, 3, 4}, 2.5},
		{[]float64{100, 3, 1, 2}, 2.5},              // 2 and 3 are left of 1, 2, 3, 100
		{[]float64{1, 2, 3, 4, 5, 6, 7, 1000}, 4.5}, // 3, 4, 5, 6
		{[]float64{7}, 7},
		// Of five values 1.25 are cut on each side: (0.75·2 + 3 + 0.75·4) / 2.5.
		{[]float64{1, 2, 3, 4, 5}, 3},
		{[]float64{0, 0, 3, 10, 10}, (0 + 3 + 7.5) / 2.5},
	} {
		if got := IQM(c.values); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("IQM(%v) = %v, want %v", c.values, got, c.want)
		}
	}
	if !math.IsNaN(IQM(nil)) {
		t.Error("the IQM of nothing is a number")
	}
}

func TestGeometricMeanWeighsRatios(t *testing.T) {
	if got := GeometricMean([]float64{1, 100}); math.Abs(got-10) > 1e-12 {
		t.Errorf("got %v, want 10", got)
	}
	if !math.IsNaN(GeometricMean(nil)) {
		t.Error("the geometric mean of nothing is a number")
	}
}

func TestPairedDifference(t *testing.T) {
	a := sample{{8, 18, 30, 40}}
	b := sample{{10, 20, 30, 30}}
	p := compare(1, "a", "b", "jct_s", a, b, false)
	if want := 100 * (96.0 - 90) / 90; math.Abs(p.Difference-want) > 1e-9 {
		t.Errorf("difference %v, want %v", p.Difference, want)
	}
	if p.Wins != 2 || p.Ties != 1 || p.WinRate != 2.5/4 {
		t.Errorf("wins %d, ties %d, rate %v", p.Wins, p.Ties, p.WinRate)
	}
	if p.CI95[0] > p.Difference || p.CI95[1] < p.Difference {
		t.Errorf("interval %v does not hold %v", p.CI95, p.Difference)
	}
	if q := compare(1, "a", "b", "jct_s", a, b, false); q != p {
		t.Error("two comparisons of the same numbers differ")
	}
	// A policy that is the same share faster everywhere has an interval without width.
	p = compare(1, "a", "b", "jct_s", sample{{9, 18, 27}}, sample{{10, 20, 30}}, false)
	if math.Abs(p.CI95[0]+10) > 1e-9 || math.Abs(p.CI95[1]+10) > 1e-9 {
		t.Errorf("interval %v, want [-10, -10]", p.CI95)
	}
}

// The percentile interval of the mean of n normal numbers is close to ±1.96/√n.
func TestBootstrapIntervalHasTheTextbookWidth(t *testing.T) {
	n := 400
	var s sample
	row := make([]float64, n)
	for i := range row {
		// Normal quantiles at even steps: mean 0, deviation close to 1.
		row[i] = math.Sqrt2 * math.Erfinv(2*(float64(i)+.5)/float64(n)-1)
	}
	s = sample{row}
	ci := bootstrap(7, "test", n, func(drawn []draw) float64 {
		sum := 0.0
		for _, d := range drawn {
			sum += s.at(d, 0)
		}
		return sum / float64(n)
	})
	want := 1.96 / math.Sqrt(float64(n))
	if math.Abs(ci[1]-want) > 0.1*want || math.Abs(ci[0]+want) > 0.1*want {
		t.Errorf("interval %v, want about ±%.4f", ci, want)
	}
}

func TestSeedsAreDrawnWithinWindows(t *testing.T) {
	// Two seeds that disagree widen the interval; the mean over seeds is what the table shows.
	s := sample{{0, 0, 0, 0}, {2, 2, 2, 2}}
	d := describe(1, s)
	if d.Mean != 1 || d.CI95[0] == d.CI95[1] {
		t.Errorf("got %+v, want mean 1 and an interval with width", d)
	}
	one := describe(1, sample{{1, 1, 1, 1}})
	if one.CI95 != [2]float64{1, 1} {
		t.Errorf("got %v, want [1, 1]", one.CI95)
	}
}
