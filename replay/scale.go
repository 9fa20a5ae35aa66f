package replay

import (
	"fmt"
	"math"

	"clustergym/env"
)

// moments are running mean and variance (Welford, 1962).
type moments struct {
	N    int64   `json:"n"`
	Mean float64 `json:"mean"`
	M2   float64 `json:"m2"` // sum of squared differences from the mean
}

func (m *moments) add(x float64) {
	m.N++
	d := x - m.Mean
	m.Mean += d / float64(m.N)
	m.M2 += d * (x - m.Mean)
}

func (m *moments) variance() float64 {
	if m.N == 0 {
		return 0
	}
	return m.M2 / float64(m.N)
}

// ReturnScale is the running standard deviation of the discounted return. Learners divide rewards by it, so that one
// learning rate fits environments of any unit (Engstrom et al. 2020, "Implementation Matters in Deep Policy
// Gradients", section 3; Huang et al. 2022, detail "reward scaling"). As there, the sum runs backwards, R ← d·R + r
// over a row's steps with d the step's own discount, and restarts with every episode.
//
// The fields are saved unchanged (JSON keeps every bit of a float64). It is not safe for concurrent use.
type ReturnScale struct {
	Sum   []float64 `json:"sum"` // [rows], R of the current episode
	Stats moments   `json:"stats"`
}

// NewReturnScale returns the scale of rows environments; it is 1 until something was observed.
func NewReturnScale(rows int) *ReturnScale { return &ReturnScale{Sum: make([]float64, rows)} }

// Observe counts one step of all rows; gamma is as in Config.
func (s *ReturnScale) Observe(spec env.Spec, gamma float64, next *env.Batch) {
	for i := range s.Sum {
		s.ObserveRow(i, next.Kind[i], next.Reward[i], spec.Discount(gamma, next.Elapsed[i]))
	}
}

// ObserveRow counts one step of row i alone. discount is the step's plain discount, whatever its kind: a termination
// does not discount the rewards that led to it to 0.
func (s *ReturnScale) ObserveRow(i int, kind env.Kind, reward, discount float64) {
	if kind == env.First {
		s.Sum[i] = 0
		return
	}
	s.Sum[i] = s.Sum[i]*discount + reward
	s.Stats.add(s.Sum[i])
	if kind.Last() {
		s.Sum[i] = 0
	}
}

// Scale returns the divisor for rewards. If returns do not vary, as in an environment that always pays the same, it is
// their size instead, and 1 if they are all 0.
func (s *ReturnScale) Scale() float64 {
	size := math.Sqrt(s.Stats.variance() + s.Stats.Mean*s.Stats.Mean)
	if size == 0 {
		return 1
	}
	if deviation := math.Sqrt(s.Stats.variance()); deviation > 1e-4*size {
		return deviation
	}
	return size
}

// Check reports whether s, read from outside, can be the scale of rows rows.
func (s *ReturnScale) Check(rows int) error {
	if len(s.Sum) != rows {
		return fmt.Errorf("%w: a return scale of %d rows, want %d", ErrFormat, len(s.Sum), rows)
	}
	if s.Stats.N < 0 || s.Stats.M2 < 0 {
		return fmt.Errorf("%w: a return scale with count %d and squares %v", ErrFormat, s.Stats.N, s.Stats.M2)
	}
	return nil
}
