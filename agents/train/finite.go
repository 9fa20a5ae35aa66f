package train

import (
	"fmt"

	"clustergym/env"
)

// checkFinite returns an error that names the first reward or observation of a step that is NaN or infinite. Learnt
// from, such a number would spoil every parameter, and be noticed far from its source.
func checkFinite(s env.Spec, b *env.Batch) error {
	for i, r := range b.Reward[:b.N] {
		if r-r != 0 {
			return fmt.Errorf("row %d: the reward is %v", i, r)
		}
	}
	o := s.ObsLen()
	if err := checkObs(s, b.Obs[:b.N*o], "observation", func(k int) int { return k }); err != nil {
		return err
	}
	return checkObs(s, b.FinalObs, "final observation", func(k int) int { return b.FinalRows[k] })
}

// checkObs checks whole observations; row returns the row of the k-th.
func checkObs(s env.Spec, obs []float32, what string, row func(k int) int) error {
	if finite(obs) {
		return nil
	}
	for at, x := range obs {
		if x-x == 0 {
			continue
		}
		k := at % s.ObsLen()
		for _, f := range s.Obs {
			if k < f.Len() {
				return fmt.Errorf("row %d: the %s %s[%d] is %v", row(at/s.ObsLen()), what, f.Name, k, x)
			}
			k -= f.Len()
		}
	}
	return nil
}

// finite reports whether all of x are finite. Zero times a finite number is zero, zero times any other is NaN, so a
// sum of products finds them. Four sums are faster than one, in which every addition would wait for the one before.
func finite(x []float32) bool {
	var a, b, c, d float32
	for ; len(x) >= 4; x = x[4:] {
		a += 0 * x[0]
		b += 0 * x[1]
		c += 0 * x[2]
		d += 0 * x[3]
	}
	for _, y := range x {
		a += 0 * y
	}
	return a+b+c+d == 0
}
