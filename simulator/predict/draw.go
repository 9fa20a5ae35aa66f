package predict

import (
	"math"
	"time"
)

// Certain returns the forecast of a job whose run time is known.
func Certain(d time.Duration) Forecast {
	f := Forecast{Seen: math.MaxInt32}
	for i := range f.Q {
		f.Q[i] = min(max(d, 1), capped(math.Inf(1)))
	}
	return f
}

// Draw returns the run time that a share u, from 0 to below 1, of the jobs that have run for ran do not outlive. With u
// drawn evenly it is a sample of the run time of such a job. It is always more than ran. Where run times beyond ran are
// not expected, as with equal quantiles, half of such jobs run for twice as long, and one in n for n times as long.
func (f *Forecast) Draw(u float64, ran time.Duration) time.Duration {
	if f.Q[0] == f.Q[Quantiles-1] && ran < f.Q[0] {
		return f.Q[0] // certain
	}
	ran = max(0, ran)
	t := ran
	if longer := f.Outlive(ran) * (1 - u); longer > 1e-9 { // a level that is told from 1
		t = f.Quantile(1 - longer)
	}
	if t <= ran {
		t = max(ran+1, capped(float64(ran)/(1-u)))
	}
	return t
}
