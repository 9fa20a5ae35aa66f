package sched

import (
	"time"

	"clustergym/simulator/sim"
	"clustergym/traces"
)

// warmed updates the state after a point.
func (e *Env) warmed(p *sim.Point) {
	for i := range p.Events {
		e.event(&p.Events[i])
	}
	e.book(p.Events)
	e.shown = 0
}

// book shows the encoder those events that it has not seen. The first are those of decisions at one point.
func (e *Env) book(events []sim.Event) {
	if e.books != nil && len(events) > e.shown {
		e.books.Follow(&e.state, events[e.shown:])
	}
	e.shown = len(events)
}

// follow pays the reward up to p and updates the state.
func (e *Env) follow(p *sim.Point) {
	e.state.Point = p
	e.state.Moment++
	e.showWatcher(p)
	e.score.Point(p)
	e.warmed(p)
}

// showWatcher shows the watcher a point.
func (e *Env) showWatcher(p *sim.Point) {
	if e.watch != nil {
		_ = e.watch.Observe(e.state.View, p)
	}
}

// event updates the state after one event.
func (e *Env) event(ev *sim.Event) {
	v, s := e.state.View, &e.state
	switch ev.Kind {
	case sim.Submit:
		s.LastArrival = ev.At
		e.learn(ev.Job)
		if s.Known[ev.Job].Counted {
			e.enqueue(ev.Job)
		}
	case sim.Preempt, sim.Fail:
		if s.Known[ev.Job].Counted {
			if e.gangs.stops != nil {
				e.renew(ev.Job)
			}
			e.enqueue(ev.Job)
		}
	case sim.Finish:
		s.LastFinish = ev.At
		if !s.Known[ev.Job].Counted || e.steer.on {
			return
		}
		t := v.Trace(ev.Job)
		jct := ev.At - t.Submit
		if e.win.Counts(v.Pos(ev.Job)) {
			e.counted++
		}
		e.done++
		e.last = ev.At
		e.jct += jct.Seconds()
		e.wait += (jct - v.Ran(ev.Job)).Seconds()
		e.slow += float64(jct) / float64(t.Work)
	}
}

// learn computes what a policy may know about j.
func (e *Env) learn(j sim.Job) {
	s, t := &e.state, e.state.View.Trace(j)
	for int(j) >= len(s.Known) {
		s.Known = append(s.Known, Known{})
	}
	k := Known{
		Estimate: e.est.Of(s.View, j), GPUs: float64(t.Milli()) / 1000, Submit: t.Submit,
		Counted: e.win.Mode != Drained || s.View.Pos(j) >= e.win.First, Plain: s.View.Request(j).Plain(),
	}
	if e.steer.on && !e.takes(t) {
		k.Counted = false // a workload would not have it
	}
	k.Rest = k.Estimate
	k.Area = float64(k.Rest) * k.GPUs
	if s.Blind {
		k.Area = k.GPUs
	}
	s.Known[j] = k
	if k.Counted && e.parts.Models != nil {
		model, batch := e.parts.Models.Draw(e.seed, t.ID)
		s.ModelMB, s.Batch = model.MB, batch
	}
	e.parts.Encoder.Learn(s, j)
}

// takes reports whether the environment's workload would have a job.
func (e *Env) takes(t *traces.Job) bool {
	return (e.parts.MaxGPUs == 0 || t.GPUs <= e.parts.MaxGPUs) &&
		(e.parts.Suits == nil || e.parts.Suits([]traces.Job{*t}) == nil)
}

// renew computes what is left of j, which was stopped.
func (e *Env) renew(j sim.Job) {
	s := &e.state
	k := &s.Known[j]
	switch {
	case s.Blind:
	case s.Estimates.Mode == sim.EstimateExact:
		k.Rest = max(1, time.Duration(s.View.Left(j)))
	default:
		k.Rest = s.Left(j)
	}
	if !s.Blind {
		k.Area = float64(k.Rest) * k.GPUs
	}
	if e.renewer != nil {
		e.renewer.Renew(s, j)
	}
}

func (e *Env) enqueue(j sim.Job) {
	s := &e.state
	k := &s.Known[j]
	s.Waiting++
	s.WaitingGPUs += k.GPUs
	s.WaitingWork += float64(k.Rest) * k.GPUs
	s.WaitingSince += float64(k.Submit) * k.GPUs
	e.parts.Slots.Add(s, j)
}

func (e *Env) dequeue(j sim.Job) {
	s := &e.state
	k := &s.Known[j]
	s.Waiting--
	s.WaitingGPUs -= k.GPUs
	s.WaitingWork -= float64(k.Rest) * k.GPUs
	s.WaitingSince -= float64(k.Submit) * k.GPUs
	if s.Waiting == 0 {
		s.WaitingGPUs, s.WaitingWork, s.WaitingSince = 0, 0, 0 // drop accumulated rounding errors
	}
	e.parts.Slots.Remove(s, j)
}
