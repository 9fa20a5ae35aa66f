package op

import "clustergym/nets/kernel"

// Distribution is the form of a policy: independent discrete factors, each with a number of actions, and independent
// numbers from normal distributions. A network's head for it is [N, Head()]: the logits of all factors, factor by
// factor, then the means. The logarithms of the deviations are separate parameters and depend on no observation.
type Distribution struct {
	Sizes []int // actions of each factor
	Dims  int   // normal distributions
}

// Logits returns the number of logits of one observation, which is also the length of a mask.
func (d Distribution) Logits() int {
	n := 0
	for _, k := range d.Sizes {
		n += k
	}
	return n
}

// Head returns the number of outputs that a network has for one observation.
func (d Distribution) Head() int { return d.Logits() + d.Dims }

// LogProbs sets logp [n, Logits] to the logarithm of every action's probability within its factor, from the heads
// [n, Head] and the masks [n, Logits]. Factors are masked as in kernel.LogSoftmax.
func LogProbs[T kernel.Float](d Distribution, logp, head, mask []T, n int) {
	l, w := d.Logits(), d.Head()
	if len(d.Sizes) == 1 && d.Dims == 0 {
		kernel.LogSoftmax(logp[:n*l], head[:n*l], mask[:n*l], n, l)
		return
	}
	for i := range n {
		at := 0
		for _, k := range d.Sizes {
			from := i*l + at
			kernel.LogSoftmax(logp[from:from+k], head[i*w+at:i*w+at+k], mask[from:from+k], 1, k)
			at += k
		}
	}
}

const (
	halfLog2Pi  = 0.91893853320467274178 // ln(2π)/2
	halfLog2PiE = halfLog2Pi + 0.5       // entropy of the standard normal distribution
)

// Precisions sets dst to the reciprocals of the deviations whose logarithms are logStd.
func Precisions[T kernel.Float](dst, logStd []T) {
	for c, s := range logStd {
		dst[c] = -s
	}
	kernel.Exp(dst, dst[:len(logStd)])
}

// NormalLogProb returns the logarithm of the density of x under independent normal distributions with the given means,
// logarithms of deviations and Precisions, summed in order. It is not inlined, so acting and learning get the same
// bits.
//
//go:noinline
func NormalLogProb[T kernel.Float](x, mean, logStd, precision []T) T {
	var sum T
	for c, s := range logStd {
		z := (x[c] - mean[c]) * precision[c]
		sum += -z*z/2 - s - halfLog2Pi
	}
	return sum
}

// NormalEntropy returns the entropy of independent normal distributions.
func NormalEntropy[T kernel.Float](logStd []T) T {
	var sum T
	for _, s := range logStd {
		sum += s + halfLog2PiE
	}
	return sum
}
