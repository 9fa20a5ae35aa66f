package replay

import (
	"fmt"
	"math"
)

// ObsScale holds the running mean and deviation of every element of the observation. Learners subtract the one and
// divide by the other, so that fields of any unit reach a network on the same scale (Huang et al. 2022, "continuous 6
// and 7": normalisation and a clip). It accumulates in float64 and applies float32, which is what a policy needs
// later: see Numbers. It is not safe for concurrent use.
type ObsScale struct {
	ObsScaleState
	clip   float32
	shift  []float32 // Mean
	factor []float32 // 1/sqrt(variance + 1e-8)
}

// NewObsScale returns a scale that changes nothing until it has observed something. clip bounds the results to [-clip,
// clip]; 0 = no bound.
func NewObsScale(obsLen int, clip float64) *ObsScale {
	s := &ObsScale{
		ObsScaleState: ObsScaleState{Mean: make([]float64, obsLen), M2: make([]float64, obsLen)},
		clip:          float32(clip), shift: make([]float32, obsLen), factor: make([]float32, obsLen),
	}
	s.refresh()
	return s
}

// Observe counts n observations in order of rows, one at a time (Chan, Golub and LeVeque 1979).
func (s *ObsScale) Observe(obs []float32, n int) {
	o := len(s.Mean)
	for i := range n {
		s.N++
		for k, x := range obs[i*o : (i+1)*o] {
			d := float64(x) - s.Mean[k]
			s.Mean[k] += d / s.N
			s.M2[k] += d * (float64(x) - s.Mean[k])
		}
	}
	s.refresh()
}

// Merge counts what other has observed as if s had observed it. If parts are merged in a fixed order, the result has
// the same bits however the parts were computed.
func (s *ObsScale) Merge(other *ObsScale) {
	if other.N == 0 {
		return
	}
	n := s.N + other.N
	for k, m := range other.Mean {
		d := m - s.Mean[k]
		s.Mean[k] += d * other.N / n
		s.M2[k] += other.M2[k] + d*d*s.N*other.N/n
	}
	s.N = n
	s.refresh()
}

func (s *ObsScale) refresh() {
	for k, m2 := range s.M2 {
		variance := 1.0
		if s.N > 0 {
			variance = m2 / s.N
		}
		s.shift[k], s.factor[k] = float32(s.Mean[k]), float32(1/math.Sqrt(variance+1e-8))
	}
}

// Apply sets dst to n observations, scaled. dst may be src. NaN remains NaN.
func (s *ObsScale) Apply(dst, src []float32, n int) {
	o, clip := len(s.shift), s.clip
	for i := range n {
		d, x := dst[i*o:(i+1)*o], src[i*o:(i+1)*o]
		for k := range d {
			y := (x[k] - s.shift[k]) * s.factor[k]
			if clip > 0 {
				y = min(max(y, -clip), clip)
			}
			d[k] = y
		}
	}
}

// Clip returns the bound of the results, 0 = none.
func (s *ObsScale) Clip() float32 { return s.clip }

// Numbers returns what Apply subtracts and multiplies by, each [ObsLen]. They are views, stored with a network's
// parameters.
func (s *ObsScale) Numbers() (mean, factor []float32) { return s.shift, s.factor }

// ObsScaleState is the saved form of an ObsScale; JSON keeps every bit.
type ObsScaleState struct {
	N    float64   `json:"n"`    // observations seen
	Mean []float64 `json:"mean"` // [ObsLen]
	M2   []float64 `json:"m2"`   // [ObsLen], sums of squared differences from the mean
}

// State returns the saved form of the scale. It is a view.
func (s *ObsScale) State() *ObsScaleState { return &s.ObsScaleState }

// Check reports whether t can be the state of a scale of s's length.
func (s *ObsScale) Check(t *ObsScaleState) error {
	if t == nil || len(t.Mean) != len(s.Mean) || len(t.M2) != len(s.M2) || !(t.N >= 0) {
		return fmt.Errorf("%w: an observation scale of another environment", ErrFormat)
	}
	for _, m2 := range t.M2 {
		if m2 < 0 {
			return fmt.Errorf("%w: an observation scale with squares %v", ErrFormat, m2)
		}
	}
	return nil
}

// Restore sets s to t, which must have passed Check.
func (s *ObsScale) Restore(t *ObsScaleState) {
	s.N = t.N
	copy(s.Mean, t.Mean)
	copy(s.M2, t.M2)
	s.refresh()
}
