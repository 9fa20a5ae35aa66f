package heuristic

import (
	"fmt"
	"slices"
	"time"

	"clustergym/env/cluster"
	"clustergym/env/sim"
	"clustergym/traces"
)

// Scheduler is one heuristic. It keeps the queue in its own order and is told of changes by events. Not safe for
// concurrent use.
type Scheduler struct {
	cfg    Config
	rule   rule
	strict bool
	place  cluster.Placement
	est    traces.Estimates
	state  stateful // of orders that remember

	queue waitQueue
	open  bool // in the middle of a point
	until int64
	err   error     // found by Reset
	taken []sim.Job // scratch of Reset
	seen  int       // jobs before this position have been taken into the queue

	// Preemptive orders plan a whole pass, then hand it out decision by decision.
	running []entry
	chosen  []entry
	stopped []entry
	plan    []step
	next    int
}

type step struct {
	stop bool
	entry
}

var _ sim.Scheduler = (*Scheduler)(nil)

// New returns the scheduler that cfg names.
func New(cfg Config) (*Scheduler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Scheduler{cfg: cfg, strict: cfg.admission() == "strict"}
	s.rule = rules[slices.IndexFunc(rules, func(r rule) bool { return r.name == cfg.Order })]
	s.place, _ = cluster.NewPlacement(cfg.Placement)
	s.est, _ = traces.ParseEstimates(cfg.Estimates)
	s.est.Seed = cfg.Seed
	return s, nil
}

// Name is order and admission: "sjf+skip".
func (s *Scheduler) Name() string { return s.cfg.Name() }

// Reseed changes the seed of random orders and noisy estimates, from the next Reset on.
func (s *Scheduler) Reseed(seed uint64) { s.cfg.Seed, s.est.Seed = seed, seed }

// Reset implements sim.Scheduler. Jobs that wait already are taken over.
func (s *Scheduler) Reset(v *sim.View) {
	// Preemptive orders always use one line for each kind of request: what fits is counted in GPUs, in rank order.
	s.queue.reset(s.strict && !s.rule.preemptive)
	s.open, s.running, s.plan, s.next, s.err = false, s.running[:0], s.plan[:0], 0, nil
	if s.rule.state != nil {
		s.state = s.rule.state(s)
	}
	s.taken = append(s.taken[:0], v.Waiting()...)
	slices.SortFunc(s.taken, func(a, b sim.Job) int { return v.Pos(a) - v.Pos(b) })
	for _, j := range s.taken {
		if err := s.submit(v, j); err != nil && s.err == nil {
			s.err = err // Decide reports it
		}
	}
	s.seen = v.Arrived()
	for _, j := range v.Running() {
		s.running = append(s.running, entry{pos: v.Pos(j), job: j})
		if s.state != nil {
			s.state.submit(v, j)
		}
	}
}

func (s *Scheduler) submit(v *sim.View, j sim.Job) error {
	if s.state != nil {
		s.state.submit(v, j)
	}
	if s.rule.estimates && s.est.Mode == traces.EstimateTrace && v.Trace(j).Estimate <= 0 {
		return fmt.Errorf("%s: job %s has no estimate in its trace; use estimates exact or noisy:SIGMA", s.Name(), v.Trace(j).ID)
	}
	s.queue.push(entry{s.rule.key(s, v, j), v.Pos(j), j}, v.Request(j))
	return nil
}

// Decide implements sim.Scheduler.
func (s *Scheduler) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if s.err != nil {
		return s.err
	}
	if !s.open {
		s.open, s.until = true, 0
		for i := range p.Events {
			// A job that Reset found waiting may also stand among the events of the first point.
			if e := &p.Events[i]; e.Kind == sim.Submit && v.Pos(e.Job) >= s.seen {
				if err := s.submit(v, e.Job); err != nil {
					return err
				}
			}
		}
		s.queue.open()
		if s.rule.preemptive {
			s.makePlan(v)
		}
	}
	var done bool
	if s.rule.preemptive {
		done = s.nextStep(v, d)
	} else {
		done = s.nextStart(v, d)
	}
	if done {
		s.open = false
		d.Op, d.Until = sim.Wait, time.Duration(s.until)
	}
	return nil
}

// nextStart starts the first in line that fits, or is done.
func (s *Scheduler) nextStart(v *sim.View, d *sim.Decision) (done bool) {
	c := v.Cluster()
	for {
		at := s.queue.best(v, c.Free(), c.FreeMilli() > 0)
		if at == none {
			return true
		}
		var ok bool
		if d.GPUs, ok = s.place.Place(c, v.Request(s.queue.top(at).job), d.GPUs); ok {
			d.Op, d.Job = sim.StartJob, s.queue.pop(at).job
			return false
		}
		if s.strict {
			return true
		}
		s.queue.close(at)
	}
}

// makePlan ranks running and waiting jobs together and lets the first in line have the GPUs: a walk down the
// merged ranks with a count of what is left. A running job that no longer has a place is stopped.
func (s *Scheduler) makePlan(v *sim.View) {
	s.plan, s.next, s.chosen, s.stopped = s.plan[:0], 0, s.chosen[:0], s.stopped[:0]
	s.forget(v)
	if s.state != nil {
		s.state.before(v, s.running)
	}
	for i := range s.running {
		s.running[i].key = s.rule.key(s, v, s.running[i].job)
	}
	// Nearly in order from the last pass: insertion costs little.
	for i := 1; i < len(s.running); i++ {
		for k := i; k > 0 && s.running[k].before(&s.running[k-1]); k-- {
			s.running[k], s.running[k-1] = s.running[k-1], s.running[k]
		}
	}
	need := func(j sim.Job) int {
		r := v.Request(j)
		return r.GPUs * r.Milli
	}
	left := v.Cluster().GPUs() * 1000
	r, full := 0, false
	for {
		w := none // the first of the waiting that has a place, or ends the pass
		for !full {
			limit := left / 1000
			if s.strict {
				limit = unlimited
			}
			if w = s.queue.best(v, limit, true); w == none || s.strict || need(s.queue.top(w).job) <= left {
				break
			}
			s.queue.close(w)
		}
		switch {
		case r < len(s.running) && (w == none || s.running[r].before(s.queue.top(w))):
			e := s.running[r]
			r++
			if n := need(e.job); !full && n <= left {
				left -= n
				s.chosen = append(s.chosen, e)
			} else {
				full = full || s.strict
				s.stopped = append(s.stopped, e)
			}
			continue
		case w == none:
		case need(s.queue.top(w).job) > left:
			full = true // strict
			continue
		default:
			e := s.queue.pop(w)
			left -= need(e.job)
			s.chosen = append(s.chosen, e)
			continue
		}
		break
	}
	for _, e := range s.stopped {
		s.plan = append(s.plan, step{stop: true, entry: e})
	}
	for _, e := range s.chosen {
		if v.State(e.job) == sim.Waiting {
			s.plan = append(s.plan, step{entry: e})
		}
	}
}

// nextStep hands out the plan. A job that cannot be placed although there are GPUs enough (they are of other
// types, or lack cores or memory) goes back into the line.
func (s *Scheduler) nextStep(v *sim.View, d *sim.Decision) (done bool) {
	for s.next < len(s.plan) {
		p := s.plan[s.next]
		s.next++
		d.Job = p.job
		if p.stop {
			d.Op = sim.PreemptJob
			d.GPUs = d.GPUs[:0]
			return false
		}
		var ok bool
		if d.GPUs, ok = s.place.Place(v.Cluster(), v.Request(p.job), d.GPUs); ok {
			d.Op = sim.StartJob
			s.running = append(s.running, entry{pos: p.pos, job: p.job})
			return false
		}
		s.queue.push(p.entry, v.Request(p.job))
	}
	if s.state != nil {
		s.chosen = slices.DeleteFunc(s.chosen, func(e entry) bool { return v.State(e.job) != sim.Running })
		s.state.after(s.chosen, s.stopped)
	}
	// The stopped wait now; their keys are as of this moment.
	for _, e := range s.stopped {
		s.queue.push(entry{s.rule.key(s, v, e.job), e.pos, e.job}, v.Request(e.job))
	}
	s.stopped = s.stopped[:0]
	if s.state != nil {
		s.forget(v)
		s.until = s.state.before(v, s.running)
	}
	return true
}

// forget drops the jobs that no longer run.
func (s *Scheduler) forget(v *sim.View) {
	s.running = slices.DeleteFunc(s.running, func(e entry) bool {
		return v.State(e.job) != sim.Running || v.Pos(e.job) != e.pos
	})
}
