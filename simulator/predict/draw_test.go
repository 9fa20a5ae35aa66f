package predict_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/internal/testseed"
	"clustergym/simulator/predict"
	"clustergym/traces"
)

// drawnForecast draws a forecast with quantiles up to some hours, some of them equal.
func drawnForecast(r *rand.Rand) predict.Forecast {
	var q [predict.Quantiles]float64
	for i := range q {
		q[i] = float64(1+r.IntN(3e4)) * 1e9
		if i > 0 && r.IntN(6) == 0 {
			q[i] = q[i-1]
		}
	}
	slices.Sort(q[:])
	return predict.Of(&q, 1+r.IntN(20))
}

// Of many draws, given an age, the share that a forecast expects exceeds each of the quantiles above the age.
func TestDrawsHaveTheQuantilesOfTheForecast(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Or(1), 41))
	f := predict.Forecast{Q: [predict.Quantiles]time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour,
		6 * time.Hour}, Seen: 9}
	for _, ran := range []time.Duration{0, 5 * time.Second, time.Minute, 20 * time.Minute, 7 * time.Hour} {
		const n = 20000
		var over [predict.Quantiles]int
		for range n {
			d := f.Draw(r.Float64(), ran)
			if d <= ran {
				t.Fatalf("a job that has run for %v is drawn to run for %v", ran, d)
			}
			for i, q := range f.Q {
				if d > q {
					over[i]++
				}
			}
		}
		for i, q := range f.Q {
			want := min(1, f.Outlive(q)/f.Outlive(ran))
			// Six standard deviations of a share of n draws are at most 0.021.
			if got := float64(over[i]) / n; got < want-0.022 || got > want+0.022 {
				t.Errorf("after %v a share %.3f exceeds %v, want %.3f", ran, got, q, want)
			}
		}
	}
}

// Draws exceed the age and are run times, whatever the forecast; those of a job that has just begun grow with u.
func TestDrawsAreRunTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Or(2), 42))
	for range 2000 {
		f := drawnForecast(r)
		ran := time.Duration(r.Int64N(1e14)) * time.Duration(r.IntN(2))
		before := time.Duration(0)
		for u := 0.0; u < 1; u += 0.09 {
			d := f.Draw(u, ran)
			if d <= ran || ran == 0 && d < before || d > traces.MaxTime {
				t.Fatalf("%v after %v at %v: %v, before %v", f, ran, u, d, before)
			}
			before = d
		}
	}
}

func TestACertainForecastDrawsWhatIsKnown(t *testing.T) {
	for _, d := range []time.Duration{1, time.Hour, traces.MaxTime} {
		f := predict.Certain(d)
		if !f.Valid() {
			t.Errorf("%v is no forecast", f)
		}
		for _, u := range []float64{0, 0.05, 0.5, 0.99} {
			if got := f.Draw(u, d/2); got != d {
				t.Errorf("%v of a job of %v: %v", u, d, got)
			}
		}
	}
	// A job that has outlived what was certain: half of such jobs run for twice as long.
	if f := predict.Certain(time.Hour); f.Draw(0.5, 3*time.Hour) != 6*time.Hour ||
		f.Draw(0.9, 3*time.Hour).Round(time.Second) != 30*time.Hour {
		t.Errorf("after 3 h: %v, %v", f.Draw(0.5, 3*time.Hour), f.Draw(0.9, 3*time.Hour))
	}
	if f := predict.Certain(0); f.Median() != 1 {
		t.Errorf("no time at all is %v", f)
	}
}
