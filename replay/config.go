package replay

import (
	"fmt"

	"clustergym/env"
	"clustergym/internal/fault"
)

// Config sets what a buffer of transitions holds.
type Config struct {
	Capacity int     `yaml:"capacity"` // transitions; the newest replace the oldest
	NStep    int     `yaml:"n_step"`   // steps of an n-step return (Sutton, 1988); 1 = plain transitions
	Gamma    float64 `yaml:"gamma"`    // discount factor per env.Spec.Tau, or per step if Tau is 0
}

// Validate reports all faults of c at once.
func (c Config) Validate() error {
	var l fault.List
	l.Add(c.Capacity >= 1 && c.Capacity <= 1<<30, "capacity", c.Capacity, "a whole number from 1 to 2^30")
	l.Add(c.NStep >= 1 && c.NStep <= 1000, "n_step", c.NStep, "a whole number from 1 to 1000")
	l.Add(c.NStep <= c.Capacity, "n_step", c.NStep, fmt.Sprintf("at most the capacity, %d", c.Capacity))
	l.Add(c.Gamma >= 0 && c.Gamma <= 1, "gamma", c.Gamma, "a number in [0, 1]")
	return l.Err()
}

// checkBatches returns what is wrong with the lengths and rewards of one step of rows rows, or nil.
func checkBatches(s env.Spec, rows int, b *env.Batch, a *env.Actions, next *env.Batch) error {
	if b.N != rows || a.N != rows || next.N != rows {
		return fmt.Errorf("replay: got batches of %d and %d rows and %d actions, want %d of each", b.N, next.N, a.N, rows)
	}
	obs, mask := rows*s.ObsLen(), rows*s.MaskLen()
	if len(b.Obs) < obs || len(next.Obs) < obs || len(b.Mask) < mask || len(next.Mask) < mask ||
		len(a.Disc) < rows*len(s.Action.Sizes) || len(a.Cont) < rows*len(s.Action.Low) {
		return fmt.Errorf("replay: the columns of the batches are shorter than %s with %d rows asks for", s.ID, rows)
	}
	k := len(next.FinalRows)
	if len(next.FinalObs) < k*s.ObsLen() || len(next.FinalMask) != 0 && len(next.FinalMask) < k*s.MaskLen() {
		return fmt.Errorf("replay: %d final rows, but %d final observations and %d mask bits", k, len(next.FinalObs),
			len(next.FinalMask))
	}
	for j, i := range next.FinalRows {
		if i < 0 || i >= rows || j > 0 && i <= next.FinalRows[j-1] {
			return fmt.Errorf("replay: final rows %v are not ascending row numbers below %d", next.FinalRows, rows)
		}
	}
	for i := 0; i < rows; i++ {
		// NaN is the only number that differs from itself; the difference of infinities is NaN too.
		if r := next.Reward[i]; r-r != 0 {
			return fmt.Errorf("replay: row %d: reward is %v", i, r)
		}
	}
	return nil
}

// After returns row i's observation after a step, and its mask (nil if unknown). If the episode ended and the row
// began the next one, these are the final ones. Both are views of next. at walks along next.FinalRows: it starts at 0
// and is passed on from row to row, in ascending order.
func After(s env.Spec, next *env.Batch, i int, at *int) (obs []float32, mask []bool) {
	o, m := s.ObsLen(), s.MaskLen()
	for *at < len(next.FinalRows) && next.FinalRows[*at] < i {
		*at++
	}
	if j := *at; j < len(next.FinalRows) && next.FinalRows[j] == i {
		if len(next.FinalMask) > 0 {
			mask = next.FinalMask[j*m : (j+1)*m]
		}
		return next.FinalObs[j*o : (j+1)*o], mask
	}
	return next.Obs[i*o : (i+1)*o], next.Mask[i*m : (i+1)*m]
}

// discount returns the factor for the value after row i's transition: 0 exactly if the episode terminated.
func discount(s env.Spec, gamma float64, next *env.Batch, i int) float64 {
	if !next.Kind[i].Bootstrap() {
		return 0
	}
	return s.Discount(gamma, next.Elapsed[i])
}
