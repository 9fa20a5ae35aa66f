package statistic

import (
	"fmt"
	"math"
	"slices"
)

// Replicated compares policy A with B over independent units on which both have played: replications of a simulation
// with common random numbers, or blocks of one long log.
type Replicated struct {
	A      string `json:"a"`
	B      string `json:"b"`
	Metric string `json:"metric"`
	// Difference is 100·(ΣA − ΣB)/ΣB over units: the ratio of the means, less 1, in percent. It is NaN if ΣB is negative
	// and +Inf if it is 0 and ΣA is not.
	Difference Number `json:"difference_percent"`
	// CI95 is the 95 % interval of Difference. It is missing with fewer than MinUnits units, and where there is no ratio.
	CI95 Interval `json:"ci95"`
	// P is the probability of a difference at least this far from 0 if the true one is 0. It is missing where CI95 is.
	P     Number `json:"p"`
	PHolm Number `json:"p_holm"` // P corrected for the number of rivals (JudgeAll), before that P itself
	Units int    `json:"units"`  // number of independent units
	// UnitsFor is the number of units with which a true difference of 3 % would be shown in 80 % of evaluations (before
	// the correction for the number of rivals) if units vary as these do. 0 is unknown: there are fewer than two units, or
	// no ratio.
	UnitsFor int     `json:"units_for_3_percent,omitempty"`
	Verdict  Verdict `json:"verdict"`
}

// shownPercent is the difference that UnitsFor asks for, in percent.
const shownPercent = 3

// CompareReplications compares policies a and b, which have one value for each replication: a[r] and b[r] come from the
// same jobs (common random numbers). Values are means or sums that are not negative; where a sum is, there is no ratio,
// hence no interval. The verdict is that of a single comparison: with several rivals, pass all rows to JudgeAll. Of two
// values the lower one is better, unless higherIsBetter is true. It panics if a and b differ in length.
//
// The interval is the jackknife t interval of the logarithm of the ratio ΣA/ΣB, with additions for skewness
// (estimate.widened and, on the side to which the sample is skewed, estimate.reach), and P is the probability of the
// same statistic. It has no draws, does not depend on which policy is called a, and stays above −100 %. If a mean is 0
// without one of its units, (ΣA − ΣB)/(ΣA + ΣB) takes the place of the logarithm. A constant ratio in at least MinUnits
// units is a certain difference.
//
// Coverage, of 10,000 simulated evaluations each, of lognormal values with coefficients of variation (CV) from 0.6 to
// 1.2 and correlations of their logarithms of 0.5, 0.8 and 0.95:
//
//	                     10 units       16 units       32 units
//	equal CV             94.3 to 95.6   94.8 to 95.7   94.7 to 95.8 %
//	0.6 against 0.9      93.2 to 94.9   94.1 to 95.0   95.0 to 95.5 %
//	0.9 against 1.2      92.9 to 94.6   92.9 to 95.1   93.7 to 95.4 %
//	0.6 against 1.2      92.7 to 93.8   93.5 to 94.1   94.7 to 95.0 %
//
// The lowest numbers are those of correlation 0.95, where one policy is mostly a power of the other and the rare units
// that decide the ratio may be missing. At 16 units the least and the mean coverage over these cases, and those
// with a and b exchanged, are: this one 92.8 and 94.5; without what it adds on one side (estimate.reach) 90.6 and 93.5;
// Student's t of the linearised differences 83.5 and 90.1, of the logarithm 85.5 and 90.5; jackknife t 84.4 and 91.7,
// of the logarithm 87.1 and 91.9; Fieller's interval 80.9 and 92.0; symmetric bootstrap t of the jackknifed logarithm
// 89.1 and 93.8 (2,000 evaluations, 300 resamples); percentile and BCa bootstrap 87.5 and 87.0 on the mean (500
// evaluations, 400 resamples).
//
// If nine rivals are equal to a policy, it is put ahead of or behind any of them, after JudgeAll, in 3.6 to 6.2 % of
// evaluations with 10 units, 3.3 to 5.1 % with 16 and 3.1 to 4.5 % with 32 (6,000 evaluations each, CV 0.6 to 1.2): the
// highest numbers are those of CV 1.2.
func CompareReplications(nameA, nameB, metric string, a, b []float64, higherIsBetter bool) Replicated {
	if len(a) != len(b) {
		panic(fmt.Sprintf("statistic: %d values of %s and %d of %s", len(a), nameA, len(b), nameB))
	}
	a, b = withoutDust(a, b), withoutDust(b, a)
	r := unjudged(nameA, nameB, metric, a, b)
	r.Units = len(a)
	if r.Units < 2 {
		r.Verdict = TooFew
		return r
	}
	if slices.Equal(a, b) {
		r.settle(estimate{units: r.Units}, logRatio, [2]float64{}, 1, higherIsBetter)
	} else if c, ok := scaleFor(a, b); ok {
		e := c.jackknife(a, b)
		r.settle(e, c, e.interval(), e.p(), higherIsBetter)
	} else {
		r.Verdict = Judge(r.Units, float64(r.Difference), r.CI95, float64(r.PHolm), higherIsBetter)
	}
	return r
}

// withoutDust returns v, or zeros if its sum is less than a billionth of that of the other policy: what is left of sums
// that cancel. A ratio of such sums has no digits.
func withoutDust(v, other []float64) []float64 {
	if s := sum(v); s > 0 && s < 1e-9*sum(other) {
		return make([]float64, len(v))
	}
	return v
}

// unjudged returns the comparison of a and b with nothing but its names and Difference.
func unjudged(nameA, nameB, metric string, a, b []float64) Replicated {
	none := Number(math.NaN())
	r := Replicated{A: nameA, B: nameB, Metric: metric, Difference: none, CI95: noInterval(), P: none, PHolm: none}
	sumA, sumB := sum(a), sum(b)
	switch {
	case len(a) == 0:
	case math.Abs(sumA-sumB) <= rounding*math.Abs(sumB):
		r.Difference = 0
	case sumB > 0:
		r.Difference = Number(100 * (sumA - sumB) / sumB)
	case sumB == 0 && sumA > 0:
		r.Difference = Number(math.Inf(1))
	}
	return r
}

// settle fills in the interval ci and the probability p of the estimate e on the scale c, and the verdict.
func (r *Replicated) settle(e estimate, c contrast, ci [2]float64, p float64, higherIsBetter bool) {
	r.UnitsFor = e.unitsFor(c.of(100+shownPercent, 100))
	if r.Units >= MinUnits {
		r.CI95 = Interval{c.percent(ci[0]), c.percent(ci[1])}
		if e.se == 0 { // the same number in other roundings
			r.CI95 = Interval{float64(r.Difference), float64(r.Difference)}
		}
		r.P, r.PHolm = Number(p), Number(p)
	}
	r.Verdict = Judge(r.Units, float64(r.Difference), r.CI95, float64(r.PHolm), higherIsBetter)
}

// Mean95 returns the mean of the values of independent units with its 95 % interval, which is missing below MinUnits.
// For values that are not negative it is the interval of CompareReplications, for the logarithm of the mean. If some
// are negative, or all but one are 0, it is the t interval with the same additions for skewness.
//
// Its coverage of lognormal values with a coefficient of variation of 0.3, 0.6, 0.9 and 1.2 is 95.9, 95.4, 95.1 and
// 94.6 % with 10 units, and 95.9, 96.4, 96.9 and 95.7 % with 32 (10,000 samples each). Student's t interval covers
// 94.1, 91.0, 88.8 and 84.8 % with 10 (4,000 samples each).
func Mean95(values []float64) (mean float64, ci Interval) {
	mean, ci = Mean(values), noInterval()
	if len(values) < MinUnits {
		return mean, ci
	}
	greatest := 0.0
	for _, v := range values {
		greatest = max(greatest, math.Abs(v))
	}
	if greatest == 0 {
		return 0, Interval{}
	}
	scaled, ones := make([]float64, len(values)), make([]float64, len(values))
	for i, v := range values {
		scaled[i], ones[i] = v/greatest, 1
	}
	c, lowest := quotient, math.Inf(-1)
	if slices.Min(scaled) >= 0 {
		lowest = 0
		if least, zero := leastSum(scaled); least > zero {
			c = logRatio
		}
	}
	e := c.jackknife(scaled, ones)
	if e.se == 0 {
		return mean, Interval{mean, mean}
	}
	in := e.interval()
	return mean, Interval{max(lowest, greatest*c.ratio(in[0])), greatest * c.ratio(in[1])}
}

// Trend tests whether a quantity grows, such as the backlog of a queue: growth has its growth in each of some
// independent units. It returns the mean growth and the probability of one at least as high if the true mean were
// threshold (a one-sided t test): a small p shows that the mean is above threshold. p is NaN below MinUnits.
func Trend(growth []float64, threshold float64) (mean, p float64) {
	mean = Mean(growth)
	n := float64(len(growth))
	if len(growth) < MinUnits {
		return mean, math.NaN()
	}
	squares := 0.0
	for _, x := range growth {
		squares += (x - mean) * (x - mean)
	}
	se := math.Sqrt(squares / (n - 1) / n)
	if se <= rounding*math.Abs(mean) {
		if mean-threshold > rounding*math.Abs(mean) {
			return mean, 0
		}
		return mean, 1
	}
	return mean, StudentTail((mean-threshold)/se, n-1)
}
