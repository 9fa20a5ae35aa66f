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
	if v, ok := quickL(x); ok {
		return v
	}
	return slowL(x)
}

// slowL is L of a number above 0, by its definition.
func slowL(x float64) float32 { return float32(min(1, math.Log1p(x/minute)/lScale)) }

var lScale = math.Log1p(longest)

// C returns ln(1+k)/ln(1+m), clipped to [0, 1].
func C(k, m float64) float32 {
	if k <= 0 {
		return 0
	}
	return float32(min(1, math.Log1p(k)/math.Log1p(m)))
}

// logCount is C for numbers of things.
func logCount(k, m int) float32 {
	if k <= 0 {
		return 0
	}
	return float32(min(1, log1p(k)/log1p(m)))
}

func log1p(k int) float64 {
	if uint(k) < uint(len(logs)) {
		return logs[k]
	}
	return math.Log1p(float64(k))
}

// logs are the logarithms of 1+k.
var logs = func() (t [1025]float64) {
	for k := range t {
		t[k] = math.Log1p(float64(k))
	}
	return t
}()

// Axis is the time axis of an image of H = 20 rows: cell h of a bar of length x is
// clip((x−b_h)/(b_{h+1}−b_h), 0, 1).
type Axis struct {
	edge [rowCount + 1]float64 // b_h, nanoseconds

	// Eight intervals an octave from b_1 on, by the leading bits of a number, and the cell in which each begins.
	first uint64
	begin [octaves * perOctave]uint8
}

const (
	octaves     = 16 // at least log2(b_20/b_1)
	perOctave   = 8
	mantissaBit = 52 - 3 // of the lowest bit that tells intervals apart
)

// index fills in what Bar looks up.
func (a *Axis) index() *Axis {
	a.first = math.Float64bits(a.edge[1]) >> mantissaBit
	for k := range a.begin {
		from := math.Float64frombits((a.first + uint64(k)) << mantissaBit)
		for h := 1; h < rowCount && a.edge[h] <= from; h++ {
			a.begin[k] = uint8(h)
		}
	}
	return a
}

// LogAxis returns the axis with b_0 = 0 and b_h = 60 s · 20160^((h−1)/19): 1, 1.7, 2.8, 4.8 min … 8.3, 14 d.
func LogAxis() *Axis { return logAxis }

// logAxis never changes, so all encoders share it.
var logAxis = func() *Axis {
	a := new(Axis)
	for h := 1; h <= rowCount; h++ {
		a.edge[h] = minute * math.Pow(longest, float64(h-1)/(rowCount-1))
	}
	return a.index()
}()

// LinearAxis returns an axis with rows of equal length, like the image of TopDRL's precursor (241.5 s).
func LinearAxis(row time.Duration) *Axis {
	a := new(Axis)
	for h := range a.edge {
		a.edge[h] = float64(row) * float64(h)
	}
	return a.index()
}

// Bar returns the height in rows of a bar of x nanoseconds: the number of full cells, and the filled part of the next.
func (a *Axis) Bar(x float64) (full int, part float32) {
	f, part := a.bar(x)
	return int(f), part
}

func (a *Axis) bar(x float64) (full int32, part float32) {
	if !(x > 0) {
		return 0, 0
	}
	if x >= a.edge[rowCount] {
		return rowCount, 0
	}
	h := 0                                                                         // edge[h] <= x < edge[h+1]
	if k := math.Float64bits(x)>>mantissaBit - a.first; k < uint64(len(a.begin)) { // else it wraps around: x is below b_1
		h = int(a.begin[k])
	}
	for a.edge[h+1] <= x {
		h++
	}
	return int32(h), float32((x - a.edge[h]) / (a.edge[h+1] - a.edge[h]))
}
