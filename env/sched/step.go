package sched

import (
	"context"
	"math"
	"slices"
	"time"

	"clustergym/env"
	"clustergym/simulator/sim"
)

// look chooses the visible jobs, but for running ones that no action concerns: fill does.
func (e *Env) look() {
	e.parts.Slots.Fill(&e.state)
	if e.gangs.stops != nil {
		e.gangs.fill(&e.state)
	}
}

// asks reports whether the agent has something to decide: a visible job fits, or a job can be stopped while another
// waits.
func (e *Env) asks() bool {
	return slices.Contains(e.state.Fits, true) || slices.Contains(e.state.Stops, true)
}

// run advances the clock until the agent has something to decide or the episode ends.
func (e *Env) run(ctx context.Context) (env.Kind, error) {
	for v, flown := e.state.View, false; ; {
		e.look()
		switch {
		case e.ended():
			return env.Terminated, nil
		case v.Over() || e.overdue():
			return env.Truncated, nil
		case e.asks():
			return env.Mid, nil
		}
		until := time.Duration(0)
		if e.pilot != nil && !flown {
			if sch := e.pilot.Pilot(&e.state); sch != nil {
				var err error
				if until, err = e.fly(sch); err != nil {
					return 0, err
				}
				if flown = true; !e.pilot.Holds() {
					continue
				}
			}
		}
		if err := e.goOn(ctx, until); err != nil {
			return 0, err
		}
		flown = false
	}
}

// ended reports whether nothing is left to decide or to wait for.
func (e *Env) ended() bool {
	switch {
	case e.log:
		return e.state.Waiting == 0 && !e.state.View.Arriving()
	case e.win.Mode == Ongoing:
		return false
	case e.win.Mode == Streamed:
		return e.counted == e.win.Counted
	case e.parts.Starts:
		return e.started == e.win.Jobs
	}
	return e.done == e.win.Jobs
}

// overdue reports whether the horizon has passed before the last counted job finished, or the time of an Ongoing
// episode.
func (e *Env) overdue() bool {
	if e.win.End > 0 && e.state.View.Now() >= e.win.End {
		return true
	}
	return e.cfg.Horizon > 0 && e.state.View.Now() >= sim.After(e.win.Begin, e.cfg.Horizon) &&
		(e.win.Mode != Drained || e.done < e.win.Jobs)
}

// fly lets a pilot's scheduler decide until it waits, and returns until when it does; 0 = for the next event.
func (e *Env) fly(sch sim.Scheduler) (until time.Duration, err error) {
	for {
		e.dec.Op, e.dec.GPUs, e.dec.Until = sim.Wait, e.dec.GPUs[:0], 0
		if err := sch.Decide(e.state.View, e.state.Point, &e.dec); err != nil || e.dec.Op == sim.Wait {
			return e.dec.Until, err
		}
		if err := e.apply(); err != nil {
			return 0, err
		}
	}
}

// apply carries out e.dec.
func (e *Env) apply() error {
	if err := e.sim.Apply(&e.dec); err != nil {
		return err
	}
	if e.dec.Op == sim.StartJob {
		e.started++
		e.dequeue(e.dec.Job)
	}
	e.score.Decided(&e.dec)
	return nil
}

// goOn advances the clock to the next event, the horizon, or until, which is 0 for none.
func (e *Env) goOn(ctx context.Context, until time.Duration) error {
	d := sim.Decision{Op: sim.Wait, Until: until}
	if e.win.End > 0 && (until == 0 || e.win.End < until) {
		d.Until = e.win.End
	}
	if e.cfg.Horizon > 0 {
		if end := sim.After(e.win.Begin, e.cfg.Horizon); d.Until == 0 || end < d.Until {
			d.Until = end
		}
	}
	if err := e.sim.Apply(&d); err != nil {
		return err
	}
	p, err := e.sim.Advance(ctx)
	if err != nil {
		return err
	}
	e.follow(p)
	return nil
}

// Step implements env.Env.
func (e *Env) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if err := e.shell.Ready(ctx); err != nil {
		return err
	}
	if err := e.shell.Legal(a, e.mask); err != nil {
		return err
	}
	from := e.state.View.Now()
	e.score.Start()
	kind, err := e.step(context.Background(), a.Disc) // a step is atomic, so it is not cancelled
	if err != nil {
		e.shell.Break() // for example because the workload's stream failed
		return err
	}
	e.fill(ts, e.score.Pay(kind), e.state.View.Now()-from, e.shell.Took(a, kind))
	if kind == env.Terminated && e.parts.Starts && e.win.Mode == Drained {
		return e.finish(context.Background())
	}
	return nil
}

// step takes an action and runs to the next decision.
func (e *Env) step(ctx context.Context, action []int32) (env.Kind, error) {
	e.dec.Op, e.dec.GPUs, e.dec.Until = sim.Wait, e.dec.GPUs[:0], 0
	decided, err := e.parts.Actions.Decode(env.Action{Disc: action}, &e.state, &e.dec)
	if err != nil || !decided {
		return env.Mid, err
	}
	until, waits := time.Duration(0), true
	var sch sim.Scheduler
	if e.pilot != nil {
		sch = e.pilot.Pilot(&e.state)
	}
	switch {
	case sch != nil:
		until, err = e.fly(sch)
		waits = e.pilot.Holds()
	case e.dec.Op != sim.Wait:
		err, waits = e.apply(), false
	}
	if err == nil && waits {
		err = e.goOn(ctx, until)
	}
	if err != nil {
		return 0, err
	}
	return e.run(ctx)
}

// finish runs on to the last finish, or the end of the clock, if there is a watcher.
func (e *Env) finish(ctx context.Context) error {
	v := e.state.View
	for e.watch != nil && v.Ended() < v.Arrived() && !v.Over() {
		if err := e.goOn(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// show fills what the agent sees.
func (e *Env) show(ts *env.TimeStep) {
	e.book(e.state.View.DecisionEvents())
	if e.gangs.stops == nil {
		e.gangs.fill(&e.state)
	}
	e.parts.Encoder.Encode(ts.Obs, &e.state)
	e.parts.Actions.Mask(e.mask, &e.state)
	copy(ts.Mask, e.mask)
}

// fill fills the time step.
func (e *Env) fill(ts *env.TimeStep, reward float64, elapsed time.Duration, kind env.Kind) {
	noReward(ts)
	ts.Kind, ts.Reward, ts.Elapsed = kind, reward, elapsed
	e.show(ts)
	ts.Info[InfoDiscount] = e.spec.Discount(e.cfg.Gamma, elapsed)
	e.score.Infos(ts.Info[InfoDiscount+1:], kind)
}

// noReward fills what a time step holds next to an observation where nothing is paid.
func noReward(ts *env.TimeStep) {
	ts.Kind, ts.Reward, ts.Elapsed = env.Mid, 0, 0
	for i := range ts.Info {
		ts.Info[i] = math.NaN()
	}
}
