package heuristic_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/env/cluster"
	"clustergym/env/heuristic"
	"clustergym/env/predict"
	"clustergym/env/sim"
	"clustergym/internal/testseed"
	"clustergym/traces"
)

// oracle makes predictors that know a multiple of every run time.
type oracle struct{ times int }

func (o oracle) New() predict.Predictor { return o }
func (o oracle) String() string         { return fmt.Sprint("oracle ×", o.times) }

func (oracle) Reset(time.Duration)                              {}
func (oracle) Started(time.Duration, int)                       {}
func (oracle) Stopped(_ time.Duration, _ int, _ time.Duration)  {}
func (oracle) Finished(_ time.Duration, _ int, _ time.Duration) {}
func (oracle) Dropped(time.Duration, int)                       {}
func (oracle) AppendSnapshot(dst []byte) []byte                 { return dst }
func (oracle) RestoreSnapshot([]byte) error                     { return nil }
func (o oracle) Predict(_ time.Duration, _ int, j *traces.Job) predict.Forecast {
	var q [predict.Quantiles]float64
	for i := range q {
		q[i] = float64(j.Work) * float64(o.times)
	}
	return predict.Of(&q, 1)
}

// busy8 draws jobs that overload eight GPUs.
func busy8(r *rand.Rand) []traces.Job {
	jobs := make([]traces.Job, 80)
	at := time.Duration(0)
	for i := range jobs {
		at += time.Duration(r.IntN(60)) * time.Second
		jobs[i] = traces.Job{ID: fmt.Sprint("j", i), Submit: at, Work: time.Duration(1+r.IntN(20)*r.IntN(20)) * time.Second, GPUs: 1 + r.IntN(8), GPUMilli: 1000}
	}
	return jobs
}

// momentsOf plays jobs on eight GPUs.
func momentsOf(t *testing.T, cfg heuristic.Config, by predict.Maker, jobs []traces.Job) moments {
	t.Helper()
	h, err := heuristic.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	sc := sim.DefaultConfig()
	sc.Predictor = by
	s, err := sim.New(sc, cluster.Spec{Pool: 8})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	var m moments
	if err := sim.Run(context.Background(), s, h, &m); err != nil {
		t.Fatalf("%s: %v", h.Name(), err)
	}
	return m
}

// With forecasts that are the run times, every policy that reads one number of them decides as with exact estimates.
func TestForecastsThatAreRightAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Or(47), 1))
	for range 5 {
		jobs := busy8(r)
		for _, order := range heuristic.Orders() {
			if !heuristic.IsOrder(order) || !heuristic.Estimating(order) && order != "fifo" || order == "gittins" || order == "qssf" {
				continue
			}
			for _, fill := range []string{"none", "easy", "conservative"} {
				cfg := heuristic.DefaultConfig()
				if cfg.Order, cfg.Backfill = order, fill; fill != "none" {
					cfg.Admission = "strict"
				}
				if cfg.Validate() != nil {
					continue
				}
				want := momentsOf(t, cfg, nil, jobs)
				cfg.Estimates = "history"
				if got := momentsOf(t, cfg, oracle{1}, jobs); !slices.Equal(got, want) {
					t.Errorf("%s with %s: forecasts that are right decide otherwise than exact estimates", order, fill)
				}
			}
		}
	}
}

// What EASY promises holds under forecasts that are never too short: the first in line starts no later than it would if
// nobody were let past it.
func TestEASYKeepsItsPromiseUnderLongForecasts(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Or(53), 1))
	filled := 0
	for range 20 {
		jobs := busy8(r)
		cfg := heuristic.DefaultConfig()
		cfg.Admission, cfg.Backfill, cfg.Estimates = "strict", "easy", "history"
		h, err := heuristic.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		sc := sim.DefaultConfig()
		sc.Predictor = oracle{3}
		s, err := sim.New(sc, cluster.Spec{Pool: 8})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		promises := &promises{by: map[sim.Job]time.Duration{}}
		if err := sim.Run(context.Background(), s, h, promises); err != nil {
			t.Fatal(err)
		}
		if promises.broken != "" {
			t.Fatal(promises.broken)
		}
		filled += promises.past
	}
	if filled == 0 {
		t.Error("no job was let past another: the test shows nothing")
	}
}

// promises notes, for each job when it becomes the first in line, when enough GPUs would be free for it if no other job
// started, by forecasts; and whether it has started by then.
type promises struct {
	by     map[sim.Job]time.Duration
	past   int
	broken string
}

func (p *promises) Observe(v *sim.View, at *sim.Point) error {
	for i := range at.Events {
		e := &at.Events[i]
		if e.Kind != sim.Start {
			continue
		}
		if end, ok := p.by[e.Job]; ok && e.At > end && p.broken == "" {
			p.broken = fmt.Sprintf("job %s was promised a start by %v and starts at %v", v.Trace(e.Job).ID, end, e.At)
		}
		delete(p.by, e.Job)
		for _, j := range v.Waiting() {
			if v.Pos(j) < v.Pos(e.Job) {
				p.past++
			}
		}
	}
	first := sim.Job(-1)
	for _, j := range v.Waiting() {
		if first < 0 || v.Pos(j) < v.Pos(first) {
			first = j
		}
	}
	if first < 0 || p.by[first] != 0 {
		return nil
	}
	running := slices.Clone(v.Running())
	end := func(j sim.Job) time.Duration { return v.Started(j) + v.Forecast(j).Median() }
	slices.SortFunc(running, func(a, b sim.Job) int { return int(end(a) - end(b)) })
	free, when := v.Cluster().Free(), v.Now()
	for _, j := range running {
		if free >= v.Request(first).GPUs {
			break
		}
		free, when = free+v.Request(j).GPUs, end(j)
	}
	p.by[first] = max(when, 1)
	return nil
}
