package kernel

import "math"

// MaskedLogit replaces the logits of illegal actions (Huang and Ontañón 2022, arXiv 2006.14171). It is large enough
// that their probability is exactly 0, and small enough that differences stay finite in float32.
const MaskedLogit = -1e8

// LogSoftmax sets each row of dst [m, n] to the logarithm of the softmax of src's row, after replacing src by
// MaskedLogit where mask [m, n] is 0; a nil mask replaces nothing. The normaliser is computed from the replaced
// logits, so the probabilities of the legal actions sum to 1. A row without any legal action becomes uniform.
func LogSoftmax[T Float](dst, src, mask []T, m, n int) {
	inUse[T]().logSoftmax(dst, src, mask, m, n)
}

func logSoftmax[T Float](dst, src, mask []T, m, n int) {
	shifted(dst, src, mask, m, n)
	for i := 0; i < m; i++ {
		d := dst[i*n : (i+1)*n]
		var sum T
		for _, x := range d {
			sum += exp(x)
		}
		normalise(d, sum)
	}
}

// shifted sets dst to src after masking, minus each row's largest logit. This keeps the precision of the differences
// for logits of any size.
func shifted[T Float](dst, src, mask []T, m, n int) {
	copy(dst[:m*n], src)
	if mask != nil {
		for j, legal := range mask[:m*n] {
			if legal == 0 {
				dst[j] = MaskedLogit
			}
		}
	}
	for i := 0; i < m; i++ {
		d := dst[i*n : (i+1)*n]
		top := d[0]
		for _, x := range d[1:] {
			if x > top || x != x {
				top = x
			}
		}
		for j := range d {
			d[j] -= top
		}
	}
}

func normalise[T Float](x []T, sum T) {
	norm := T(math.Log(float64(sum)))
	for j := range x {
		x[j] -= norm
	}
}
