package sim

import "math/bits"

// gpuTime is GPU-time in thousandths of a GPU × nanoseconds, exact: 2^24 GPUs for 290 years take 93 bits.
type gpuTime struct{ hi, lo uint64 }

// add adds milli thousandths of GPUs for ns nanoseconds; neither may be negative.
func (t *gpuTime) add(milli int, ns int64) {
	hi, lo := bits.Mul64(uint64(milli), uint64(ns))
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, lo, 0)
	t.hi, _ = bits.Add64(t.hi, hi, carry)
}

// float returns t in GPUs × nanoseconds, exactly if that is a whole number up to 2^53.
func (t gpuTime) float() float64 {
	if t.hi >= 1000 { // more than one division can hold; single nanoseconds do not matter there
		return (float64(t.hi)*(1<<32)*(1<<32) + float64(t.lo)) / 1000
	}
	q, r := bits.Div64(t.hi, t.lo, 1000)
	return float64(q) + float64(r)/1000
}
