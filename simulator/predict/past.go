package predict

import "time"

// Past is what a predictor knows of the jobs that have something in common with another one.
type Past struct {
	// Ended is the number of those that have ended, as far as the predictor looks back; 0 = it knows none.
	Ended int32
	// Ratio is the median of their run times over the median of all jobs, which stands for the last ones alone; where
	// samples are shares of requested times, those are compared. 0 = not known.
	Ratio float64
}

// Historian is an ability that predictors may have.
type Historian interface {
	// Past returns what is known of the jobs of the same user as the job of this number, which has just been submitted
	// (Predict), and of those of the same virtual cluster and size.
	Past(number int) (user, vc Past)
}

// Left sets dst to the quantiles at Levels of the time that is left for a job that has run for ran, each at least 1 ns.
// Where run times beyond ran are not expected, as with equal quantiles, the time left is that of Outliving.
func (f *Forecast) Left(ran time.Duration, dst *[Quantiles]time.Duration) {
	if ran <= 0 {
		*dst = f.Q
		return
	}
	alive := f.Outlive(ran)
	least := time.Duration(1)
	for i, p := range Levels {
		q := ran
		if longer := alive * (1 - p); longer > 1e-9 { // a level that is told from 1
			q = f.Quantile(1 - longer)
		}
		if q <= ran {
			q = f.Outliving(ran)
		}
		least = max(least, q-ran)
		dst[i] = least
	}
}
