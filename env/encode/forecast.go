package encode

import (
	"math"
	"time"

	"clustergym/env/sched"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
)

// The numbers that Forecasts writes for a job.
const (
	fcQuantiles = 0
	fcCertainty = predict.Quantiles + iota - 1
	fcUserEnded
	fcUserRatio
	fcVCEnded
	fcVCRatio
	fcUserRunning
	fcUserWaiting
	fcVCRunning
	fcVCWaiting
	// ForecastLen is how many there are.
	ForecastLen
	// Those before this one are known at the submit.
	fcKnown = fcUserRunning
)

// The largest numbers of the logarithmic scales.
const (
	mostSeen    = 32 // jobs from which quantiles come: history has up to 30
	mostEnded   = 32 // jobs of a user
	mostWaiting = 1024
	widestRatio = 1000 // of medians
)

// Forecasts writes what is forecast of single jobs, and what is known of their users and virtual clusters. It follows
// one environment's runs: Reset begins a run, Learn is called once for each job that arrives, and Count before a new
// time step is encoded. It does not allocate in steady state. All numbers are in [0, 1], and 0 where nothing is known.
type Forecasts struct {
	causal bool
	gpus   float64 // of the cluster
	jobs   []foreseen
	users  groups
	vcs    groups
	most   float32                  // ln(1+k) of the running jobs that are the value 1
	logs   [mostWaiting + 1]float32 // ln(1+k)
	mass   [rowCount + 1]float64    // scratch of Held
}

// foreseen is what is known of a job.
type foreseen struct {
	known    [fcKnown]float32
	estimate time.Duration // where it is not causal
	user, vc int32         // among the groups, -1 = the trace does not say
}

// groups are jobs in the system by what they have in common.
type groups struct {
	number map[string]int32
	count  []count
	none   count // of jobs whose trace does not say
}

type count struct{ running, waiting int32 }

// of returns the number of the group called name, -1 for "".
func (g *groups) of(name string) int32 {
	if name == "" {
		return -1
	}
	k, ok := g.number[name]
	if !ok {
		k = int32(len(g.count))
		g.number[name] = k
		g.count = append(g.count, count{})
	}
	return k
}

func (g *groups) reset() {
	clear(g.number)
	g.count = g.count[:0]
}

// at returns the count of group k.
func (g *groups) at(k int32) *count {
	if k < 0 {
		return &g.none
	}
	return &g.count[k]
}

// NewForecasts returns Forecasts for a cluster of gpus GPUs where run times are estimated by est.
func NewForecasts(est sim.Estimates, gpus int) *Forecasts {
	f := &Forecasts{causal: est.Causal(), gpus: float64(gpus)}
	f.most = float32(math.Log1p(float64(min(gpus, mostWaiting))))
	f.users.number, f.vcs.number = map[string]int32{}, map[string]int32{}
	for k := range f.logs {
		f.logs[k] = float32(math.Log1p(float64(k)))
	}
	return f
}

// ForecastsOf returns NewForecasts if shown says that observations have them, nil if not.
func ForecastsOf(shown sched.Forecast, est sim.Estimates, gpus int) *Forecasts {
	if !shown.Shown(est) {
		return nil
	}
	return NewForecasts(est, gpus)
}

// Reset begins a run. Of nil it does nothing.
func (f *Forecasts) Reset() {
	if f == nil {
		return
	}
	f.users.reset()
	f.vcs.reset()
}

// Learn takes in a job that has just arrived. estimate is what is known of its run time, 0 = nothing. Of nil it does
// nothing.
func (f *Forecasts) Learn(v *sim.View, j sim.Job, estimate time.Duration) {
	if f == nil {
		return
	}
	for int(j) >= len(f.jobs) {
		f.jobs = append(f.jobs, foreseen{})
	}
	t := v.Trace(j)
	k := foreseen{estimate: estimate, user: f.users.of(t.User), vc: f.vcs.of(t.VC)}
	if f.causal {
		g := v.Forecast(j)
		for i, q := range g.Q {
			k.known[fcQuantiles+i] = L(float64(q))
		}
		k.known[fcCertainty] = C(float64(g.Seen), mostSeen)
	} else if estimate > 0 {
		for i := range predict.Quantiles {
			k.known[fcQuantiles+i] = L(float64(estimate))
		}
		k.known[fcCertainty] = 1
	}
	user, vc := v.Past(j)
	k.known[fcUserEnded], k.known[fcUserRatio] = pastOf(user)
	k.known[fcVCEnded], k.known[fcVCRatio] = pastOf(vc)
	f.jobs[j] = k
}

func pastOf(p predict.Past) (ended, ratio float32) {
	if p.Ratio > 0 {
		ratio = float32(min(1, max(0, 0.5+math.Log(p.Ratio)/(2*math.Log(widestRatio)))))
	}
	return C(float64(p.Ended), mostEnded), ratio
}

// Count counts the jobs that run and wait now by user and virtual cluster.
func (f *Forecasts) Count(v *sim.View) {
	clear(f.users.count)
	clear(f.vcs.count)
	for _, j := range v.Running() {
		k := &f.jobs[j]
		f.users.at(k.user).running++
		f.vcs.at(k.vc).running++
	}
	for _, j := range v.Waiting() {
		k := &f.jobs[j]
		f.users.at(k.user).waiting++
		f.vcs.at(k.vc).waiting++
	}
}

// Encode writes the ForecastLen numbers of j, as of the last Count.
func (f *Forecasts) Encode(dst []float32, v *sim.View, j sim.Job) {
	k := &f.jobs[j]
	copy(dst, k.known[:])
	if ran := v.Ran(j); ran > 0 && (f.causal || k.estimate > 0) {
		f.left(dst, v, j, ran)
	}
	dst[fcUserRunning], dst[fcUserWaiting] = f.now(&f.users, k.user)
	dst[fcVCRunning], dst[fcVCWaiting] = f.now(&f.vcs, k.vc)
}

// left writes the quantiles of a job that has run for ran.
func (f *Forecasts) left(dst []float32, v *sim.View, j sim.Job, ran time.Duration) {
	var q [predict.Quantiles]time.Duration
	if f.causal {
		v.Forecast(j).Left(ran, &q)
	} else {
		for i := range q {
			q[i] = sim.Outlived(f.jobs[j].estimate, ran) - ran
		}
	}
	for i, x := range q {
		dst[fcQuantiles+i] = L(float64(x))
	}
}

// Sure sets the quantiles that Encode has written to the one value x, for an environment that knows better what is left
// of a job.
func (f *Forecasts) Sure(dst []float32, x float32) {
	for i := range predict.Quantiles {
		dst[fcQuantiles+i] = x
	}
}

func (f *Forecasts) now(g *groups, k int32) (running, waiting float32) {
	if k < 0 {
		return 0, 0
	}
	c := &g.count[k]
	return f.scaled(c.running, f.most), f.scaled(c.waiting, f.logs[mostWaiting])
}

// scaled is C(k, m), where most is ln(1+m).
func (f *Forecasts) scaled(k int32, most float32) float32 {
	return min(1, f.logs[min(k, mostWaiting)]/most)
}

// Mean writes the means of the ForecastLen numbers over the jobs that wait, zeros if none does.
func (f *Forecasts) Mean(dst []float32, v *sim.View) {
	clear(dst[:ForecastLen])
	var one [ForecastLen]float32
	var sum [ForecastLen]float64
	for _, j := range v.Waiting() {
		f.Encode(one[:], v, j)
		for i, x := range one {
			sum[i] += float64(x)
		}
	}
	if n := float64(len(v.Waiting())); n > 0 {
		for i, x := range sum {
			dst[i] = float32(min(1, x/n))
		}
	}
}

// weights are the shares of jobs that each of a forecast's quantiles stands for.
var weights = [predict.Quantiles]float64{0.175, 0.2, 0.25, 0.2, 0.175}

// HeldLen is the number of values that Held writes.
const HeldLen = rowCount

// Held writes, for each row of axis, the share of the cluster that the jobs that now run are expected to hold over it.
// The run time of a job is taken to be one of its quantiles that it has not outlived, and that of Outliving if there is
// none.
func (f *Forecasts) Held(dst []float32, v *sim.View, axis *Axis) {
	clear(dst[:HeldLen])
	clear(f.mass[:])
	for _, j := range v.Running() {
		k := &f.jobs[j]
		ran := v.Ran(j)
		n := float64(v.Request(j).GPUs*v.Request(j).Milli) / 1000 / f.gpus
		if !f.causal {
			if left := sim.Outlived(k.estimate, ran) - ran; left > 0 {
				f.hold(dst, axis, left, n)
			}
			continue
		}
		g := v.Forecast(j)
		alive := 0.0
		for i, q := range g.Q {
			if q > ran {
				alive += weights[i]
			}
		}
		if alive == 0 {
			f.hold(dst, axis, g.Outliving(ran)-ran, n)
			continue
		}
		for i, q := range g.Q {
			if q > ran {
				f.hold(dst, axis, q-ran, n*weights[i]/alive)
			}
		}
	}
	full := 0.0
	for h := HeldLen - 1; h >= 0; h-- {
		full += f.mass[h+1]
		dst[h] = float32(min(1, float64(dst[h])+full))
	}
}

// hold adds a bar of length left whose cells are n high.
func (f *Forecasts) hold(dst []float32, axis *Axis, left time.Duration, n float64) {
	full, part := axis.Bar(float64(left))
	f.mass[full] += n
	if full < HeldLen {
		dst[full] += part * float32(n)
	}
}

// ForecastDoc describes the numbers of a job in a field, after those that the field has in any case.
const ForecastDoc = "forecast (see below): L of 5 quantiles of the time left; certainty; ended jobs and median of " +
	"its user; of its virtual cluster; its user's jobs that run, that wait; its virtual cluster's"

// HeldDoc describes what Held writes.
const HeldDoc = "share of G that the jobs that run now are expected to hold over each row of the time axis, by their " +
	"forecasts"
