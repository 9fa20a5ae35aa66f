package queuerank

import (
	"context"
	"errors"
	"fmt"
	"time"

	"clustergym/env"
	"clustergym/env/sim"
	"clustergym/traces"
)

// Passed is what came of a log that Env.Stream has played. Means are over all its jobs.
type Passed struct {
	Jobs    int // that have started
	Refused int // that are larger than the cluster or Config.MaxGPUs, or have no work
	Choices int // decisions with more than one visible job
	Longest int // the most jobs that waited at a decision
	// BSLD is the mean of max(1, JCT/max(run time, 10 s)); Wait and JCT are in seconds.
	BSLD, Wait, JCT float64
}

// Chooser chooses a visible job: ts holds its observation, as of an episode, and the slots are those of Env.Slots.
type Chooser func(ts *env.TimeStep) (slot int32, err error)

// ahead is the stream that the simulator reads. It leaves out jobs that the environment does not take. The simulator reads one job
// ahead of its clock.
type ahead struct {
	jobs    traces.Stream
	most    int           // GPUs of the largest job that is taken
	submit  time.Duration // of the job that was read last
	refused int           // jobs that were left out
}

// Next implements traces.Stream.
func (a *ahead) Next(j *traces.Job) error {
	for {
		if err := a.jobs.Next(j); err != nil {
			return err
		}
		if j.Work > 0 && j.GPUs >= 1 && j.GPUs <= a.most {
			a.submit = j.Submit
			return nil
		}
		a.refused++
	}
}

// Stream plays a log of any length from the empty cluster on. Jobs come from the stream while time goes by, and memory holds only those
// that wait or run. choose is asked where several jobs are visible; a single one is taken. ts is scratch of the environment's Spec.
// There are no rewards, and times count from the log's own clock. If jobs has a method Origin, as traces.Slice has, predictors begin
// there. Afterwards the environment needs a Reset.
func (e *Env) Stream(ctx context.Context, jobs traces.Stream, ts *env.TimeStep, choose Chooser) (Passed, error) {
	if e.tuned != nil {
		return Passed{}, fmt.Errorf("%s: rltune %s plays windows, not streams", ID, e.cfg.RLTune)
	}
	if err := e.shell.Leave(); err != nil {
		return Passed{}, err
	}
	a := &ahead{jobs: jobs, most: min(e.cfg.MaxGPUs, e.session.GPUs())}
	e.ahead = a
	defer func() { e.ahead = nil }()
	var all Passed
	if some, err := e.open(ctx, a); err != nil {
		return all, err
	} else if some {
		if err := e.choices(ctx, &all, ts, choose); err != nil {
			return all, err
		}
	}
	n := float64(max(1, e.started))
	all.Jobs, all.Refused = e.started, a.refused
	all.BSLD, all.Wait, all.JCT = e.sum.bsld/n, e.sum.wait/n, e.sum.jct/n
	return all, nil
}

// open begins a stream and runs to the first choice. It reports whether there is a job.
func (e *Env) open(ctx context.Context, a *ahead) (some bool, err error) {
	var stream traces.Stream = a
	if d, ok := a.jobs.(interface{ Origin() time.Duration }); ok {
		stream = dated{a, d.Origin()}
	}
	e.steer.on = false
	if err := e.session.Open(stream); err != nil {
		return false, err
	}
	e.clear()
	p, err := e.session.Advance(ctx)
	if errors.Is(err, sim.ErrDone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	e.follow(p)
	return true, e.run(ctx)
}

// choices starts all jobs of a stream and runs until they have ended, so that observers see every job end.
func (e *Env) choices(ctx context.Context, all *Passed, ts *env.TimeStep, choose Chooser) (err error) {
	for len(e.queue.slots) > 0 {
		slot := int32(0)
		if len(e.queue.slots) > 1 {
			all.Choices++
			all.Longest = max(all.Longest, e.queue.len())
			e.fill(ts, 0, 0, env.Mid)
			if slot, err = choose(ts); err != nil {
				return err
			}
			if slot < 0 || int(slot) >= len(e.queue.slots) {
				return fmt.Errorf("%s: slot %d was chosen of %d", ID, slot, len(e.queue.slots))
			}
		}
		if err := e.step(ctx, e.queue.slots[slot]); err != nil {
			return err
		}
	}
	if e.view.Over() && (e.queue.len() > 0 || e.view.Arriving()) {
		return fmt.Errorf("%s: the clock ends after %d jobs", ID, e.started)
	}
	for e.view.Ended() < e.started && !e.view.Over() {
		if _, err := e.session.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// dated is a stream that begins at some time of a longer one.
type dated struct {
	*ahead
	origin time.Duration
}

// Origin says what the clock of the longer one shows when the stream's shows 0.
func (d dated) Origin() time.Duration { return d.origin }

var _ traces.Stream = (*ahead)(nil)

// left reports whether there is a job that has not started, besides one that is held.
func (e *Env) left() bool {
	if e.ahead != nil {
		return e.queue.len() > 0 || e.view.Arriving()
	}
	return e.started < e.session.Len()
}

// arriving reports whether another job arrives at the current time.
func (e *Env) arriving() bool {
	if e.ahead != nil {
		return e.view.Arriving() && e.ahead.submit == e.view.Now()
	}
	n := e.view.Arrived()
	return n < e.session.Len() && e.session.Jobs()[n].Submit == e.view.Now()
}
