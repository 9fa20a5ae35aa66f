package sim_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"clustergym/internal/rng"
	"clustergym/internal/testseed"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// oneRun returns a run in which job A has run for ran and job B waits; both are estimated to take 100 s.
func oneRun(t fatal, cfg sim.Config, work, ran time.Duration) *sim.View {
	a, b := job("A", 0, work, 1), job("B", ran, 50*second, 1)
	a.Estimate, b.Estimate = 100*second, 100*second
	s := start(t, cfg, short(t, "1x1"), []traces.Job{a, b})
	advance(t, s)
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0, GPUs: []gpu{0}})
	advance(t, s)
	return s.View()
}

func TestRunTimesAreDrawnFromWhatEstimatesSay(t *testing.T) {
	const n = 4001
	draws := func(e sim.Estimates, v *sim.View, j sim.Job) (d []float64) {
		for i := range uint64(n) {
			d = append(d, e.Draw(v, j, rng.At(testseed.Or(1), i))/1e9)
		}
		slices.Sort(d)
		return d
	}
	near := func(what string, got, want, by float64) {
		t.Helper()
		if math.Abs(got-want) > by {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	v := oneRun(t, sim.DefaultConfig(), 300*second, 40*second)
	if d := (sim.Estimates{Mode: sim.EstimateExact}).Draw(v, 0, 7); d != 0 {
		t.Errorf("exact estimates draw %v", d)
	}
	// Requested: evenly between 40 s and 100 s for A, 0 and 100 s for B.
	e := sim.Estimates{Mode: sim.EstimateTrace}
	for j, want := range []float64{30, 50} {
		d := draws(e, v, sim.Job(j))
		near("the median left of a request", d[n/2], want, 5)
		near("the most left of a request", d[n-1], 2*want*0.95, 0.01)
	}
	// After 150 s the request counts as 200 s.
	d := draws(e, oneRun(t, sim.DefaultConfig(), 300*second, 150*second), 0)
	near("the median left of an outlived request", d[n/2], 25, 2.5)
	// Noise: the estimate of B is the median of what its run time may have been.
	e = sim.Estimates{Mode: sim.EstimateNoisy, Sigma: 0.5, Seed: 3}
	d = draws(e, v, 1)
	told := e.Of(v, 1).Seconds()
	near("the median behind noise", d[n/2]/told, 1, 0.06)
	near("the quartile behind noise", math.Log(d[3*n/4]/told), 0.5*0.6745, 0.06)
	for _, ran := range []time.Duration{100 * second, 290 * second} {
		if d = draws(e, oneRun(t, sim.DefaultConfig(), 300*second, ran), 0); !(d[0] > 0) {
			t.Errorf("after %v, %v is left", ran, d[0])
		}
	}
	// Forecasts: given the age.
	cfg := sim.DefaultConfig()
	cfg.Predictor = history.NewArchive(nil)
	v = oneRun(t, cfg, 300*second, 40*second)
	e = sim.Estimates{Mode: sim.EstimateHistory}
	d = draws(e, v, 0)
	f := v.Forecast(0)
	near("the median left of a forecast", d[n/2]/(f.Draw(0.5, 40*second)-40*second).Seconds(), 1, 0.3)
	if most := (f.Draw(0.95, 40*second) - 40*second).Seconds(); d[n-1] > most || d[0] <= 0 {
		t.Errorf("draws from %v to %v, want above 0 and at most %v", d[0], d[n-1], most)
	}
}

// What runs slowly has less work left in the same time.
func TestDrawsCountWorkNotTime(t *testing.T) {
	spec := short(t, "1x1")
	spec.Speeds = map[string]float64{"": 0.25}
	a := job("A", 0, 300*second, 1)
	a.Estimate = 100 * second
	s := start(t, sim.DefaultConfig(), spec, []traces.Job{a, job("B", 20*second, second, 1)})
	advance(t, s)
	e := sim.Estimates{Mode: sim.EstimateTrace}
	half := uint64(1) << 63
	if d := e.Draw(s.View(), 0, half); d != 50e9 {
		t.Errorf("%v left before its start, want 50 s", d)
	}
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0, GPUs: []gpu{0}})
	advance(t, s)
	if d := e.Draw(s.View(), 0, half); d != 10e9 {
		t.Errorf("%v left at rate 1/4, want 40 s · 1/4", d)
	}
}
