package statistic

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
		{[]float64{100, 3, 1, 2}, 2.5},              // 2 and 3 remain of 1, 2, 3, 100
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

// The percentile interval of the mean of n normal numbers is close to ±1.96/√n.
func TestBootstrapIntervalHasTheTextbookWidth(t *testing.T) {
	n := 400
	row := make([]float64, n)
	for i := range row {
		// Normal quantiles at even steps: mean 0, deviation close to 1.
		row[i] = math.Sqrt2 * math.Erfinv(2*(float64(i)+.5)/float64(n)-1)
	}
	ci := Bootstrap(7, "test", n, func(drawn []Draw) float64 {
		sum := 0.0
		for _, d := range drawn {
			sum += row[d.Unit]
		}
		return sum / float64(n)
	})
	want := 1.96 / math.Sqrt(float64(n))
	if math.Abs(ci[1]-want) > 0.1*want || math.Abs(ci[0]+want) > 0.1*want {
		t.Errorf("interval %v, want about ±%.4f", ci, want)
	}
}
