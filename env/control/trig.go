package control

import (
	"fmt"
	"math"
)

// Sine and cosine of this file are correctly rounded: the float64 nearest to the true value, on every processor. C
// libraries come close: glibc 2.36 differs in one or two calls of a thousand, by one unit in the last place, and
// libraries differ from each other; package math differs in about one call of five. A trajectory that depends on a
// library's rounding would depend on the machine, visibly so if it is chaotic like Acrobot's.
//
// The method is Ziv's (ACM TOMS 17(3), 1991): a quick result with an error bound, which almost always settles the
// rounding, and otherwise a slow result. Both are Taylor series in double-double arithmetic, where a number is the
// unevaluated sum of two float64. The slow one's error is below 2⁻¹⁰⁰ of the result, so that one call in 2⁴⁷ may still
// be rounded the wrong way.

// maxAngle is the largest angle that sincos accepts.
const maxAngle = 1 << 20

// pi/2 is the sum of these three to 161 bits.
const (
	halfPi1 = 0x1.921fb54442d18p+0
	halfPi2 = 0x1.1a62633145c07p-54
	halfPi3 = -0x1.f1976b7ed8fbcp-110
)

// sincos returns the correctly rounded sine and cosine of x, which must be at most maxAngle in size.
func sincos(x float64) (sin, cos float64) {
	if !(math.Abs(x) <= maxAngle) {
		panic(fmt.Sprintf("control: the angle is %v, want at most %v", x, maxAngle))
	}
	if math.Abs(x) < 0.15 {
		return tiny(x)
	}
	h, l, quadrant := x, 0.0, 0
	if math.Abs(x) > math.Pi/4 {
		h, l, quadrant = reduce(x)
	}
	sin, cos = near0(h, l)
	switch quadrant {
	case 1:
		return cos, -sin
	case 2:
		return -sin, -cos
	case 3:
		return -cos, sin
	}
	return sin, cos
}

// reduce writes x as h + l + quadrant·pi/2, without whole turns, with h + l within pi/4 of 0, or barely more.
func reduce(x float64) (h, l float64, quadrant int) {
	k := math.Round(x * (2 / math.Pi))
	p1 := k * halfPi1
	e1 := math.FMA(k, halfPi1, -p1)
	p2 := k * halfPi2
	e2 := math.FMA(k, halfPi2, -p2)
	h, l1 := twoSum(x-p1, -e1) // x-p1 is exact, because they are within a factor of 2
	h, l2 := twoSum(h, -p2)
	h, l = quickTwoSum(h, l1+l2-e2-k*halfPi3)
	return h, l, int(k) & 3
}

// tiny is near0 for |x| < 0.15, where all terms but the first may be computed in float64.
func tiny(x float64) (sin, cos float64) {
	if math.Abs(x) < 0x1p-27 {
		return x, 1 // the next terms are less than half of the last place; this keeps the sign of 0
	}
	z := x * x
	w := z * z
	c := x * z * ((1./6 - z*(1./120)) + w*((1./5040-z*(1./362880))+w*(1./39916800)))
	s, sl := quickTwoSum(x, -c)
	sin, okSin := rounded(s, sl, c)

	c = w * ((1./24 - z*(1./720)) + w*((1./40320-z*(1./3628800))+w*(1./479001600)))
	s, sl = quickTwoSum(1, -0.5*z)
	cos, okCos := rounded(s, sl+(c-0.5*math.FMA(x, x, -z)), c)
	if okSin && okCos {
		return sin, cos
	}
	return near0(x, 0)
}

// near0 returns the sine and the cosine of h + l, which is near 0 but not extremely close to it.
func near0(h, l float64) (sin, cos float64) {
	z := h * h
	zl := math.FMA(h, h, -z) + 2*h*l
	w := z * z

	// r - r³/6 in double-double, the rest of the series in float64.
	const sixth, sixthLow = 0x1.5555555555555p-3, 0x1.5555555555555p-57
	u := h * z
	ul := math.FMA(h, z, -u) + (h*zl + l*z)
	c := u * sixth
	cl := math.FMA(u, sixth, -c) + (u*sixthLow + ul*sixth)
	rest := u * z * ((1./120 - z*(1./5040)) +
		w*((1./362880-z*(1./39916800))+w*((1./6227020800-z*(1./1307674368000))+w*(1./355687428096000))))
	s, sl := quickTwoSum(h, -c)
	sin, ok := rounded(s, sl+(rest+(l-cl)), rest)
	if !ok {
		sin = series(h, l, z, zl, 1)
	}

	// 1 - r²/2 + r⁴/24 in the same way.
	const part, partLow = 0x1.5555555555555p-5, 0x1.5555555555555p-59
	c = w * part
	cl = math.FMA(w, part, -c) + (w*partLow + (math.FMA(z, z, -w)+2*z*zl)*part)
	rest = -w * z * ((1./720 - z*(1./40320)) +
		w*((1./3628800-z*(1./479001600))+w*((1./87178291200-z*(1./20922789888000))+w*(1./6402373705728000))))
	s, sl = quickTwoSum(1, -0.5*z)
	s, sl2 := quickTwoSum(s, c)
	cos, ok = rounded(s, sl+(sl2+(rest+(cl-0.5*zl))), rest)
	if !ok {
		cos = series(1, 0, z, zl, 0)
	}
	return sin, cos
}

// rounded rounds s + sl, where the terms in rest were computed in float64, and reports whether the possible error of
// those terms leaves no doubt about the result: rest is off by less than 16 roundings, 2⁻⁴⁹ of it.
func rounded(s, sl, rest float64) (float64, bool) {
	e := math.Abs(rest)*0x1p-49 + math.Abs(s)*0x1p-98
	a, b := s+(sl+e), s+(sl-e)
	return a, a == b
}

// series returns the slow result, (r + rl)·(1 - z/((n+1)(n+2))·(1 - z/((n+3)(n+4))·(…))), to 28 factorials: the sine
// for n = 1 and r, the cosine for n = 0 and 1.
func series(r, rl, z, zl float64, n int) float64 {
	t, tl := 1.0, 0.0
	for k := n + 28; k > n; k -= 2 {
		p, pl := product(z, zl, t, tl)
		d := float64(k * (k - 1))
		q := p / d
		ql := (math.FMA(-q, d, p) + pl) / d
		s, sl := quickTwoSum(1, -q)
		t, tl = quickTwoSum(s, sl-ql)
	}
	p, pl := product(r, rl, t, tl)
	return p + pl
}

// product returns (a + al)·(b + bl) as a double-double.
func product(a, al, b, bl float64) (p, pl float64) {
	p = a * b
	return quickTwoSum(p, math.FMA(a, b, -p)+(a*bl+al*b))
}

// twoSum returns a + b as a double-double, exactly (Knuth).
func twoSum(a, b float64) (s, sl float64) {
	s = a + b
	v := s - a
	return s, (a - (s - v)) + (b - v)
}

// quickTwoSum is twoSum for |a| ≥ |b| or a = 0 (Dekker).
func quickTwoSum(a, b float64) (s, sl float64) {
	s = a + b
	return s, b - (s - a)
}
