package sched

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"clustergym/env"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Jobs are the jobs of an episode. Their clock shows 0 when the clock of the trace shows Origin, at the submit of the
// first.
type Jobs struct {
	List   []traces.Job
	Origin time.Duration
	Warm   int  // how many of them run under the rule of the warm-up, until the next job arrives
	Keep   bool // those that wait at the end of the warm-up stay; else they are dropped
	// The run ends at End. If that is 0, it ends when the jobs from position From to before Until have ended; Until 0 = to
	// the last job.
	From, Until int
	End         time.Duration
}

// Baseline plays the jobs of an episode with a scheduler that sees the whole queue. Not safe for concurrent use.
type Baseline struct {
	sim    *sim.Simulator
	warm   schedulers.Policy // nil without a warm-up
	stops  *Stops            // which jobs a Keeper may stop; nil = all
	stream traces.Slice
	dec    sim.Decision
}

// NewBaseline returns a baseline with a simulator of its own, for episodes without a warm-up.
func NewBaseline(cfg sim.Config, spec cluster.Spec) (*Baseline, error) {
	s, err := NewSimulator(cfg, spec)
	return &Baseline{sim: s}, err
}

// Play runs jobs to their end, or to the end of the clock. sch takes over after the warm-up, if there is one. o sees
// every point from there to the end.
func (b *Baseline) Play(ctx context.Context, jobs Jobs, sch sim.Scheduler, o sim.Observer) error {
	b.stream.ResetAt(jobs.List, jobs.Origin)
	if err := b.sim.Reset(&b.stream); err != nil {
		return err
	}
	if r := b.sim.Refused(); r.Count > 0 {
		return fmt.Errorf("%w: %d jobs of the window do not fit the cluster", env.ErrEpisode, r.Count)
	}
	p, err := b.begin(ctx, &jobs)
	if err != nil {
		return err
	}
	return b.playOn(ctx, b.sim, p, &jobs, sch, o)
}

// playOn plays s on with sch from p, its current point, to the end of jobs, or to the end of the clock.
func (b *Baseline) playOn(ctx context.Context, s *sim.Simulator, p *sim.Point, jobs *Jobs, sch sim.Scheduler,
	o sim.Observer) (err error) {
	v := s.View()
	if k, ok := sch.(Keeper); ok {
		switch {
		case b.stops == nil:
			k.Keep(0, 0)
		case jobs.Keep:
			k.Keep(0, b.stops.Min)
		default:
			k.Keep(jobs.Warm, b.stops.Min)
		}
	}
	sch.Reset(v)
	until := jobs.Until
	if until == 0 {
		until = len(jobs.List)
	}
	for left := until - jobs.From; ; {
		for i := range p.Events {
			if e := &p.Events[i]; e.Kind == sim.Finish && v.Pos(e.Job) >= jobs.From && v.Pos(e.Job) < until {
				left--
			}
		}
		if err := o.Observe(v, p); err != nil {
			return err
		}
		if v.Over() || jobs.End == 0 && left == 0 || jobs.End > 0 && v.Now() >= jobs.End {
			return nil
		}
		if err := sim.Decide(s, sch, p, &b.dec, nil); err != nil {
			return err
		}
		if p, err = s.Advance(ctx); err != nil {
			return err
		}
	}
}

// begin returns the first point at which a job after the warm-up has arrived.
func (b *Baseline) begin(ctx context.Context, jobs *Jobs) (*sim.Point, error) {
	if jobs.Warm == 0 {
		return b.sim.Advance(ctx)
	}
	w := warmUp{first: jobs.Warm, keep: jobs.Keep}
	return w.run(ctx, b.sim, b.warm, &b.dec)
}

// order returns an order that starts jobs as the warm-up and the baselines do.
func (p *Parts) order(name string, est sim.Estimates) (schedulers.Policy, error) {
	h := schedulers.DefaultConfig()
	h.Order, h.Placement, h.Admission = name, p.Placement, cmp.Or(p.Admission, "skip")
	h.Backfill = cmp.Or(p.Backfill, h.Backfill)
	if est.Known() { // otherwise sjf knows the true run times
		h.Estimates = est
	}
	return schedulers.New(h)
}

// warmUp is what happens before an episode.
type warmUp struct {
	first int  // position of the job whose arrival ends it
	keep  bool // the jobs that wait then stay; else they are dropped
	// seen is shown every point but the last, and started every decision that has been carried out; nil = nothing is.
	seen    func(*sim.Point)
	started func(*sim.Decision)
}

// run runs the jobs before the first under h until that one arrives, and returns that point. d is scratch space.
func (w *warmUp) run(ctx context.Context, s *sim.Simulator, h schedulers.Policy, d *sim.Decision) (*sim.Point, error) {
	v := s.View()
	h.Reset(v)
	for {
		p, err := s.Advance(ctx)
		if err != nil {
			return nil, err
		}
		if v.Arrived() > w.first {
			if w.keep {
				return p, nil
			}
			return p, dropOld(s, d, w.first)
		}
		if w.seen != nil {
			w.seen(p)
		}
		if err := sim.Decide(s, h, p, d, w.started); err != nil {
			return nil, err
		}
	}
}

func dropOld(s *sim.Simulator, d *sim.Decision, first int) error {
	v := s.View()
	for i := 0; i < len(v.Waiting()); {
		j := v.Waiting()[i]
		if v.Pos(j) >= first {
			i++
			continue
		}
		d.Op, d.Job, d.GPUs = sim.DropJob, j, d.GPUs[:0]
		if err := s.Apply(d); err != nil {
			return err
		}
	}
	return nil
}
