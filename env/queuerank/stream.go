package queuerank

import (
	"context"
	"fmt"
	"time"

	"clustergym/env"
	"clustergym/env/sched"
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

// ahead is the stream that the simulator reads. It leaves out jobs that the environment does not take. The simulator
// reads one job ahead of its clock.
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

// Stream plays a log of any length from the empty cluster on. Jobs come from the stream while time goes by, and memory
// holds only those that wait or run. choose is asked where several jobs are visible; a single one is taken. ts is
// scratch of the environment's Spec. There are no rewards, and times count from the log's own clock. If jobs has a
// method Origin, as traces.Slice has, predictors begin there. Afterwards the environment needs a Reset.
func (e *Env) Stream(ctx context.Context, jobs traces.Stream, ts *env.TimeStep,
	choose Chooser) (all Passed, err error) {
	if e.sum == nil {
		return all, fmt.Errorf("%s: it adds up no log; want %s", e.Spec().ID, V1)
	}
	if e.line.own.NoStreams != "" {
		return all, fmt.Errorf("%s: %s", e.Spec().ID, e.line.own.NoStreams)
	}
	a := &ahead{jobs: jobs, most: min(e.cfg.MaxGPUs, e.View().Cluster().GPUs())}
	e.line.ahead, e.sum.sum = a, sums{}
	defer func() { e.line.ahead = nil }()
	var stream traces.Stream = a
	if d, ok := jobs.(interface{ Origin() time.Duration }); ok {
		stream = dated{a, d.Origin()}
	}
	err = e.Env.Stream(ctx, stream, func(s *sched.State) (int32, error) {
		if len(s.Slots) == 1 {
			return 0, nil
		}
		all.Choices++
		all.Longest = max(all.Longest, e.Waiting())
		e.Show(ts)
		slot, err := choose(ts)
		if err == nil && (slot < 0 || int(slot) >= len(s.Slots)) {
			err = fmt.Errorf("%s: slot %d was chosen of %d", e.Spec().ID, slot, len(s.Slots))
		}
		return slot, err
	})
	if err != nil {
		return all, err
	}
	x := &e.sum.sum
	n := float64(max(1, x.jobs))
	all.Jobs, all.Refused = x.jobs, a.refused
	all.BSLD, all.Wait, all.JCT = x.bsld/n, x.wait/n, x.jct/n
	return all, nil
}

// dated is a stream that begins at some time of a longer one.
type dated struct {
	*ahead
	origin time.Duration
}

// Origin says what the clock of the longer one shows when the stream's shows 0.
func (d dated) Origin() time.Duration { return d.origin }

var _ traces.Stream = (*ahead)(nil)
