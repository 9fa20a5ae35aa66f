package heuristic

import (
	"fmt"
	"slices"
	"time"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// rounds is a policy that from time to time decides anew which jobs run where: at the end of a round or a lease, or
// whenever its chooser says so. The chooser's seats are carried out in this order: stops; then moves and changes of
// size, each as soon as its new GPUs are free; then starts. If gangs are to swap GPUs, one of them is stopped and
// starts again a nanosecond later, because a job can be changed only once at any time.
//
// Jobs without GPUs take no part: they start, in the order of the trace, as soon as they fit.
type rounds struct {
	cfg    Config
	place  placer
	est    sim.Estimates
	strict bool // estimates are needed
	choose chooser
	seats
	open bool
	err  error
	seen int
	jobs []entry // scratch: jobs without GPUs
}

// chooser makes the decisions of a policy based on rounds.
type chooser interface {
	reset(v *sim.View)
	// event reports that a job has arrived, started, stopped or ended.
	event(v *sim.View, e *sim.Event)
	// decide is called at every point. It seats the jobs that are to run (begin, then put or seatAll), or does
	// nothing.
	decide(v *sim.View) error
	// until returns the latest time of the next call to decide; 0 = at the next event.
	until(v *sim.View) int64
}

var _ Policy = (*rounds)(nil)

// newRounds returns the policy that cfg names, without its chooser.
func newRounds(cfg Config) (*rounds, error) {
	r := &rounds{cfg: cfg, strict: cfg.Estimating()}
	var err error
	if r.place, err = newPlacement(cfg); err != nil {
		return nil, err
	}
	r.est = cfg.Estimates
	r.est.Seed = cfg.Seed
	r.seats.place = r.place
	return r, nil
}

// round returns the length of a round: the configured one, or the policy's own.
func (c *Config) round(own time.Duration) int64 {
	if c.Round > 0 {
		return int64(c.Round)
	}
	return int64(own)
}

// Name implements Policy.
func (r *rounds) Name() string { return r.cfg.Name() }

// Reseed changes the seed of noisy estimates and random placements, from the next Reset on.
func (r *rounds) Reseed(seed uint64) {
	r.cfg.Seed, r.est.Seed = seed, seed
	if p, ok := r.place.(interface{ Reseed(seed uint64) }); ok {
		p.Reseed(seed)
	}
}

// Reset implements sim.Scheduler.
func (r *rounds) Reset(v *sim.View) {
	r.place.Reset()
	r.seats.reset(v)
	r.open, r.err, r.seen = false, nil, v.Arrived()
	r.choose.reset(v)
	for _, list := range [...][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			r.err = firstOf(r.err, r.submit(v, j))
		}
	}
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (r *rounds) submit(v *sim.View, j sim.Job) error {
	if r.strict {
		if err := r.est.Check(v, j); err != nil {
			return fmt.Errorf("%s: %w", r.Name(), err)
		}
	}
	r.choose.event(v, &sim.Event{At: v.Now(), Kind: sim.Submit, Job: j})
	return nil
}

// remaining returns the policy's estimate of what is left of j, in nanoseconds at rate 1.
func (r *rounds) remaining(v *sim.View, j sim.Job) float64 {
	return remaining(r.est, v, j)
}

// Decide implements sim.Scheduler.
func (r *rounds) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if r.err != nil {
		return r.err
	}
	if !r.open {
		r.open = true
		for i := range p.Events {
			e := &p.Events[i]
			switch {
			case e.Job < 0:
			case e.Kind == sim.Submit:
				if v.Pos(e.Job) >= r.seen {
					if r.err = r.submit(v, e.Job); r.err != nil {
						return r.err
					}
				}
			default:
				r.choose.event(v, e)
			}
		}
		if !r.resume(v) {
			r.clear()
			if r.err = r.choose.decide(v); r.err != nil {
				return r.err
			}
			r.carryOut(v)
		}
		r.jobs = r.jobs[:0]
		for _, j := range v.Waiting() {
			if v.Request(j).GPUs == 0 {
				r.jobs = append(r.jobs, entry{pos: v.Pos(j), job: j})
			}
		}
		slices.SortFunc(r.jobs, func(a, b entry) int { return a.pos - b.pos })
	}
	if r.step(v, d) {
		return nil
	}
	for len(r.jobs) > 0 {
		e := r.jobs[0]
		r.jobs = r.jobs[1:]
		if stale(v, &e) {
			continue
		}
		var ok bool
		if d.GPUs, ok = r.place.Place(v, e.job, v.Cluster(), d.GPUs); ok {
			d.Op, d.Job, d.N = sim.StartJob, e.job, 0
			return nil
		}
	}
	r.open = false
	d.Op, d.Until = sim.Wait, 0
	if len(r.late) > 0 || r.again {
		d.Until = v.Now() + 1
	} else if t := r.choose.until(v); t > int64(v.Now()) {
		d.Until = time.Duration(t)
	}
	return nil
}

// members are the jobs with GPUs, waiting and running, in the order of the trace.
type members struct {
	list []entry
	seen int // jobs before this position have been in list
}

func (m *members) reset() { m.list, m.seen = m.list[:0], 0 }

// update drops the jobs that have ended and appends those that have arrived.
func (m *members) update(v *sim.View) {
	m.list = slices.DeleteFunc(m.list, func(e entry) bool {
		state := v.State(e.job)
		return v.Pos(e.job) != e.pos || state != sim.Waiting && state != sim.Running
	})
	if m.seen == v.Arrived() {
		return
	}
	old := len(m.list)
	for _, jobs := range [...][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range jobs {
			if v.Pos(j) >= m.seen && v.Request(j).GPUs > 0 {
				m.list = append(m.list, entry{pos: v.Pos(j), job: j})
			}
		}
	}
	slices.SortFunc(m.list[old:], func(a, b entry) int { return a.pos - b.pos })
	m.seen = v.Arrived()
}

// busy reports whether any job with GPUs is in state (Running or Waiting).
func busy(v *sim.View, state sim.State) bool {
	list := v.Waiting()
	if state == sim.Running {
		list = v.Running()
	}
	return slices.ContainsFunc(list, func(j sim.Job) bool { return v.Request(j).GPUs > 0 })
}

// kinds returns the number of GPU types of c, at least 1.
func kinds(c *cluster.Cluster) int { return max(1, len(c.Types())) }
