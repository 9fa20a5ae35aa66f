package study

import (
	"math"
	"strconv"
)

// axis maps values to coordinates.
type axis struct {
	low, high  float64 // range of values, as logarithms if log is true
	from, till float64 // range of coordinates
	log        bool
	ticks      []float64
}

// newAxis returns an axis that shows all values, and 0 if zero is true.
func newAxis(values []float64, log, zero bool, from, till float64) axis {
	a := axis{low: math.Inf(1), high: math.Inf(-1), from: from, till: till, log: log}
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || log && v <= 0 {
			continue
		}
		a.low, a.high = math.Min(a.low, a.scale(v)), math.Max(a.high, a.scale(v))
	}
	if a.low > a.high {
		a.low, a.high = 0, 1
	}
	if zero && !log {
		a.low, a.high = math.Min(a.low, 0), math.Max(a.high, 0)
	}
	if a.high-a.low < 1e-12*math.Max(1, math.Abs(a.high)) {
		a.low, a.high = a.low-.5, a.high+.5
	}
	pad := .04 * (a.high - a.low)
	if !zero || log || a.low < 0 {
		a.low -= pad
	}
	a.high += pad
	if log {
		a.logTicks()
		return a
	}
	a.ticks = roundTicks(a.low, a.high)
	return a
}

// logTicks sets the ticks to powers of ten, with their multiples by 2 and 5 if there are few.
func (a *axis) logTicks() {
	for _, fine := range []bool{false, true} {
		a.ticks = a.ticks[:0]
		for e := math.Floor(a.low); e <= math.Ceil(a.high); e++ {
			for _, m := range []float64{1, 2, 5} {
				v := m * math.Pow(10, e)
				if s := math.Log10(v); s >= a.low && s <= a.high && (m == 1 || fine) {
					a.ticks = append(a.ticks, v)
				}
			}
		}
		if len(a.ticks) >= 3 {
			return
		}
	}
	if len(a.ticks) < 2 { // less than a doubling
		low, high := math.Pow(10, a.low), math.Pow(10, a.high)
		a.ticks = roundTicks(low, high)
	}
}

// roundTicks returns about five round values from low to high.
func roundTicks(low, high float64) (ticks []float64) {
	step := niceStep((high - low) / 5)
	for t := math.Ceil(low/step) * step; t <= high+step*1e-9; t += step {
		ticks = append(ticks, math.Round(t/step)*step)
	}
	return ticks
}

// niceStep returns the smallest of 1, 2 and 5 times the powers of ten that is at least x.
func niceStep(x float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*p >= x*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// scale returns v, or its logarithm on a logarithmic axis.
func (a *axis) scale(v float64) float64 {
	if a.log {
		return math.Log10(v)
	}
	return v
}

// at returns the coordinate of v.
func (a *axis) at(v float64) float64 {
	return a.from + (a.scale(v)-a.low)/(a.high-a.low)*(a.till-a.from)
}

// tick formats the value of a tick.
func tick(v float64) string {
	if a := math.Abs(v); a >= 1e6 || a > 0 && a < 1e-4 {
		return strconv.FormatFloat(v, 'e', 0, 64)
	}
	return strconv.FormatFloat(math.Round(v*1e9)/1e9+0, 'f', -1, 64) // + 0 turns −0 into 0
}
