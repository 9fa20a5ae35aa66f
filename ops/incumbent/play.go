package incumbent

import (
	"context"
	"errors"
	"time"

	"clustergym/internal/fault"
	"clustergym/lab/predictors"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Past is a recorded history of a cluster, for simulations of what others would have done. Its clock shows 0 at the
// first submit.
type Past struct {
	Spec cluster.Spec
	Jobs []traces.Job // in order of submit; Work is the run time, Estimate the time limit
	// Starts are the recorded first starts by position in Jobs; −1 = it had not started at End.
	Starts []time.Duration
	// Held is how long before its Submit here the user submitted a job that the cluster might not start at once; nil = no
	// time of any job. It counts as wait.
	Held   []time.Duration
	Begin  time.Duration // from here on a policy decides; before, what ran has the place that it had
	End    time.Duration // of the record
	Seated []Seat        // the jobs that run at Begin, in order of start
	// Archive is what predictors know at Begin, in order of submit, and Origin what its clock shows when that of the past
	// shows 0.
	Archive []traces.Job
	Origin  time.Duration

	seating string // the placement that gave the Seated their GPUs, "" = the record
}

// Seat is a job that had started before Begin, and where.
type Seat struct {
	Job   int // its position
	Start time.Duration
	GPUs  []cluster.GPU
}

// Schedule says when the jobs of a play started, by position; −1 = never.
type Schedule struct {
	Starts []time.Duration
	// Unstarted are those that never did, because the policy leaves them alone although they fit.
	Unstarted int
}

// Play simulates what sch would have done from Begin on. est are what the simulator's predictor serves.
func (p *Past) Play(ctx context.Context, sch sim.Scheduler, est sim.Estimates,
	watch ...sim.Observer) (*Schedule, error) {
	cfg := sim.DefaultConfig()
	if est.Causal() {
		var err error
		if cfg.Predictor, err = predictors.Maker(est, p.Archive); err != nil {
			return nil, &fault.Mistake{Err: err}
		}
	}
	s, err := sim.New(cfg, p.Spec)
	if err != nil {
		return nil, err
	}
	var jobs traces.Slice
	jobs.ResetAt(p.Jobs, p.Origin)
	if err := s.Reset(&jobs); err != nil {
		return nil, err
	}
	out := &Schedule{Starts: make([]time.Duration, len(p.Jobs))}
	for i := range out.Starts {
		out.Starts[i] = -1
	}
	observers := append([]sim.Observer{out}, watch...)
	err = sim.Run(ctx, s, p.requeued(&fromBegin{past: p, inner: sch}), observers...)
	if errors.Is(err, sim.ErrWait) { // the policy leaves jobs alone although they fit
		err = nil
	}
	for _, t := range out.Starts {
		if t < 0 {
			out.Unstarted++
		}
	}
	return out, err
}

// Observe implements sim.Observer.
func (s *Schedule) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == sim.Start {
			if pos := v.Pos(e.Job); s.Starts[pos] < 0 {
				s.Starts[pos] = e.At
			}
		}
	}
	return nil
}

// fromBegin brings the cluster into the state of Begin, and lets inner decide from then on.
type fromBegin struct {
	past   *Past
	inner  sim.Scheduler
	next   int // of Seated
	begun  bool
	here   map[int]sim.Job // by position, until then
	point  sim.Point       // the first of inner: it has seen no events
	pinned time.Duration
}

// Reset implements sim.Scheduler.
func (f *fromBegin) Reset(*sim.View) {
	f.next, f.begun, f.here, f.pinned = 0, false, map[int]sim.Job{}, -1
}

// Decide implements sim.Scheduler.
func (f *fromBegin) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if f.begun {
		if p.Now == f.pinned {
			p = &f.point
		}
		return f.inner.Decide(v, p, d)
	}
	for _, e := range p.Events {
		if e.Kind == sim.Submit {
			f.here[v.Pos(e.Job)] = e.Job
		}
	}
	if f.next < len(f.past.Seated) {
		x := &f.past.Seated[f.next]
		if x.Start > v.Now() {
			d.Until = x.Start
			return nil
		}
		f.next++
		d.Op, d.Job = sim.StartJob, f.here[x.Job]
		d.GPUs = append(d.GPUs[:0], x.GPUs...)
		return nil
	}
	if v.Now() < f.past.Begin {
		d.Until = f.past.Begin
		return nil
	}
	f.begun, f.pinned, f.point = true, p.Now, sim.Point{Now: p.Now}
	f.inner.Reset(v)
	return f.inner.Decide(v, &f.point, d)
}
