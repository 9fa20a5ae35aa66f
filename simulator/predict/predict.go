// Package predict is the contract of predictors of run times: what a scheduler can know of a job that no cluster knows
// when it is submitted. A predictor learns only from jobs that have ended in the simulated run, and, if it has an
// archive, from those that had ended before the run began. The children implement it: history by statistics of similar
// jobs, gbdt by boosted trees.
//
// A predictor belongs to one run of one simulator, which tells it what happens and keeps the forecasts (sim.Config,
// sim.View). A job gets its forecast when it is submitted. A job that outlives it is forecast again from the same
// quantiles, given its age (Forecast.Outliving).
package predict

import (
	"math"
	"time"

	"clustergym/traces"
)

// Quantiles is the number of quantiles of a forecast.
const Quantiles = 5

// Levels are the levels of a forecast's quantiles. Do not change it.
var Levels = [Quantiles]float64{0.1, 0.25, 0.5, 0.75, 0.9}

// median is the place of the median among Levels.
const median = 2

// Forecast is what is expected of a job's run time.
type Forecast struct {
	// Q are the quantiles of the run time at Levels, ascending, from 1 ns to traces.MaxTime.
	Q [Quantiles]time.Duration
	// Seen is the number of jobs from which the quantiles come, the most a predictor says of its certainty; 0 = it knows
	// none like it, and gives a constant.
	Seen int32
}

// Predictor forecasts the run times of the jobs of one run. Jobs are known by small numbers, which are used again after
// a job has left. It is not safe for concurrent use, depends on nothing but its calls, and allocates nothing once it
// has seen as many jobs, users and groups at a time as it will.
type Predictor interface {
	// Reset begins a run whose clock shows 0 when the clock of the archive shows origin. What was learned in an earlier
	// run is forgotten.
	Reset(origin time.Duration)
	// Predict returns the forecast for job, which is submitted now under this number. job is valid during the call.
	Predict(now time.Duration, number int, job *traces.Job) Forecast
	// Started says that the job of this number starts to run.
	Started(now time.Duration, number int)
	// Stopped says that it has stopped, after it has run for ran in all its starts, and waits again.
	Stopped(now time.Duration, number int, ran time.Duration)
	// Finished says that it has finished after it has run for ran in all. The number may be used again.
	Finished(now time.Duration, number int, ran time.Duration)
	// Dropped says that it has left without finishing. The number may be used again.
	Dropped(now time.Duration, number int)
	// AppendSnapshot appends what has been learned in the run to dst and returns the longer slice.
	AppendSnapshot(dst []byte) []byte
	// RestoreSnapshot continues from src, a snapshot of a predictor made by the same Maker in a run of the same origin.
	// src may be hostile: after an error nothing has changed.
	RestoreSnapshot(src []byte) error
}

// Renewer is an ability that predictors may have.
type Renewer interface {
	// Renew returns what Predict would say at this time of the job of this number, which is in the system: since its
	// submit others may have ended or gone on for long. That it runs itself does not count. Nothing changes, and how the
	// forecast turns out is learned from the one of its submit alone.
	Renew(now time.Duration, number int, job *traces.Job) Forecast
}

// Maker makes predictors that share what no run changes: settings, an archive, a fitted model. Safe for concurrent use.
type Maker interface {
	New() Predictor
	// String distinguishes makers whose predictors give other forecasts.
	String() string
}

// Requested returns the requested time of j, 0 if its trace gives none.
func Requested(j *traces.Job) time.Duration {
	if j.Assumed {
		return 0
	}
	return max(0, j.Estimate)
}

// Most returns the longest run time that j can be forecast to have, in nanoseconds: its requested time if it has one.
func Most(j *traces.Job) float64 {
	if asked := Requested(j); asked > 0 {
		return float64(asked)
	}
	return float64(traces.MaxTime)
}

// Of returns a forecast with ascending quantiles q, in nanoseconds, each brought within the bounds of a run time.
func Of(q *[Quantiles]float64, seen int) Forecast {
	f := Forecast{Seen: int32(min(seen, math.MaxInt32))}
	least := time.Duration(1)
	for i, x := range q {
		switch {
		case x >= traces.MaxTime: // as a float64 it is 1 ns more
			least = traces.MaxTime
		case x > float64(least): // also false for NaN
			least = time.Duration(x)
		}
		f.Q[i] = least
	}
	return f
}

// Valid reports whether the quantiles are those of a forecast.
func (f *Forecast) Valid() bool {
	least := time.Duration(1)
	for _, q := range f.Q {
		if q < least || q > traces.MaxTime {
			return false
		}
		least = q
	}
	return f.Seen >= 0
}

// Median returns the time that half of such jobs outlive.
func (f *Forecast) Median() time.Duration { return f.Q[median] }

// Quantile returns the run time that a share p of such jobs do not outlive: between two Levels, and below the first, by
// the logarithms of the quantiles; above the last, as if run times were Pareto's with the last two quantiles.
func (f *Forecast) Quantile(p float64) time.Duration {
	const last = Quantiles - 1
	switch {
	case p <= 0:
		return 1
	case p < Levels[0]: // uniform
		return max(1, time.Duration(float64(f.Q[0])*p/Levels[0]))
	case p >= 1:
		return traces.MaxTime
	case p > Levels[last]:
		x := math.Log(float64(f.Q[last])/float64(f.Q[last-1])) / math.Log((1-Levels[last-1])/(1-Levels[last]))
		return capped(float64(f.Q[last]) * math.Pow((1-Levels[last])/(1-p), x))
	}
	i := 1
	for Levels[i] < p {
		i++
	}
	if Levels[i] == p {
		return f.Q[i]
	}
	w := (p - Levels[i-1]) / (Levels[i] - Levels[i-1])
	return capped(float64(f.Q[i-1]) * math.Pow(float64(f.Q[i])/float64(f.Q[i-1]), w))
}

func capped(x float64) time.Duration {
	if x >= traces.MaxTime {
		return traces.MaxTime
	}
	return max(1, time.Duration(x))
}

// Outliving returns the run time that is expected of a job that has run for ran: the median; if the job has outlived
// that, the median given this, which is the quantile at 3/4; if it has outlived that too, the one at 7/8, and so on.
// Where quantiles are equal, the time doubles. The result is always more than ran.
func (f *Forecast) Outliving(ran time.Duration) time.Duration {
	t := f.Median()
	for over := 0.25; t <= ran && t <= math.MaxInt64/2; over /= 2 {
		if q := f.Quantile(1 - over); q > t {
			t = q
		} else {
			t *= 2
		}
	}
	return t
}

// mass are the shares of the run times that the terms of Mean stand for.
var mass = [Quantiles + 1]float64{0.1, 0.15, 0.25, 0.25, 0.15, 0.1}

// Mean returns the expected run time, with run times above the last quantile counted as that quantile: the mean of a
// tail that nobody has seen is not known.
func (f *Forecast) Mean() time.Duration {
	sum, below := 0.0, 0.0
	for i, q := range f.Q {
		sum += mass[i] * (below + float64(q)) / 2
		below = float64(q)
	}
	return capped(sum + mass[Quantiles]*below)
}
