package kernel

import (
	"math"
	"unsafe"
)

// Exp sets dst[i] = e^src[i]. dst may be src. float32 results are within 2 units in the last place; results
// below the smallest normal number are 0.
func Exp[T Float](dst, src []T) {
	inUse[T]().exp(dst, src)
}

func expAll[T Float](dst, src []T) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = exp(x)
	}
}

// exp and tanh select by the size of T, which is a constant in each instance.
func exp[T Float](x T) T {
	if unsafe.Sizeof(x) == 4 {
		return T(exp32(float32(x)))
	}
	return T(math.Exp(float64(x)))
}

func tanh[T Float](x T) T {
	if unsafe.Sizeof(x) == 4 {
		return T(tanh32(float32(x)))
	}
	return T(math.Tanh(float64(x)))
}

// exp32 splits x into n·ln 2 + r with |r| ≤ ln 2 / 2, using ln 2 in two parts so that n·ln 2 is exact, and
// approximates e^r by the polynomial of Cephes' expf (Moshier 1989).
func exp32(x float32) float32 {
	const (
		log2e = 1.44269504088896341
		hi    = 0.693359375 // ten bits of ln 2
		lo    = -2.12194440e-4
		round = 3 << 22 // adding it leaves the nearest integer in the low bits
		tiny  = -87.3365
		huge  = 88.7228
	)
	if !(x > tiny) {
		if x != x {
			return x
		}
		return 0
	}
	if x > huge {
		return float32(math.Inf(1))
	}
	t := float32(x*log2e) + round
	n := int32(math.Float32bits(t)) - int32(math.Float32bits(round))
	f := t - round
	r := x - f*hi - f*lo
	p := float32(1.9875691500e-4)
	p = p*r + 1.3981999507e-3
	p = p*r + 8.3334519073e-3
	p = p*r + 4.1665795894e-2
	p = p*r + 1.6666665459e-1
	p = p*r + 5.0000001201e-1
	p = p*r*r + r + 1
	if n > 127 { // 2^128 is not a float32
		p, n = 2*p, n-1
	}
	return p * math.Float32frombits(uint32(n+127)<<23)
}

// tanh32 is the quotient of an odd polynomial of degree 13 and an even one of degree 6, with Eigen's minimax
// coefficients: within 8 units in the last place everywhere. Beyond ±7.9 the nearest float32 is ±1.
func tanh32(x float32) float32 {
	const limit = 7.90531110763549805
	x = min(max(x, -limit), limit)
	z := x * x
	p := float32(-2.76076847742355e-16)
	p = p*z + 2.00018790482477e-13
	p = p*z - 8.60467152213735e-11
	p = p*z + 5.12229709037114e-08
	p = p*z + 1.48572235717979e-05
	p = p*z + 6.37261928875436e-04
	p = p*z + 4.89352455891786e-03
	q := float32(1.19825839466702e-06)
	q = q*z + 1.18534705686654e-04
	q = q*z + 2.26843463243900e-03
	q = q*z + 4.89352518554385e-03
	return x * p / q
}

func sqrt[T Float](x T) T { return T(math.Sqrt(float64(x))) }
