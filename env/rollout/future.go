package rollout

import (
	"sync"
	"time"

	"clustergym/internal/rng"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Source draws the jobs of imagined futures.
type Source interface {
	// Draw sets f.Jobs to at most n jobs that arrive after v's current time, in order of submit, and f.Forecasts to their
	// forecasts where jobs have some. It reuses both lists. What it draws follows from seed, and from what a policy may
	// know of v's run. It reports false if it knows too little to imagine a future.
	Draw(v *sim.View, seed uint64, n int, f *sim.Future) bool
}

// Recorded draws stretches of consecutive jobs of a recorded or generated workload, whose arrivals are stretched as
// those of an episode are. It never draws jobs near one that has arrived in the run, so a run over the same workload
// does not meet its own future. Safe for concurrent use.
type Recorded struct {
	jobs      []traces.Job
	forecasts []predict.Forecast
	window    int
	load      float64
	factor    float64        // of all gaps between arrivals; 0 = that of load
	index     map[uint64]int // by mark: the last job that has it

	once   sync.Once // remember
	lived  []lived   // by level
	byWork []lived   // the same by run time
}

// NewRecorded returns a source over jobs, at least two, in order of submit. A stretch is scaled by the factor with
// which a window of that many jobs, which begins where the stretch does, offers load to the run's cluster; with load 0
// it is as recorded. If maker is not nil, jobs have the forecasts of a predictor that has seen the workload from its
// beginning, as if each job started when it was submitted.
func NewRecorded(jobs []traces.Job, window int, load float64, maker predict.Maker) *Recorded {
	r := &Recorded{jobs: jobs, window: max(2, min(window, len(jobs))), load: load, index: make(map[uint64]int, len(jobs))}
	for i := range jobs {
		r.index[mark(&jobs[i])] = i
	}
	if maker != nil {
		r.forecasts = gbdt.Said(jobs, maker)
	}
	return r
}

// NewSteady is NewRecorded for a cluster in operation, whose load is that of the whole workload: all gaps between
// arrivals are multiplied by the same factor, so that crowded stretches stay crowded. A run never meets the window jobs
// before one that has arrived in it, and three times as many after it.
func NewSteady(jobs []traces.Job, window int, factor float64, maker predict.Maker) *Recorded {
	r := NewRecorded(jobs, window, 0, maker)
	r.factor = factor
	return r
}

// mark returns a number that identifies a job, from what is known when it is submitted.
func mark(j *traces.Job) uint64 {
	return rng.At(rng.Hash(j.ID), rng.Hash(j.User), uint64(j.GPUs), uint64(j.GPUMilli), rng.Hash(j.Name))
}

// Draw implements Source.
func (r *Recorded) Draw(v *sim.View, seed uint64, n int, f *sim.Future) bool {
	f.Jobs, f.Forecasts = f.Jobs[:0], f.Forecasts[:0]
	if len(r.jobs) < 2 {
		return false
	}
	n = min(n, len(r.jobs)-1)
	low, high := r.near(v)
	from, ok := 0, false
	for try := uint64(0); try < 64 && !ok; try++ {
		from = 1 + int(rng.At(seed, try)%uint64(len(r.jobs)-n))
		ok = from+n <= low || from >= high
	}
	if !ok {
		return false // the workload is hardly more than the run
	}
	scale := 1.0
	switch {
	case r.factor > 0:
		scale = r.factor
	case r.load > 0:
		first := min(from, len(r.jobs)-r.window)
		scale = traces.LoadFactor(r.jobs[first:first+r.window], v.Cluster().GPUs(), r.load)
	}
	now, origin := v.Now(), r.jobs[from-1].Submit
	f.Jobs = append(f.Jobs, r.jobs[from:from+n]...)
	for i := range f.Jobs {
		f.Jobs[i].Submit = arrival(now, float64(f.Jobs[i].Submit-origin)*scale)
	}
	if r.forecasts != nil {
		f.Forecasts = append(f.Forecasts, r.forecasts[from:from+n]...)
	}
	return true
}

// near returns the range of jobs that the run may be about to meet: those around one that is in the system.
func (r *Recorded) near(v *sim.View) (low, high int) {
	for _, list := range [...][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			if i, ok := r.index[mark(v.Trace(j))]; ok {
				return i - r.window, i + 3*r.window
			}
		}
	}
	return 0, 0
}

// arrival returns the time d after now, before the clock ends. Where jobs may begin to wait some time after their
// submit, d can be less than 0, and nothing arrives before now.
func arrival(now time.Duration, d float64) time.Duration {
	const most = traces.MaxTime / 2
	if !(d < float64(most-min(now, most))) {
		return max(now, most)
	}
	return now + time.Duration(max(0, d))
}

// The run's own past: how many of the last jobs are kept, and how many must have arrived before a future is drawn.
const (
	mostPast  = 4096
	leastPast = 16
)

// Past draws stretches of the jobs that have arrived in the run so far, as recorded, from one of them on; after the
// last one comes the first again. Jobs that have ended have the run times that they had. Where estimates are not exact,
// those of the others are drawn from what the estimates say. It must see every point of a run (Observe). Not safe for
// concurrent use.
type Past struct {
	est  sim.Estimates
	jobs []pastJob // a ring
	base int       // position in the run of the first that was kept
	from int       // position of the oldest
	next int       // of the next to arrive
}

type pastJob struct {
	job      traces.Job
	number   sim.Job
	forecast predict.Forecast
	live     bool
	gone     bool // it left without finishing, so its run time is not known
}

// NewPast returns a source for runs with these estimates.
func NewPast(est sim.Estimates) *Past { return &Past{est: est} }

// Reset begins a run. What was seen of another is forgotten.
func (p *Past) Reset(seed uint64) {
	p.est.Seed = seed
	p.jobs, p.base, p.from, p.next = p.jobs[:0], 0, 0, 0
}

// Observe implements sim.Observer.
func (p *Past) Observe(v *sim.View, pt *sim.Point) error {
	for i := range pt.Events {
		e := &pt.Events[i]
		switch e.Kind {
		case sim.Submit:
			p.arrived(v, e.Job)
		case sim.Finish, sim.Drop:
			if k := p.of(v.Pos(e.Job)); k != nil {
				k.live, k.gone = false, e.Kind == sim.Drop
				if !k.gone && p.est.Mode != sim.EstimateExact {
					k.job.Work = v.Ran(e.Job)
				}
			}
		}
	}
	return nil
}

func (p *Past) arrived(v *sim.View, j sim.Job) {
	if len(p.jobs) == 0 {
		p.base, p.from, p.next = v.Pos(j), v.Pos(j), v.Pos(j)
	}
	if v.Pos(j) != p.next {
		return // seen before
	}
	p.next++
	if len(p.jobs) < mostPast {
		p.jobs = append(p.jobs, pastJob{})
	} else {
		p.from++
	}
	k := p.of(v.Pos(j))
	*k = pastJob{job: *v.Trace(j), number: j, live: true}
	if f := v.Forecast(j); f != nil {
		k.forecast = *f
	}
}

// of returns the job at a position of the run, nil if it is not kept.
func (p *Past) of(pos int) *pastJob {
	if pos < p.from || pos >= p.next {
		return nil
	}
	return &p.jobs[(pos-p.base)%mostPast]
}

// Draw implements Source.
func (p *Past) Draw(v *sim.View, seed uint64, n int, f *sim.Future) bool {
	f.Jobs, f.Forecasts = f.Jobs[:0], f.Forecasts[:0]
	have := p.next - p.from
	if have < leastPast {
		return false
	}
	at := v.Now()
	told := v.Forecast(p.of(p.next-1).number) != nil
	first := 1 + int(rng.At(seed, 0)%uint64(have-1))
	for i := range n {
		pos := p.from + (first+i)%have
		k := p.of(pos)
		gap := time.Duration(0)
		switch {
		case pos > p.from:
			gap = k.job.Submit - p.of(pos-1).job.Submit
		default: // nobody knows what came before the first
			gap = p.of(pos+1).job.Submit - k.job.Submit
		}
		at = arrival(at, float64(gap))
		if k.gone {
			continue
		}
		f.Jobs = append(f.Jobs, k.job)
		j := &f.Jobs[len(f.Jobs)-1]
		j.Submit = at
		if k.live && p.est.Mode != sim.EstimateExact {
			j.Work = v.Ran(k.number) + time.Duration(p.est.Draw(v, k.number, rng.At(seed, 1, uint64(i))))
		}
		if told {
			f.Forecasts = append(f.Forecasts, k.forecast)
		}
	}
	return len(f.Jobs) > 0
}
