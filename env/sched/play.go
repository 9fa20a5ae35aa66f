package sched

import (
	"context"
	"errors"
	"fmt"

	"clustergym/env"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Play plays episode ep to its end, shows nothing and pays nothing. choose returns the action at each decision; it sees
// the state, and can have an observation filled by Show. The environment needs a Reset afterwards.
func (e *Env) Play(ctx context.Context, ep env.Episode, choose func(s *State) (int32, error)) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	part, _, err := SplitPart(e.spec.ID, ep.Split, e.parts.Part)
	if err != nil {
		return err
	}
	if decides, err := e.begin(ctx, ep, part); !decides || err != nil {
		return err
	}
	return e.play(ctx, choose)
}

// Stream plays a log of any length as Play does, from the empty cluster on, until all jobs have ended, so that a
// watcher sees every job end. Jobs come from the stream while time goes by, and memory holds only those that wait or
// run. Nothing is left out of the log.
func (e *Env) Stream(ctx context.Context, jobs traces.Stream, choose func(s *State) (int32, error)) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	e.win = Window{GPUs: e.sim.View().Cluster().GPUs(), Tau: e.cfg.Tau, Traced: e.win.Traced[:0]}
	if err := e.open(jobs, e.seed); err != nil {
		return err
	}
	e.log = true
	p, err := e.sim.Advance(ctx)
	if errors.Is(err, sim.ErrDone) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := e.score.Begin(ctx, e, env.Episode{}, p); err != nil {
		return err
	}
	e.follow(p)
	if kind, err := e.run(ctx); err != nil || kind.Last() {
		return err
	}
	if err := e.play(ctx, choose); err != nil {
		return err
	}
	v := e.state.View
	if v.Over() && (e.state.Waiting > 0 || v.Arriving()) {
		return fmt.Errorf("%s: the clock ends after %d jobs", e.spec.ID, e.started)
	}
	for v.Ended() < e.started && !v.Over() {
		if err := e.goOn(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// play takes the actions that choose returns until the end.
func (e *Env) play(ctx context.Context, choose func(s *State) (int32, error)) error {
	var action [1]int32
	for kind := env.Mid; !kind.Last(); {
		a, err := choose(&e.state)
		if err != nil {
			return err
		}
		action[0] = a
		if kind, err = e.step(ctx, action[:]); err != nil {
			return err
		}
	}
	return nil
}

// Show fills ts with what the agent would be shown now, without a reward. It is for those who choose actions for Play
// and Stream.
func (e *Env) Show(ts *env.TimeStep) {
	noReward(ts)
	e.show(ts)
}
