package maml

import (
	"fmt"
	"math"
	"slices"

	"clustergym/replay"
)

// wide is the length of an observation from which a baseline over it costs more time than it is worth.
const wide = 64

// baseline is a linear function of features, fitted to the discounted returns of a task's own episodes by least
// squares with a small penalty (Duan et al. 2016, arXiv 1604.06778, appendix 2). The features are the observation,
// the numbers of Info, the squares of both, time in the episode up to the third power, and a constant. Numbers are
// clipped to ±10; NaN counts as 0.
type baseline struct {
	obs, info int // elements used
	n         int // features

	x       []float64 // [N, n]
	returns []float64 // [N]
	value   []float64 // [N]
	a       []float64 // [n, n], normal equations
	b, w    []float64 // [n]
}

func newBaseline(kind string, obsLen, infos int) (*baseline, error) {
	v := &baseline{}
	switch kind {
	case "observation":
		if obsLen > wide {
			return nil, fmt.Errorf("maml: baseline observation over %d numbers, want at most %d; take info or time", obsLen,
				wide)
		}
		v.obs, v.info = obsLen, infos
	case "info":
		v.info = infos
	}
	v.n = 2*(v.obs+v.info) + 4
	v.a, v.b, v.w = make([]float64, v.n*v.n), make([]float64, v.n), make([]float64, v.n)
	return v, nil
}

// features fills x and returns.
func (v *baseline) features(e *replay.Episodes) {
	n, obsLen, infos := e.Len(), e.Spec().ObsLen(), len(e.Spec().Info)
	v.x = slices.Grow(v.x[:0], n*v.n)[:n*v.n]
	v.returns, v.value = slices.Grow(v.returns[:0], n)[:n], slices.Grow(v.value[:0], n)[:n]
	for k := range e.Episodes() {
		sum := 0.0
		for i := e.Start[k+1] - 1; i >= e.Start[k]; i-- {
			sum = e.Reward[i] + e.Discount[i]*sum
			v.returns[i] = sum
			row := v.x[i*v.n : (i+1)*v.n]
			at := 0
			put := func(z float64) {
				if z != z {
					z = 0
				}
				z = min(max(z, -10), 10)
				row[at], row[at+1] = z, z*z
				at += 2
			}
			for _, z := range e.Obs[i*obsLen : i*obsLen+v.obs] {
				put(float64(z))
			}
			for _, z := range e.Info[i*infos : i*infos+v.info] {
				put(z)
			}
			t := float64(i-e.Start[k]) / 100
			row[at], row[at+1], row[at+2], row[at+3] = t, t*t, t*t*t, 1
		}
	}
}

// fit finds the weights, with a penalty that grows until the equations can be solved.
func (v *baseline) fit(n int) error {
	k := v.n
	for penalty := 1e-5; penalty < 1e6; penalty *= 10 {
		clear(v.a)
		clear(v.b)
		for r := range n {
			row, y := v.x[r*k:(r+1)*k], v.returns[r]
			for i, a := range row {
				if a == 0 {
					continue
				}
				v.b[i] += a * y
				for j := range i + 1 {
					v.a[i*k+j] += a * row[j]
				}
			}
		}
		for i := range k {
			v.a[i*k+i] += penalty * float64(max(n, 1)) * 1e-3
		}
		if cholesky(v.a, v.b, v.w, k) {
			return nil
		}
	}
	return fmt.Errorf(
		"maml: the baseline over %d features of %d steps cannot be fitted: returns or observations are no numbers", k, n)
}

// cholesky solves a·w = b, a's lower half given, in place.
func cholesky(a, b, w []float64, n int) bool {
	for i := range n {
		for j := range i + 1 {
			sum := a[i*n+j]
			for k := range j {
				sum -= a[i*n+k] * a[j*n+k]
			}
			if i == j {
				if !(sum > 0) || math.IsInf(sum, 0) {
					return false
				}
				a[i*n+i] = math.Sqrt(sum)
			} else {
				a[i*n+j] = sum / a[j*n+j]
			}
		}
	}
	for i := range n {
		sum := b[i]
		for k := range i {
			sum -= a[i*n+k] * w[k]
		}
		w[i] = sum / a[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		sum := w[i]
		for k := i + 1; k < n; k++ {
			sum -= a[k*n+i] * w[k]
		}
		w[i] = sum / a[i*n+i]
		if w[i]-w[i] != 0 {
			return false
		}
	}
	return true
}

// advantages fits the baseline to e and fills e.Advantage by generalised advantage estimation over it (Schulman et
// al. 2016, arXiv 1506.02438, equation 16), minus the advantages' mean and divided by their deviation.
func (v *baseline) advantages(e *replay.Episodes, lambda float64) error {
	n := e.Len()
	v.features(e)
	if err := v.fit(n); err != nil {
		return err
	}
	for i := range n {
		sum := 0.0
		for j, x := range v.x[i*v.n : (i+1)*v.n] {
			sum += x * v.w[j]
		}
		v.value[i] = sum
	}
	for cap(e.Advantage) < n {
		e.Advantage = make([]float32, n)
	}
	e.Advantage = e.Advantage[:n]
	mean := 0.0
	for k := range e.Episodes() {
		sum, after := 0.0, 0.0
		for i := e.Start[k+1] - 1; i >= e.Start[k]; i-- {
			d := e.Discount[i]
			sum = e.Reward[i] + d*after - v.value[i] + d*lambda*sum
			after = v.value[i]
			v.returns[i] = sum // not needed any more
			mean += sum
		}
	}
	mean /= float64(n)
	squares := 0.0
	for _, a := range v.returns[:n] {
		squares += (a - mean) * (a - mean)
	}
	deviation := math.Sqrt(squares/float64(n)) + 1e-8
	for i, a := range v.returns[:n] {
		e.Advantage[i] = float32((a - mean) / deviation)
	}
	return nil
}
