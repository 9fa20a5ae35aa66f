package encode

import (
	"math"
	"time"
)

const (
	minute   = float64(time.Minute)
	longest  = 14 * 24 * 60 // minutes in 14 days, which covers 99.9 % of Philly's jobs
	rowCount = 20           // H, rows of an image
)

// L returns ln(1+x/60 s) / ln(1+14 d/60 s), clipped to [0, 1]; x is in nanoseconds.
func L(x float64) float32 {
	if x <= 0 {
		return 0
	}
	return float32(min(1, math.Log1p(x/minute)/lScale))
}

var lScale = math.Log1p(longest)

// C returns ln(1+k)/ln(1+m), clipped to [0, 1].
func C(k, m float64) float32 {
	if k <= 0 {
		return 0
	}
	return float32(min(1, math.Log1p(k)/math.Log1p(m)))
}

// Axis is the time axis of an image of H = 20 rows: cell h of a bar of length x is
// clip((x−b_h)/(b_{h+1}−b_h), 0, 1).
type Axis struct{ edge [rowCount + 1]float64 } // b_h, nanoseconds

// LogAxis returns the axis with b_0 = 0 and b_h = 60 s · 20160^((h−1)/19): 1, 1.7, 2.8, 4.8 min … 8.3, 14 d.
func LogAxis() *Axis {
	a := new(Axis)
	for h := 1; h <= rowCount; h++ {
		a.edge[h] = minute * math.Pow(longest, float64(h-1)/(rowCount-1))
	}
	return a
}

// LinearAxis returns an axis with rows of equal length, like the image of TopDRL's precursor (241.5 s).
func LinearAxis(row time.Duration) *Axis {
	a := new(Axis)
	for h := range a.edge {
		a.edge[h] = float64(row) * float64(h)
	}
	return a
}

// Bar returns the height in rows of a bar of x nanoseconds: the number of full cells, and the filled part of the next.
func (a *Axis) Bar(x float64) (full int, part float32) {
	if !(x > 0) {
		return 0, 0
	}
	if x >= a.edge[rowCount] {
		return rowCount, 0
	}
	lo, hi := 0, rowCount // edge[lo] <= x < edge[hi]
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; a.edge[mid] <= x {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, float32((x - a.edge[lo]) / (a.edge[lo+1] - a.edge[lo]))
}
