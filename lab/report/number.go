package report

import "math"

// Number returns nil for NaN and infinities, which JSON cannot represent.
func Number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
