package predictors

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Forecast is what a predictor said of one job when it was submitted, beside what happened.
type Forecast struct {
	Job    string
	Submit time.Duration
	Work   time.Duration
	Q      [predict.Quantiles]time.Duration // at predict.Levels; all the same if the estimate is one number
	Seen   int
}

// collect simulates jobs, which are in order of submit, on the cluster under FIFO that skips, with the predictors of
// by, and returns the forecasts for those submitted at from or later whose run time is not 0. On the zero Spec every
// job starts when it is submitted. progress is told how many jobs have been submitted; nil = nobody is.
func collect(ctx context.Context, jobs []traces.Job, est sim.Estimates, by predict.Maker, on cluster.Spec,
	from time.Duration, progress func(jobs int)) ([]Forecast, error) {
	cfg := sim.DefaultConfig()
	cfg.Predictor = by
	if on.Pool == 0 && len(on.Racks) == 0 {
		on.Pool = 1 << 24 // the largest
	}
	s, err := sim.New(cfg, on)
	if err != nil {
		return nil, err
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		return nil, err
	}
	h := schedulers.DefaultConfig()
	h.Admission = "skip"
	sch, err := schedulers.New(h)
	if err != nil {
		return nil, err
	}
	c := &collector{est: est, from: from, progress: progress}
	err = sim.Run(ctx, s, sch, c)
	return c.all, err
}

type collector struct {
	est      sim.Estimates
	from     time.Duration
	all      []Forecast
	seen     int
	progress func(jobs int)
}

func (c *collector) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		e := &p.Events[i]
		if e.Kind != sim.Submit {
			continue
		}
		if c.seen++; c.progress != nil && c.seen%1024 == 0 {
			c.progress(c.seen)
		}
		j := v.Trace(e.Job)
		if j.Submit < c.from || j.Work <= 0 {
			continue
		}
		f := Forecast{Job: j.ID, Submit: j.Submit, Work: j.Work}
		if c.est.Causal() {
			of := v.Forecast(e.Job)
			f.Q, f.Seen = of.Q, int(of.Seen)
		} else {
			if err := c.est.Check(v, e.Job); err != nil {
				return err
			}
			for k := range f.Q {
				f.Q[k] = c.est.OfJob(j)
			}
		}
		c.all = append(c.all, f)
	}
	return nil
}

// Quality is how well forecasts agree with run times. There is no mean of |error|/run time: it is ruled by jobs that
// were killed after seconds, and rewards forecasting too little for all others.
type Quality struct {
	Jobs     int     `json:"jobs"`
	Spearman float64 `json:"spearman"` // rank correlation of forecast medians and run times
	// share of the pairs of jobs of different run times in the right order; half for equal forecasts
	Pairs    float64 `json:"pairs"`
	LogError float64 `json:"mean_log_error"` // mean |ln(forecast median / run time)|
	// The 95 % intervals of these (Intervals); nil = unknown.
	SpearmanCI *[2]float64 `json:"spearman_ci,omitempty"`
	PairsCI    *[2]float64 `json:"pairs_ci,omitempty"`
	LogErrorCI *[2]float64 `json:"mean_log_error_ci,omitempty"`
	// Below are the shares of run times that did not exceed the quantiles: predict.Levels for a calibrated predictor.
	Below [predict.Quantiles]float64 `json:"below"`
	// Width is the mean of ln(last quantile / first).
	Width float64 `json:"log_width"`
}

// Measure returns the quality of forecasts, which are in order of submit.
func Measure(all []Forecast) Quality {
	q := Quality{Jobs: len(all)}
	if len(all) == 0 {
		return q
	}
	x, y := make([]float64, len(all)), make([]float64, len(all))
	for i := range all {
		f := &all[i]
		x[i], y[i] = float64(f.Q[predict.Quantiles/2]), float64(f.Work)
		q.LogError += f.logError()
		for k := range f.Q {
			if f.Work <= f.Q[k] {
				q.Below[k]++
			}
		}
		q.Width += math.Log(float64(f.Q[predict.Quantiles-1]) / float64(max(1, f.Q[0])))
	}
	n := float64(len(all))
	q.LogError /= n
	q.Width /= n
	for k := range q.Below {
		q.Below[k] /= n
	}
	q.Spearman = correlation(ranks(x), ranks(y))
	q.Pairs = concordance(x, y)
	return q
}

// logError returns |ln(median / run time)|.
func (f *Forecast) logError() float64 {
	return math.Abs(math.Log(max(1, float64(f.Q[predict.Quantiles/2])) / float64(f.Work)))
}

// ties calls do with the places of equal values of x, in ascending order of the values. first is how many values are
// less.
func ties(x []float64, do func(first int, equal []int)) {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	for i := 0; i < len(order); {
		k := i
		for k < len(order) && x[order[k]] == x[order[i]] {
			k++
		}
		do(i, order[i:k])
		i = k
	}
}

// ranks returns the ranks of x; equal values share the mean of theirs.
func ranks(x []float64) []float64 {
	r := make([]float64, len(x))
	ties(x, func(first int, equal []int) {
		for _, j := range equal {
			r[j] = float64(2*first+len(equal)-1) / 2
		}
	})
	return r
}

// correlation returns Pearson's correlation of x and y, 0 if either is constant.
func correlation(x, y []float64) float64 {
	n := float64(len(x))
	var mx, my float64
	for i := range x {
		mx += x[i] / n
		my += y[i] / n
	}
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}

// concordance returns the share of the pairs with different y that x puts in the same order, where equal x count half;
// 1/2 if there are no such pairs.
func concordance(x, y []float64) float64 {
	right, pairs := concordant(x, y)
	if pairs == 0 {
		return 0.5
	}
	return right / pairs
}

// concordant returns how many pairs x puts in the right order, and the pairs with different y. It counts with a Fenwick
// tree over the ranks of x.
func concordant(x, y []float64) (right, pairs float64) {
	values := slices.Clone(x)
	slices.Sort(values)
	values = slices.Compact(values)
	tree := make([]int, len(values)+1)
	upTo := func(i int) (n int) {
		for ; i > 0; i &= i - 1 {
			n += tree[i]
		}
		return n
	}
	ties(y, func(seen int, equal []int) {
		for _, j := range equal { // against all of smaller y
			at, _ := slices.BinarySearch(values, x[j])
			less, same := upTo(at), upTo(at+1)-upTo(at)
			right += float64(less) + float64(same)/2
			pairs += float64(seen)
		}
		for _, j := range equal {
			at, _ := slices.BinarySearch(values, x[j])
			for t := at + 1; t < len(tree); t += t & -t {
				tree[t]++
			}
		}
	})
	return right, pairs
}
