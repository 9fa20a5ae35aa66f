package twin

import (
	"slices"
	"sort"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// arrivals are the jobs that come while forecasts play on: those of earlier days, at the same hour of the week. Days
// are drawn whole, so that the bursts of a day stay together.
type arrivals struct {
	jobs        []traces.Job // in order of submit
	forecasts   []predict.Forecast
	first, last time.Duration
	unit        time.Duration // by how much days may be shifted: a week, or a day where the history is short
}

const (
	day  = 24 * time.Hour
	week = 7 * day

	leastHistory = 2 * day
)

// enough reports whether arrivals can be drawn from a history.
func enough(history []traces.Job) bool {
	if len(history) == 0 {
		return false
	}
	first, last := history[0].Submit, history[0].Submit
	for i := range history {
		first, last = min(first, history[i].Submit), max(last, history[i].Submit)
	}
	return last-first >= leastHistory
}

// newArrivals returns the arrivals of a history. maker forecasts their run times for policies that look at them; nil =
// none does.
func newArrivals(history []traces.Job, limit time.Duration, maker predict.Maker) (*arrivals, error) {
	a := &arrivals{jobs: slices.Clone(history)}
	slices.SortStableFunc(a.jobs, func(x, y traces.Job) int { return int(min(1, max(-1, x.Submit-y.Submit))) })
	if n := len(a.jobs); n > 0 {
		a.first, a.last = a.jobs[0].Submit, a.jobs[n-1].Submit
	}
	switch span := a.last - a.first; {
	case span >= 15*day:
		a.unit = week
	case span >= leastHistory:
		a.unit = day
	default:
		return nil,
			fault.Errorf(
				"arrivals are drawn from two days of history or more, and this one covers %v; want %s none, or a longer %s",
				span.Round(time.Minute), fault.Key("arrivals"), fault.Key("history"))
	}
	for i := range a.jobs {
		j := &a.jobs[i]
		j.GPUMilli, j.MinGPUs, j.MaxGPUs, j.CPUMilli, j.MemBytes, j.Profile, j.Graph = 1000, 0, 0, 0, 0, nil, nil
		if j.Estimate <= 0 {
			j.Estimate, j.Assumed = limit, true
		}
	}
	if maker != nil {
		a.forecasts = gbdt.Said(a.jobs, maker)
	}
	return a, nil
}

// draw fills f with the jobs of the first days days of a draw. More days add to what fewer would have given.
func (a *arrivals) draw(f *sim.Future, seed uint64, draw int, now, origin time.Duration, days int) {
	f.Jobs, f.Forecasts = f.Jobs[:0], f.Forecasts[:0]
	for k := range days {
		from := origin + now + time.Duration(k)*day // on the history's clock
		low := max(1, ceil(from+day-a.last, a.unit))
		high := max(low, floor(from-a.first, a.unit))
		shift := a.unit * time.Duration(low+int(rng.At(seed, rng.Hash("twin/day"), uint64(draw),
			uint64(k))%uint64(high-low+1)))
		at := from - shift
		i := sort.Search(len(a.jobs), func(i int) bool { return a.jobs[i].Submit >= at })
		for ; i < len(a.jobs) && a.jobs[i].Submit < at+day; i++ {
			f.Jobs = append(f.Jobs, a.jobs[i])
			j := &f.Jobs[len(f.Jobs)-1]
			j.Submit = now + time.Duration(k)*day + (j.Submit - at)
			if a.forecasts != nil {
				f.Forecasts = append(f.Forecasts, a.forecasts[i])
			}
		}
	}
}

func floor(a, b time.Duration) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return int(q)
}

func ceil(a, b time.Duration) int { return -floor(-a, b) }
