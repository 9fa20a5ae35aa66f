package statistic

import (
	"encoding/json"
	"math"
)

// MinUnits is the number of independent units, replications or blocks, that a verdict and an interval need. Below it
// neither the standard error nor the skewness is known well enough.
const MinUnits = 10

// Level is the probability with which a policy that is equal to all its rivals may be put ahead of or behind any of
// them.
const Level = 0.05

// Verdict says what an evaluation shows of a policy against a rival.
type Verdict string

// The verdicts.
const (
	Ahead  Verdict = "ahead"                // better than the rival
	Behind Verdict = "behind"               // worse than the rival
	Apart  Verdict = "cannot be told apart" // no difference is shown, which does not show that there is none
	TooFew Verdict = "too few units"        // fewer than MinUnits independent units
)

// Judge returns the verdict of a comparison over some number of independent units whose difference has the 95 %
// interval ci and, corrected for the number of rivals (Holm), the probability p. A verdict other than Apart and TooFew
// needs MinUnits units, an interval on one side of 0 and a p below Level. A negative difference is better, unless
// higherIsBetter is true.
func Judge(units int, difference float64, ci Interval, p float64, higherIsBetter bool) Verdict {
	switch {
	case units < MinUnits:
		return TooFew
	case p < Level && (ci[0] > 0 || ci[1] < 0):
		if (difference > 0) == higherIsBetter {
			return Ahead
		}
		return Behind
	}
	return Apart
}

// Number is a number of a report that may be missing: NaN in Go, null in JSON.
type Number float64

// MarshalJSON implements json.Marshaler. What is no finite number becomes null.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler. null becomes NaN.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

// Interval is a confidence interval from low to high. One that is missing is two NaN in Go and null in JSON; an upper
// bound without limit is +Inf in Go and null in JSON.
type Interval [2]float64

// noInterval returns the interval that is missing.
func noInterval() Interval { return Interval{math.NaN(), math.NaN()} }

// Known returns true if there is an interval.
func (i Interval) Known() bool { return !math.IsNaN(i[0]) }

// MarshalJSON implements json.Marshaler.
func (i Interval) MarshalJSON() ([]byte, error) {
	if !i.Known() {
		return []byte("null"), nil
	}
	return json.Marshal([2]Number{Number(i[0]), Number(i[1])})
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *Interval) UnmarshalJSON(b []byte) error {
	*i = noInterval()
	if string(b) == "null" {
		return nil
	}
	var n [2]Number
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*i = Interval{float64(n[0]), float64(n[1])}
	if math.IsNaN(i[1]) {
		i[1] = math.Inf(1)
	}
	return nil
}
