package rounds

import (
	"fmt"
	"slices"
	"time"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// rounds is a policy that from time to time decides again which jobs run where: at the end of a round or a lease, or
// whenever its chooser says so. What its chooser plans (place.Plan) is carried out in this order: stops; then moves and
// changes of size, each as soon as its new GPUs are free; then starts. If gangs are to swap GPUs, one of them is
// stopped and starts again a nanosecond later, because a job can be changed only once at any time.
//
// Jobs without GPUs take no part: they start, in the order of the trace, as soon as they fit.
type rounds struct {
	name   string
	place  place.Placement
	est    sim.Estimates
	strict bool // estimates are needed
	choose chooser
	place.Plan
	open bool
	err  error
	seen int
	jobs []queue.Entry // scratch: jobs without GPUs
}

// chooser makes the decisions of a policy based on rounds.
type chooser interface {
	reset(v *sim.View)
	// event reports that a job has arrived, started, stopped or ended.
	event(v *sim.View, e *sim.Event)
	// decide is called at every point. It places the jobs that are to run (Begin, then Put or PutAll), or does
	// nothing.
	decide(v *sim.View) error
	// until returns the latest time of the next call to decide; 0 = at the next event.
	until(v *sim.View) int64
}

// Turns are how often policies of rounds decide.
type Turns struct {
	// Round is the time between decisions of policies that work in rounds; 0 = the value of each policy's paper. If a
	// restart costs more than a round gains, jobs that take turns never end.
	Round time.Duration `yaml:"round,omitempty"`
	// Migrate is the time between gandiva's moves that bring gangs together; 0 = never.
	Migrate time.Duration `yaml:"migrate"`
}

// Check adds the faults of t to f.
func (t *Turns) Check(f *fault.List) {
	f.Add(t.Round == 0 || t.Round >= time.Second, "round", t.Round, "a time of 1s or more, or 0s for the policy's own")
	f.Add(t.Migrate == 0 || t.Migrate >= time.Second, "migrate", t.Migrate, "a time of 1s or more, or 0s for never")
}

// lengths are the times between decisions in the papers.
var lengths = map[string]time.Duration{
	"gandiva": time.Minute, "gavel-las": 6 * time.Minute, "gavel-ftf": 6 * time.Minute, "optimus": 10 * time.Minute,
	"themis": 20 * time.Minute,
}

// Length returns the time between decisions of the policy called name, 0 if the name is none of this package.
func Length(name string, t Turns) time.Duration {
	if own := lengths[name]; own == 0 || t.Round == 0 {
		return own
	}
	return t.Round
}

// Setup says how a policy plays.
type Setup struct {
	Name  string
	Turns Turns
	Place place.Placement
	Est   sim.Estimates
	Asks  bool // it needs estimates
}

// Policy is a policy of this package: a scheduler with a name, whose draws follow a seed.
type Policy interface {
	sim.Scheduler
	// Name returns the name of Setup.
	Name() string
	// Reseed changes the seed of noisy estimates and random placements, from the next Reset on.
	Reseed(seed uint64)
}

// New returns the policy called s.Name: gavel-las, gavel-ftf, themis, optimus or gandiva.
func New(s Setup) (Policy, error) {
	r := &rounds{name: s.Name, place: s.Place, est: s.Est, strict: s.Asks}
	r.Plan.Place = s.Place
	length := int64(Length(s.Name, s.Turns))
	switch s.Name {
	case "gavel-las", "gavel-ftf":
		g := newGavel(r, length)
		r.choose = g
		return g, nil
	case "themis":
		t := &themis{rounds: r, lease: length}
		r.choose = t
		return t, nil
	case "optimus":
		o := &optimus{rounds: r, length: length}
		r.choose = o
		return o, nil
	case "gandiva":
		g := &gandiva{rounds: r, slice: length, migrate: int64(s.Turns.Migrate)}
		r.choose = g
		var err error
		g.gather, err = cluster.NewPlacement("consolidate-best")
		return g, err
	}
	return nil, fmt.Errorf("policy %q does not work in rounds", s.Name)
}

// Name implements Policy.
func (r *rounds) Name() string { return r.name }

// Reseed changes the seed of noisy estimates and random placements, from the next Reset on.
func (r *rounds) Reseed(seed uint64) {
	r.est.Seed = seed
	place.Reseed(r.place, seed)
}

// Reset implements sim.Scheduler.
func (r *rounds) Reset(v *sim.View) {
	r.place.Reset()
	r.Plan.Reset(v)
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
	return queue.Remaining(r.est, v, j)
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
		if !r.Resume(v) {
			r.Clear()
			if r.err = r.choose.decide(v); r.err != nil {
				return r.err
			}
			r.CarryOut(v)
		}
		r.jobs = r.jobs[:0]
		for _, j := range v.Waiting() {
			if v.Request(j).GPUs == 0 {
				r.jobs = append(r.jobs, queue.Entry{Pos: v.Pos(j), Job: j})
			}
		}
		slices.SortFunc(r.jobs, func(a, b queue.Entry) int { return a.Pos - b.Pos })
	}
	if r.Step(v, d) {
		return nil
	}
	for len(r.jobs) > 0 {
		e := r.jobs[0]
		r.jobs = r.jobs[1:]
		if queue.Stale(v, &e) {
			continue
		}
		var ok bool
		if d.GPUs, ok = r.place.Place(v, e.Job, v.Request(e.Job), v.Cluster(), d.GPUs); ok {
			d.Op, d.Job, d.N = sim.StartJob, e.Job, 0
			return nil
		}
	}
	r.open = false
	d.Op, d.Until = sim.Wait, 0
	if r.Pending() {
		d.Until = v.Now() + 1
	} else if t := r.choose.until(v); t > int64(v.Now()) {
		d.Until = time.Duration(t)
	}
	return nil
}

// members are the jobs with GPUs, waiting and running, in the order of the trace.
type members struct {
	list []queue.Entry
	seen int // jobs before this position have been in list
}

func (m *members) reset() { m.list, m.seen = m.list[:0], 0 }

// update drops the jobs that have ended and appends those that have arrived.
func (m *members) update(v *sim.View) {
	m.list = slices.DeleteFunc(m.list, func(e queue.Entry) bool {
		state := v.State(e.Job)
		return v.Pos(e.Job) != e.Pos || state != sim.Waiting && state != sim.Running
	})
	if m.seen == v.Arrived() {
		return
	}
	old := len(m.list)
	for _, jobs := range [...][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range jobs {
			if v.Pos(j) >= m.seen && v.Request(j).GPUs > 0 {
				m.list = append(m.list, queue.Entry{Pos: v.Pos(j), Job: j})
			}
		}
	}
	slices.SortFunc(m.list[old:], func(a, b queue.Entry) int { return a.Pos - b.Pos })
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
