package queuerank

import (
	"context"
	"slices"
	"strconv"
	"time"

	"clustergym/env/cluster"
	"clustergym/env/heuristic"
	"clustergym/env/predict"
	"clustergym/env/sched"
	"clustergym/env/sim"
	"clustergym/traces"
)

// sums are over the jobs that have started, whose ends are known then.
type sums struct {
	jobs                      int
	bsld, wait, jct, slowdown float64 // times in seconds
	area                      float64 // GPU-seconds of run time
	end                       time.Duration
}

// add counts a job that starts at now after wait and will run for runs. Its slowdowns compare with its work, which is its
// run time on GPUs of speed 1.
func (s *sums) add(t *traces.Job, wait, runs, now time.Duration) {
	jct := (wait + runs).Seconds()
	s.jobs++
	s.wait += wait.Seconds()
	s.jct += jct
	s.bsld += max(1, jct/max(t.Work.Seconds(), 10))
	s.slowdown += jct / t.Work.Seconds()
	s.area += float64(t.Milli()) / 1000 * runs.Seconds()
	s.end = max(s.end, now+runs)
}

// of returns the sum whose mean is metric.
func (s *sums) of(metric string) float64 {
	switch metric {
	case "bsld":
		return s.bsld
	case "wait":
		return s.wait
	case "jct":
		return s.jct
	}
	return s.slowdown
}

// score returns S of a window whose jobs have all started. Lower is better.
func (s *sums) score(cfg *Config, gpus int) float64 {
	if cfg.Metric == "utilisation" {
		return -s.area / (float64(gpus) * s.end.Seconds())
	}
	return s.of(cfg.Metric) / float64(s.jobs)
}

// maxima are the largest values in the training part.
type maxima struct{ estimate, memory, user float64 }

func maximaOf(jobs []traces.Job, est sim.Estimates) maxima {
	m := maxima{estimate: 1}
	if est.Mode != sim.EstimateTrace {
		est = sim.Estimates{Mode: sim.EstimateExact} // noisy estimates have no maximum
	}
	for i := range jobs {
		j := &jobs[i]
		m.estimate = max(m.estimate, float64(est.OfJob(j)))
		m.memory = max(m.memory, float64(j.MemBytes))
		if u, err := strconv.Atoi(j.User); err == nil {
			m.user = max(m.user, float64(u))
		}
	}
	return m
}

// baseline plays orders on the same jobs, with admission commit and the same back-filling.
type baseline struct {
	plays  *sched.Baseline
	orders map[string]heuristic.Policy
	sum    sums
}

func newBaseline(cfg *Config, spec cluster.Spec, maker predict.Maker) (*baseline, error) {
	plays, err := sched.NewBaseline(sim.Config{Comm: "none", Serial: true, Predictor: maker}, spec)
	if err != nil {
		return nil, err
	}
	b := &baseline{plays: plays, orders: map[string]heuristic.Policy{}}
	for _, order := range []string{cfg.Base, "sjf"} {
		h := heuristic.DefaultConfig()
		h.Order, h.Admission, h.Backfill, h.Placement, h.Estimates = order, "commit", cfg.Backfill, cfg.Placement, cfg.Estimates
		if b.orders[order], err = heuristic.New(h); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// play returns the sums of order on jobs.
func (b *baseline) play(ctx context.Context, order string, jobs sched.Jobs, seed uint64) (sums, error) {
	b.sum = sums{}
	h := b.orders[order]
	h.Reseed(seed)
	err := b.plays.Play(ctx, jobs, 0, h, b)
	return b.sum, err
}

// Observe implements sim.Observer: it counts the jobs that start.
func (b *baseline) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == sim.Start {
			t := v.Trace(e.Job)
			b.sum.add(t, e.At-t.Submit, v.Finished(e.Job)-e.At, e.At)
		}
	}
	return nil
}

// ending is when a running job ends by its requested time, and its GPUs in thousandths.
type ending struct{ at, milli int64 }

// enough returns when j will fit if all running jobs take their requested times. It is computed once, when j is chosen.
func (e *Env) enough(j sim.Job) int64 {
	if e.tuned != nil {
		return e.tuned.early(j)
	}
	now, free := int64(e.view.Now()), int64(e.view.Cluster().FreeMilli())
	need := e.known[j].milli
	e.ends = e.ends[:0]
	for _, r := range e.view.Running() {
		e.ends = append(e.ends, ending{int64(e.view.Started(r)) + e.known[r].e, e.known[r].milli})
	}
	slices.SortFunc(e.ends, func(a, b ending) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	at := now
	for _, r := range e.ends {
		if free >= need {
			break
		}
		free += r.milli
		at = max(at, r.at)
	}
	return at
}

// backfill starts, in order of submit, the jobs that fit and end before shadow by their requested times.
func (e *Env) backfill(shadow int64) error {
	if e.tuned != nil {
		return e.tuned.backfill(shadow)
	}
	for i := 0; i < e.queue.len(); {
		j := e.queue.at(i)
		if int64(e.view.Now())+e.known[j].e >= shadow {
			i++
			continue
		}
		ok, err := e.tryStart(j)
		if err != nil {
			return err
		}
		if !ok {
			i++
			continue
		}
		e.leave(j)
	}
	return nil
}
