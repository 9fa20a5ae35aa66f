package layer

import (
	"math"
	"math/rand/v2"

	"clustergym/nets"
)

// Gains of orthogonal initialisation that are usual in deep reinforcement learning: sqrt 2 for hidden layers, 0.01
// for the policy's head (a nearly uniform policy), 1 for heads of values (Huang et al. 2022, "The 37 implementation
// details of PPO", detail 2).
const (
	GainHidden = math.Sqrt2
	GainPolicy = 0.01
	GainValue  = 1
)

// matrix returns the sizes of v as a matrix: the last dimension is the columns, all others are the rows.
func matrix(v *nets.View) (rows, cols int) {
	if len(v.Shape) == 0 {
		return 1, 1
	}
	cols = v.Shape[len(v.Shape)-1]
	return v.Size() / cols, cols
}

// Orthogonal fills v, as a matrix of rows × columns, with gain times a random matrix whose columns are orthonormal,
// or whose rows are if there are fewer rows (Saxe et al. 2014, arXiv 1312.6120). The matrix is the Q of a matrix of
// standard normal numbers, with signs such that R's diagonal is positive, which makes it uniform over such matrices
// (Mezzadri 2007, arXiv math-ph/0609050).
func Orthogonal(v *nets.View, gain float64, r *rand.Rand) {
	rows, cols := matrix(v)
	n, m := max(rows, cols), min(rows, cols) // m orthonormal vectors of length n
	q := make([]float64, m*n)                // one vector after the other
	for i := range q {
		q[i] = r.NormFloat64()
	}
	orthonormalise(q, n, m, r)
	for i := 0; i < rows; i++ {
		for j := 0; j < cols; j++ {
			x := 0.0
			if rows >= cols {
				x = q[j*n+i]
			} else {
				x = q[i*n+j]
			}
			v.Data[i*cols+j] = float32(gain * x)
		}
	}
}

// orthonormalise makes the m vectors of length n in q orthonormal by the Gram–Schmidt method. It repeats the
// projection for a vector that has lost most of its length, which is as exact as rounding allows (Giraud et al. 2005,
// "twice is enough"). Each vector keeps a positive product with its original, so no sign needs to be corrected.
func orthonormalise(q []float64, n, m int, r *rand.Rand) {
	for j := 0; j < m; j++ {
		v := q[j*n : (j+1)*n]
		before := dot(v, v)
		for {
			for k := 0; k < j; k++ {
				u := q[k*n : (k+1)*n]
				d := dot(u, v)
				for i, x := range u {
					v[i] -= d * x
				}
			}
			after := dot(v, v)
			if after > before/2 {
				scale := 1 / math.Sqrt(after)
				for i := range v {
					v[i] *= scale
				}
				break
			}
			before = after
			if after < 1e-20 { // nothing is left of it: draw it again; practically never
				for i := range v {
					v[i] = r.NormFloat64()
				}
				before = dot(v, v)
			}
		}
	}
}

// dot returns the product of a and b, computed in four interleaved sums.
func dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += x * b[i]
	}
	return s0 + s1 + s2 + s3
}

// Uniform fills v with numbers from [-bound, bound).
func Uniform(v *nets.View, bound float64, r *rand.Rand) {
	for i := range v.Data {
		v.Data[i] = float32(bound * (2*r.Float64() - 1))
	}
}

// FanIn fills v with uniform numbers of the bound 1/sqrt(inputs), PyTorch's default for dense and convolutional
// layers. The weight's inputs are all dimensions except the last.
func FanIn(v *nets.View, r *rand.Rand) {
	rows, _ := matrix(v)
	Uniform(v, 1/math.Sqrt(float64(rows)), r)
}

// Constant fills v with x: 0 for biases, 1 for the scales of layer norm.
func Constant(v *nets.View, x float32) {
	for i := range v.Data {
		v.Data[i] = x
	}
}
