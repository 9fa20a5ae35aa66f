package schedulers_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/internal/rng"
	"clustergym/internal/testseed"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// oracle makes predictors that look at the run time. They say quantiles, in nanoseconds, and learn nothing.
type oracle struct {
	name string
	says func(j *traces.Job) [predict.Quantiles]float64
}

func (o oracle) New() predict.Predictor { return o }
func (o oracle) String() string         { return o.name }

func (oracle) Reset(time.Duration)                              {}
func (oracle) Started(time.Duration, int)                       {}
func (oracle) Stopped(_ time.Duration, _ int, _ time.Duration)  {}
func (oracle) Finished(_ time.Duration, _ int, _ time.Duration) {}
func (oracle) Dropped(time.Duration, int)                       {}
func (oracle) AppendSnapshot(dst []byte) []byte                 { return dst }
func (oracle) RestoreSnapshot([]byte) error                     { return nil }
func (o oracle) Predict(_ time.Duration, _ int, j *traces.Job) predict.Forecast {
	q := o.says(j)
	return predict.Of(&q, 1)
}

// times makes predictors that say the same multiple of every run time.
func times(x float64) oracle {
	return oracle{fmt.Sprint("×", x), func(j *traces.Job) (q [predict.Quantiles]float64) {
		for i := range q {
			q[i] = float64(j.Work) * x
		}
		return q
	}}
}

// always makes predictors that say the same of all jobs.
func always(d time.Duration) oracle {
	return oracle{"always " + d.String(), func(*traces.Job) (q [predict.Quantiles]float64) {
		for i := range q {
			q[i] = float64(d)
		}
		return q
	}}
}

// scattered makes predictors whose quantiles are multiples of the run time, drawn for each job from least to most.
func scattered(least, most float64) oracle {
	return oracle{fmt.Sprint("×", least, "…", most), func(j *traces.Job) (q [predict.Quantiles]float64) {
		r := rand.New(rand.NewPCG(rng.Hash(j.ID), 1))
		for i := range q {
			q[i] = float64(j.Work) * (least + (most-least)*r.Float64())
		}
		slices.Sort(q[:])
		return q
	}}
}

// busy8 draws jobs that overload eight GPUs.
func busy8(r *rand.Rand) []traces.Job {
	jobs := make([]traces.Job, 80)
	at := time.Duration(0)
	for i := range jobs {
		at += time.Duration(r.IntN(60)) * time.Second
		jobs[i] = traces.Job{ID: fmt.Sprint("j", i), Submit: at, Work: time.Duration(1+r.IntN(20)*r.IntN(20)) * time.Second,
			GPUs: 1 + r.IntN(8), GPUMilli: 1000}
	}
	return jobs
}

// newPolicy returns the policy of cfg.
func newPolicy(t *testing.T, cfg schedulers.Config) schedulers.Policy {
	t.Helper()
	h, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// played runs jobs on eight GPUs.
func played(t *testing.T, h sim.Scheduler, by predict.Maker, jobs []traces.Job, observers ...sim.Observer) {
	t.Helper()
	sc := sim.DefaultConfig()
	sc.Predictor = by
	s, err := sim.New(sc, cluster.Spec{Pool: 8})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	if err := sim.Run(context.Background(), s, h, observers...); err != nil {
		t.Fatal(err)
	}
}

// momentsOf plays jobs and returns when they start and stop.
func momentsOf(t *testing.T, cfg schedulers.Config, by predict.Maker, jobs []traces.Job) (m moments) {
	t.Helper()
	played(t, newPolicy(t, cfg), by, jobs, &m)
	return m
}

// With forecasts that are the run times, every policy that reads one number of them decides as with exact estimates.
func TestForecastsThatAreRightAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Or(47), 1))
	for range 5 {
		jobs := busy8(r)
		for _, order := range schedulers.Orders() {
			if !schedulers.IsOrder(order) || !schedulers.Estimating(order) && order != "fifo" || order == "gittins" ||
				order == "qssf" || order == "index" {
				continue
			}
			for _, fill := range []string{"none", "easy", "conservative"} {
				cfg := schedulers.DefaultConfig()
				if cfg.Order, cfg.Backfill = order, fill; fill != "none" {
					cfg.Admission = "strict"
				}
				if cfg.Validate() != nil {
					continue
				}
				want := momentsOf(t, cfg, nil, jobs)
				cfg.Estimates = sim.MustEstimates("history")
				if got := momentsOf(t, cfg, times(1), jobs); !slices.Equal(got, want) {
					t.Errorf("%s with %s: forecasts that are right decide otherwise than exact estimates", order, fill)
				}
			}
		}
	}
}

// What back-filling promises holds under forecasts that are never too short: the first in line starts no later than it
// would if nobody were let past it. Under forecasts that are too short it need not.
func TestBackfillingKeepsItsPromiseUnderLongForecasts(t *testing.T) {
	seed := testseed.Or(53)
	for _, way := range []how{{"strict", "easy"}, {"strict", "conservative"}, {"commit", "easy"}} {
		t.Run(way.String(), func(t *testing.T) {
			cfg := schedulers.DefaultConfig()
			cfg.Admission, cfg.Backfill, cfg.Estimates = way.admission, way.backfill, sim.MustEstimates("history")
			past := 0
			for _, c := range []struct {
				by    oracle
				short bool
			}{
				// 400 s is the longest run
				{times(1), false}, {times(3), false}, {always(400 * time.Second), false}, {scattered(1, 5), false},
				{times(0.2), true}, {always(time.Nanosecond), true}, {scattered(0, 1.5), true},
			} {
				broken := ""
				for k := range uint64(20) {
					p := &promises{Scheduler: newPolicy(t, cfg), by: map[sim.Job]time.Duration{}}
					played(t, p, c.by, busy8(rand.New(rand.NewPCG(seed, k))))
					if p.broken != "" {
						broken = fmt.Sprintf("drawn world %d: %s", k, p.broken)
					}
					if !c.short {
						past += p.past
					}
				}
				if (broken != "") != c.short { // otherwise the test shows nothing
					t.Errorf("forecasts %s are too short: %v; broken promise: %q", c.by.name, c.short, broken)
				}
			}
			if past < 100 {
				t.Errorf("%d times a job was let past another: the test shows nothing", past)
			}
		})
	}
}

// Eight GPUs: A holds five until 100 though it is forecast to end at 5, B one until 50. At 10 the head H wants seven. A
// has run for 10 and is forecast to end at 20, the shadow time. At 11 C is forecast to end at 19, D at 23, and there is
// room for one of them: C starts. It ends at 20, when A is forecast to end at 40: EASY and conservative back-filling
// now let D past H, and commit, which computes the shadow time once, does not.
func TestOverdueJobsByHand(t *testing.T) {
	job := func(id string, submit, work, forecast time.Duration, n int) traces.Job {
		j := whole(id, submit*second, work*second, n)
		j.Estimate = forecast * second
		return j
	}
	jobs := []traces.Job{job("A", 0, 100, 5, 5), job("B", 0, 50, 50, 1), job("H", 10, 10, 10, 7), job("C", 11, 9, 8, 2),
		job("D", 11, 12, 12, 2)}
	forecasts := oracle{"estimates", func(j *traces.Job) (q [predict.Quantiles]float64) {
		for i := range q {
			q[i] = float64(j.Estimate)
		}
		return q
	}}
	for way, want := range map[how]string{
		{"strict", "easy"}:         "A0s B0s C11s D20s H1m40s",
		{"strict", "conservative"}: "A0s B0s C11s D20s H1m40s",
		{"commit", "easy"}:         "A0s B0s C11s H1m40s D1m50s",
	} {
		cfg := schedulers.DefaultConfig()
		cfg.Admission, cfg.Backfill, cfg.Estimates = way.admission, way.backfill, sim.MustEstimates("history")
		var l log
		if played(t, newPolicy(t, cfg), forecasts, jobs, &l); startTimes(l.b.String()) != want {
			t.Errorf("%s: got %s, want %s", way, startTimes(l.b.String()), want)
		}
	}
}

// Under forecasts that are all too short every job is served, and no policy looks again and again for the ends of jobs
// that are overdue.
func TestJobsThatOutliveForecastsAreServed(t *testing.T) {
	jobs := busy8(rand.New(rand.NewPCG(testseed.Or(59), 1)))
	for _, order := range schedulers.Orders() {
		if order == "exact" {
			continue // it reads no forecasts
		}
		for _, way := range ways(order) {
			cfg := schedulers.DefaultConfig()
			cfg.Order, cfg.Admission, cfg.Backfill, cfg.Estimates = order, way.admission, way.backfill,
				sim.MustEstimates("history")
			var right points
			h := newPolicy(t, cfg)
			played(t, h, times(1), jobs, &right)
			for _, by := range []oracle{times(0.1), scattered(0, 0.5), always(time.Nanosecond)} {
				var n points
				if played(t, h, by, jobs, &n); n.finished != len(jobs) {
					t.Errorf("%s %s, forecasts %s: %d of %d jobs finish", order, way, by.name, n.finished, len(jobs))
				}
				if n.all > 2*right.all {
					t.Errorf("%s %s, forecasts %s: %d points, %d with forecasts that are right", order, way, by.name, n.all, right.all)
				}
			}
		}
	}
}

// points counts points and jobs that finish.
type points struct{ all, finished int }

func (n *points) Observe(_ *sim.View, p *sim.Point) error {
	n.all++
	for i := range p.Events {
		if p.Events[i].Kind == sim.Finish {
			n.finished++
		}
	}
	return nil
}

// promises notes, for each job when it becomes the first in line, when enough GPUs would be free for it if no other job
// started, by the forecasts of that moment; and whether it has started by then. Jobs that end early later on promise
// more, but a policy that computes the shadow time once need not keep that.
type promises struct {
	sim.Scheduler
	by     map[sim.Job]time.Duration
	past   int
	broken string
}

func (p *promises) Decide(v *sim.View, at *sim.Point, d *sim.Decision) error {
	if err := p.Scheduler.Decide(v, at, d); err != nil {
		return err
	}
	first := sim.Job(-1)
	for _, j := range v.Waiting() {
		if first < 0 || v.Pos(j) < v.Pos(first) {
			first = j
		}
	}
	switch end, promised := p.by[d.Job]; {
	case d.Op == sim.StartJob:
		if promised && v.Now() > end && p.broken == "" {
			p.broken = fmt.Sprintf("job %s was promised a start by %v and starts at %v", v.Trace(d.Job).ID, end, v.Now())
		}
		delete(p.by, d.Job)
		if d.Job != first {
			p.past++
		}
	case first >= 0:
		if _, promised := p.by[first]; !promised {
			p.by[first] = p.promise(v, first)
		}
	}
	return nil
}

// promise returns when, by forecasts, enough is free for j.
func (p *promises) promise(v *sim.View, j sim.Job) time.Duration {
	running := slices.Clone(v.Running())
	end := func(j sim.Job) time.Duration { return v.Started(j) + v.Forecast(j).Median() }
	slices.SortFunc(running, func(a, b sim.Job) int { return cmp.Compare(end(a), end(b)) })
	free, when := v.Cluster().Free(), v.Now()
	for _, k := range running {
		if free >= v.Request(j).GPUs {
			break
		}
		free, when = free+v.Request(k).GPUs, end(k)
	}
	return when
}
