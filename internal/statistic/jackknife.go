package statistic

import (
	"fmt"
	"math"
)

// contrast is a scale on which the sums of two policies are compared. It is 0 where the sums are equal and changes its
// sign where they change places.
type contrast struct {
	of    func(a, b float64) float64 // of the sums a and b
	ratio func(y float64) float64    // a/b where of(a, b) = y
	slope func(a, b float64) float64 // change of of(a, b) by a relative change of a/b
}

var (
	// logRatio is the logarithm of the ratio of both sums, which must be above 0.
	logRatio = contrast{
		of:    func(a, b float64) float64 { return math.Log(a / b) },
		ratio: math.Exp,
		slope: func(_, _ float64) float64 { return 1 },
	}
	// share is the difference over the sum of both, (a−b)/(a+b), which exists also where one of them is 0.
	share = contrast{
		of: func(a, b float64) float64 { return (a - b) / (a + b) },
		ratio: func(y float64) float64 {
			if y >= 1 {
				return math.Inf(1)
			}
			return (1 + max(y, -1)) / (1 - max(y, -1))
		},
		slope: func(a, b float64) float64 { return 2 * a * b / (a + b) / (a + b) },
	}
	// quotient is a/b, for a mean of values of any sign: b is their number.
	quotient = contrast{
		of:    func(a, b float64) float64 { return a / b },
		ratio: func(y float64) float64 { return y },
		slope: func(a, b float64) float64 { return a / b },
	}
)

// percent returns the difference in percent that y stands for.
func (c contrast) percent(y float64) float64 { return 100 * (c.ratio(y) - 1) }

// scaleFor returns the contrast for the values of a and b: logRatio if all sums that leave out one unit are positive,
// otherwise share. It returns false where the values have no ratio, because a sum is negative or both are 0.
func scaleFor(a, b []float64) (contrast, bool) {
	leastA, zeroA := leastSum(a)
	leastB, zeroB := leastSum(b)
	switch {
	case leastA > zeroA && leastB > zeroB:
		return logRatio, true
	case leastA >= -zeroA && leastB >= -zeroB && sum(a)+sum(b) > 0:
		return share, true
	}
	return contrast{}, false
}

// leastSum returns the least sum of v that leaves out at most one value, and by how much it may miss 0.
func leastSum(v []float64) (least, zero float64) {
	total := sum(v)
	least = total
	for _, x := range v {
		least = min(least, total-x)
	}
	return least, rounding * math.Abs(total)
}

// rounding is the greatest contrast and the greatest standard error of one that count as 0: sums of some thousand equal
// numbers in another order differ by less.
const rounding = 1e-12

// estimate is a contrast with its standard error.
type estimate struct {
	y, se float64
	skew  float64 // of the units' shares in y, without its bias
	units int
}

// jackknife estimates c of the sums of a and b. The standard error is that of the jackknife, which leaves out one unit
// at a time (Tukey 1958; Efron and Stein 1981, "The jackknife estimate of variance", Annals of Statistics 9(3)). For
// the log ratio it is close to that of the linearised differences A_r/ΣA − B_r/ΣB (the delta method) and covers better,
// because it includes the curvature of the ratio.
func (c contrast) jackknife(a, b []float64) estimate {
	n := float64(len(a))
	sumA, sumB := sum(a), sum(b)
	e := estimate{y: c.of(sumA, sumB), units: len(a)}
	without := make([]float64, len(a))
	for i := range a {
		without[i] = c.of(sumA-a[i], sumB-b[i])
	}
	mean, m2, m3 := sum(without)/n, 0.0, 0.0
	for _, v := range without {
		d := mean - v // leaving out a high unit lowers the rest
		m2 += d * d / n
		m3 += d * d * d / n
	}
	e.se = math.Sqrt((n - 1) * m2)
	if math.Abs(e.y) <= rounding {
		e.y = 0
	}
	if e.se <= rounding*max(1, math.Abs(e.y)) {
		e.se = 0
	} else if n > 2 {
		e.skew = m3 / math.Pow(m2, 1.5) * math.Sqrt(n*(n-1)) / (n - 2)
	}
	return e
}

// Quotient95 returns ΣA/ΣB over units on which both have a value, ΣB > 0, with its jackknife standard error and its
// 95 % interval, which has the additions for skewness of CompareReplications and is missing below MinUnits. ΣA may have
// any sign. It panics if a and b differ in length.
func Quotient95(a, b []float64) (ratio, se float64, ci Interval) {
	if len(a) != len(b) {
		panic(fmt.Sprintf("statistic: %d values over %d", len(a), len(b)))
	}
	ci = noInterval()
	if len(a) < 2 {
		return quotient.of(sum(a), sum(b)), math.NaN(), ci
	}
	e := quotient.jackknife(a, b)
	if len(a) >= MinUnits {
		ci = e.interval()
	}
	return e.y, e.se, ci
}

// widened returns the quantile u of Student's t with an addition for the skewness γ of the sample.
//
// A t interval of a skewed sample is too short. To the order 1/n its coverage misses 95 % by 0.14κ − 2.16γ² times
// z·φ(z)/n (Hall 1988, "Theoretical comparison of bootstrap confidence intervals", Annals of Statistics 16(3), p. 949;
// Owen 2025, arXiv:2501.07645, for Student's t), where z is the normal quantile. Half the width that repairs the part
// of γ is longer by z·(z⁴ + 2z² − 3)·γ²/(18n), from the same expansion. The kurtosis κ, which would shorten the
// interval a little, is left out: a small sample does not determine it.
func (e estimate) widened(u float64) float64 {
	n := float64(e.units)
	z := math.Sqrt2 * math.Erfcinv(2*StudentTail(u, n-1))
	return u + z*(z*z*z*z+2*z*z-3)*e.skew*e.skew/(18*n)
}

// reach returns how many standard errors an interval goes up from the contrast, or down from it, at the quantile u of
// Student's t.
//
// It goes further on the side to which the sample is skewed, where the rare units lie that a small sample lacks: by
// γ·(1 + 2z²)/(6√n), the first-order term in the distribution of Student's t of a skewed sample (Johnson 1978,
// "Modified t tests and confidence intervals for asymmetrical populations", JASA 73(363); Hall 1992, "On the removal of
// skewness by transformation", JRSS B 54(1)). On the other side, which the same term would shorten, it stays: the
// skewness of some ten units is too uncertain to rely on a shorter interval.
func (e estimate) reach(u float64, up bool) float64 {
	skew, n := e.skew, float64(e.units)
	if !up {
		skew = -skew
	}
	if skew <= 0 {
		return e.widened(u)
	}
	z := math.Sqrt2 * math.Erfcinv(2*StudentTail(u, n-1))
	return e.widened(u) + skew*(1+2*z*z)/(6*math.Sqrt(n))
}

// interval returns the 95 % interval of the contrast.
func (e estimate) interval() [2]float64 {
	if e.se == 0 {
		return [2]float64{e.y, e.y}
	}
	u := StudentQuantile(.975, float64(e.units-1))
	return [2]float64{e.y - e.reach(u, false)*e.se, e.y + e.reach(u, true)*e.se}
}

// p returns the probability of a contrast that is at least as far from 0 if the true one is 0: that of Student's t
// beyond the quantile at which the interval reaches 0. So p is below 0.05 if and only if the interval excludes 0.
func (e estimate) p() float64 {
	switch {
	case e.y == 0:
		return 1
	case e.se == 0:
		return 0
	}
	t, df := math.Abs(e.y)/e.se, float64(e.units-1)
	if e.skew == 0 {
		return 2 * StudentTail(t, df)
	}
	// reach rises with u, and falls below it by less than 0.08.
	low, high := 0.0, t+.1
	for high-low > 1e-12*high {
		if u := (low + high) / 2; e.reach(u, e.y < 0) < t {
			low = u
		} else {
			high = u
		}
	}
	return min(1, 2*StudentTail(high, df))
}

// power is the probability with which unitsFor units show a difference.
const power = 0.8

// unitsFor returns the number of independent units, at least MinUnits, with which the 95 % interval of a contrast that
// is truly y excludes 0 in 80 % of evaluations, if units vary as they do here: the smallest n whose t quantiles for
// 97.5 and 80 % sum to at most y·√n/s, where s is the deviation of one unit (Lachin 1981, "Introduction to sample size
// determination and power analysis for clinical trials", Controlled Clinical Trials 2(2), with t in place of normal
// quantiles).
func (e estimate) unitsFor(y float64) int {
	s := e.se * math.Sqrt(float64(e.units))
	need := func(df float64) float64 {
		z := (StudentQuantile(.975, df) + StudentQuantile(power, df)) * s / y
		return z * z
	}
	n := max(MinUnits, need(math.Inf(1))) // with normal quantiles, which are lower
	for ; n < 1e9; n++ {
		if need(math.Floor(n)-1) <= math.Floor(n) {
			return int(n)
		}
	}
	return 1e9
}

func sum(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s
}
