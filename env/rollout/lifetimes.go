package rollout

import (
	"cmp"
	"math"
	"slices"
	"time"

	"clustergym/internal/rng"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
)

// The ways in which the run times of jobs in the system are drawn, where estimates are forecasts.
const (
	OfForecasts = "forecast" // from the job's forecast
	OfRecords   = "recorded" // those of recorded jobs with a similar forecast
	OfBest      = "auto"     // recorded where there is a training part, which gymctl sim has not; else forecast
)

var lifetimes = []string{OfBest, OfRecords, OfForecasts}

// Lifetimes is an ability that a Source may have: it knows what came of forecasts. The quantiles of a forecast can be
// right and its mean far off, because the mean follows from the tail, of which nobody has seen much: jobs whose upper
// quantiles are largest are those of which they are overestimated. What recorded jobs with such forecasts did has no
// such bias.
type Lifetimes interface {
	// Near returns the positions in the workload that the run may be about to meet: low to high−1. They are the same for
	// all jobs of a decision.
	Near(v *sim.View) (low, high int)
	// Lasting draws a run time for j, which has run for ran. The result is longer than ran. It is the run time of a
	// recorded job with a similar forecast. If hardly any such job ran for longer than ran, it is that of any job that
	// did. Jobs at positions low to high−1, and j itself, are left out. ok is false if no job is left. x are 64 random
	// bits.
	Lasting(v *sim.View, j sim.Job, ran time.Duration, low, high int, x uint64) (t time.Duration, ok bool)
}

// lived is a recorded job: what was forecast, and what came of it.
type lived struct {
	level float64
	work  time.Duration
	at    int // position in the workload
}

// level returns by what forecasts are compared: the sum of the logarithms of their upper quantiles, which decide about
// means.
func level(f *predict.Forecast) float64 {
	sum := 0.0
	for _, q := range f.Q[predict.Quantiles/2:] {
		sum += math.Log(float64(q))
	}
	return sum
}

// remember sorts what came of r's forecasts. Searches that draw from forecasts do without.
func (r *Recorded) remember() {
	r.lived = make([]lived, len(r.forecasts))
	for i := range r.forecasts {
		r.lived[i] = lived{level(&r.forecasts[i]), r.jobs[i].Work, i}
	}
	slices.SortFunc(r.lived, func(a, b lived) int {
		if c := cmp.Compare(a.level, b.level); c != 0 {
			return c
		}
		return a.at - b.at
	})
	r.byWork = slices.Clone(r.lived)
	slices.SortFunc(r.byWork, func(a, b lived) int {
		if c := cmp.Compare(a.work, b.work); c != 0 {
			return c
		}
		return a.at - b.at
	})
}

// Of how many jobs on either side one is drawn; after how many draws without success it is twice as many; and how
// often.
const (
	kin       = 64
	widen     = 8
	mostDraws = 128
)

var _ Lifetimes = (*Recorded)(nil)

// Near implements Lifetimes.
func (r *Recorded) Near(v *sim.View) (low, high int) { return r.near(v) }

// Lasting implements Lifetimes.
func (r *Recorded) Lasting(v *sim.View, j sim.Job, ran time.Duration, low, high int, x uint64) (time.Duration, bool) {
	r.once.Do(r.remember)
	f := v.Forecast(j)
	if f == nil || len(r.lived) == 0 {
		return 0, false
	}
	own, known := r.index[mark(v.Trace(j))]
	other := func(k *lived) bool { return (k.at < low || k.at >= high) && !(known && k.at == own) }
	i, _ := slices.BinarySearchFunc(r.lived, level(f), func(a lived, x float64) int { return cmp.Compare(a.level, x) })
	for width, try := kin, 0; try < mostDraws; try++ {
		if try > 0 && try%widen == 0 {
			width *= 2
		}
		from, to := max(0, i-width), min(len(r.lived), i+width)
		if k := &r.lived[from+int(rng.At(x, uint64(try))%uint64(to-from))]; k.work > ran && other(k) {
			return k.work, true
		}
	}
	// It has outlived most jobs with such forecasts: any job that has run for longer.
	from, _ := slices.BinarySearchFunc(r.byWork, ran+1,
		func(a lived, x time.Duration) int { return cmp.Compare(a.work, x) })
	for try := range mostDraws {
		if from == len(r.byWork) {
			break
		}
		if k := &r.byWork[from+int(rng.At(x, uint64(mostDraws+try))%uint64(len(r.byWork)-from))]; other(k) {
			return k.work, true
		}
	}
	return 0, false
}
