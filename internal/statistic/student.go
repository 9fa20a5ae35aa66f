package statistic

import "math"

// StudentTail returns the probability that a number drawn from Student's t distribution with df degrees of freedom is
// above t. df may be fractional and must be above 0; it returns NaN otherwise. With an infinite df the distribution is
// the normal one.
//
// It is half the regularised incomplete beta function I_x(df/2, 1/2) at x = df/(df + t²) for t ≥ 0 (Abramowitz and
// Stegun 1964, 26.5.27 and 26.7.1). The relative error is below 1e-9.
func StudentTail(t, df float64) float64 {
	switch {
	case math.IsNaN(t) || math.IsNaN(df) || df <= 0:
		return math.NaN()
	case t < 0:
		return 1 - StudentTail(-t, df)
	case math.IsInf(t, 1):
		return 0
	case math.IsInf(df, 1):
		return math.Erfc(t/math.Sqrt2) / 2
	case df > 1e6: // the normal number that Wallace (1959, Annals of Mathematical Statistics 30) puts for t
		return math.Erfc((8*df+1)/(8*df+3)*math.Sqrt(df*math.Log1p(t*t/df)/2)) / 2
	}
	a, t2 := df/2, t*t
	if math.IsInf(t2, 1) {
		return 0
	}
	x, y := df/(df+t2), t2/(df+t2) // y is 1−x without its rounding
	front := math.Exp(logGammaStep(a)-logRootPi-a*math.Log1p(t2/df)) * math.Sqrt(y)
	if x < (a+1)/(a+2.5) {
		return front * betaFraction(a, .5, x) / a / 2
	}
	return .5 - front*betaFraction(.5, a, y)
}

// logRootPi is log Γ(1/2).
var logRootPi = math.Log(math.Pi) / 2

// logGammaStep returns log Γ(a + 1/2) − log Γ(a). For a large a the two are close to each other and far from 0, so that
// their difference would have few digits; there it is Γ(a + 1/2)/Γ(a) = √a·(1 − 1/(8a) + 1/(128a²) + 5/(1024a³) − …)
// (Graham, Knuth and Patashnik 1994, exercise 9.60).
func logGammaStep(a float64) float64 {
	if a > 1e3 {
		return math.Log(a)/2 + math.Log1p((-1+(1/16.+5/(128*a))/a)/(8*a))
	}
	top, _ := math.Lgamma(a + .5)
	bottom, _ := math.Lgamma(a)
	return top - bottom
}

// betaFraction returns the continued fraction of the incomplete beta function, by the algorithm of Lentz (Press et al.
// 2007, Numerical Recipes, 3rd edition, eq. 6.4.5 to 6.4.7). It needs about √max(a, b) steps for x < (a+1)/(a+b+2).
func betaFraction(a, b, x float64) float64 {
	const tiny = 1e-300
	away := func(v float64) float64 { // from a division by zero
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c := 1.0
	d := 1 / away(1-(a+b)*x/(a+1))
	h := d
	for m := 1.0; m < 1e6; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / away(1+even*d)
		c = away(1 + even/c)
		h *= c * d
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / away(1+odd*d)
		c = away(1 + odd/c)
		h *= c * d
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return h
}

// StudentQuantile returns the number below which a number drawn from Student's t distribution with df degrees of
// freedom is with probability p: 2.262… for p = 0.975 and df = 9. df may be fractional and must be above 0. It returns
// −Inf for p = 0, +Inf for p = 1 and NaN for all other p outside (0, 1).
func StudentQuantile(p, df float64) float64 {
	switch {
	case math.IsNaN(p) || p < 0 || p > 1 || math.IsNaN(df) || df <= 0:
		return math.NaN()
	case p == .5:
		return 0
	case p < .5:
		return -studentAbove(p, df)
	}
	return studentAbove(1-p, df)
}

// studentAbove returns the number that is exceeded with probability q < 1/2.
func studentAbove(q, df float64) float64 {
	if q == 0 {
		return math.Inf(1)
	}
	low, high := 0.0, 2.0
	for StudentTail(high, df) > q {
		low, high = high, 2*high
	}
	// Newton's steps where they stay inside the bracket, halves of the bracket elsewhere.
	t := (low + high) / 2
	for range 200 {
		off := StudentTail(t, df) - q
		if off > 0 {
			low = t
		} else {
			high = t
		}
		next := t + off/studentDensity(t, df)
		if !(next > low && next < high) {
			next = (low + high) / 2
		}
		if math.Abs(next-t) <= 1e-14*t {
			return next
		}
		t = next
	}
	return t
}

// studentDensity returns the density of Student's t distribution with df degrees of freedom at t.
func studentDensity(t, df float64) float64 {
	if math.IsInf(df, 1) {
		return math.Exp(-t*t/2) / math.Sqrt(2*math.Pi)
	}
	return math.Exp(logGammaStep(df/2)-logRootPi-(df+1)/2*math.Log1p(t*t/df)) / math.Sqrt(df)
}
