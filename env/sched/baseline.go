package sched

import (
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

// Play runs jobs until all jobs from position first on have finished, or to the end of the clock. Those before it run
// under FIFO skip until the job at first arrives; then those still waiting are dropped and sch takes over. o sees every
// point from there to the last finish.
func (b *Baseline) Play(ctx context.Context, jobs Jobs, first int, sch sim.Scheduler, o sim.Observer) error {
	b.stream.ResetAt(jobs.List, jobs.Origin)
	if err := b.sim.Reset(&b.stream); err != nil {
		return err
	}
	if r := b.sim.Refused(); r.Count > 0 {
		return fmt.Errorf("%w: %d jobs of the window do not fit the cluster", env.ErrEpisode, r.Count)
	}
	p, err := b.begin(ctx, first)
	if err != nil {
		return err
	}
	return b.playOn(ctx, b.sim, p, first, len(jobs.List)-first, sch, o)
}

// playOn plays s on with sch from p, its current point, until counted jobs from position first on have finished, or to
// the end of the clock.
func (b *Baseline) playOn(ctx context.Context, s *sim.Simulator, p *sim.Point, first, counted int, sch sim.Scheduler,
	o sim.Observer) (err error) {
	v := s.View()
	if k, ok := sch.(Keeper); ok {
		if b.stops != nil {
			k.Keep(first, b.stops.Min)
		} else {
			k.Keep(0, 0)
		}
	}
	sch.Reset(v)
	for done := 0; ; {
		for i := range p.Events {
			if e := &p.Events[i]; e.Kind == sim.Finish && v.Pos(e.Job) >= first {
				done++
			}
		}
		if err := o.Observe(v, p); err != nil {
			return err
		}
		if done == counted || v.Over() {
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

// begin returns the first point at which a counted job has arrived.
func (b *Baseline) begin(ctx context.Context, first int) (*sim.Point, error) {
	if first == 0 {
		return b.sim.Advance(ctx)
	}
	return warmUp(ctx, b.sim, b.warm, &b.dec, first, nil)
}

func fifoSkip(placement string) (schedulers.Policy, error) {
	cfg := schedulers.DefaultConfig()
	cfg.Admission, cfg.Placement = "skip", placement
	return schedulers.New(cfg)
}

// warmUp runs the jobs before position first under h until the job at first arrives, then drops those still waiting. It
// returns the last point and shows the earlier ones to seen. d is scratch space.
func warmUp(ctx context.Context, s *sim.Simulator, h schedulers.Policy, d *sim.Decision, first int,
	seen func(*sim.Point)) (*sim.Point, error) {
	v := s.View()
	h.Reset(v)
	for {
		p, err := s.Advance(ctx)
		if err != nil {
			return nil, err
		}
		if v.Arrived() > first {
			return p, dropOld(s, d, first)
		}
		if seen != nil {
			seen(p)
		}
		if err := sim.Decide(s, h, p, d, nil); err != nil {
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
