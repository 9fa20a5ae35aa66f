package kernel

import "math"

// MaskedLogit stands in for the logits of illegal actions (Huang and Ontañón 2022, arXiv 2006.14171): large enough
// that their probability is exactly 0, small enough that differences stay finite in float32.
const MaskedLogit = -1e8

// LogSoftmax sets each row of dst [m, n] to the logarithm of the softmax of src's row, after replacing src by
// MaskedLogit where mask [m, n] is 0; a nil mask replaces nothing. The normaliser is computed from the replaced
// logits, so probabilities of the others sum to 1; a row without any legal action comes out uniform.
func LogSoftmax[T Float](dst, src, mask []T, m, n int) {
	if d, ok := f32(dst); ok {
		active.logSoftmax(d, as32(src), as32(mask), m, n)
		return
	}
	logSoftmax(dst, src, mask, m, n)
}

func logSoftmax[T Float](dst, src, mask []T, m, n int) {
	for i := 0; i < m; i++ {
		d, s := dst[i*n:(i+1)*n], src[i*n:(i+1)*n]
		copy(d, s)
		if mask != nil {
			for j, legal := range mask[i*n : (i+1)*n] {
				if legal == 0 {
					d[j] = MaskedLogit
				}
			}
		}
		top := d[0]
		for _, x := range d[1:] {
			top = max(top, x)
		}
		// Taking off the largest logit first keeps the digits of the rest, whatever its size.
		var sum T
		for j, x := range d {
			d[j] = x - top
			sum += exp(d[j])
		}
		norm := T(math.Log(float64(sum)))
		for j := range d {
			d[j] -= norm
		}
	}
}
