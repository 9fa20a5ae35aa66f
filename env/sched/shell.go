package sched

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"clustergym/env"
)

// Shell keeps the life cycle of one environment: whether it is closed, the current episode, the actions taken in it,
// and the kind of the current time step. It makes the checks that every environment makes. It knows nothing about jobs
// or clusters, so any environment whose state follows from an env.Episode and the actions alone can use it.
//
// Reset calls Leave first and Begin last. Step calls Ready, checks the action with Legal, or with Index and Masked, and
// ends with Took, or with Break if the episode cannot go on. Not safe for concurrent use.
type Shell struct {
	id       string
	sizes    []int
	maxSteps int

	record Record
	task   []float64 // the record's own copy
	kind   env.Kind
	begun  bool
	closed bool
}

// NewShell returns the shell of an environment with specification s, before its first episode.
func NewShell(s env.Spec) Shell {
	return Shell{id: s.ID, sizes: slices.Clone(s.Action.Sizes), maxSteps: s.MaxSteps}
}

// Close implements env.Env: later calls return env.ErrClosed.
func (s *Shell) Close() error {
	s.closed = true
	return nil
}

// Leave ends the current episode, because another begins or because the simulator is used for something else. It
// returns env.ErrClosed after Close.
func (s *Shell) Leave() error {
	if s.closed {
		return env.ErrClosed
	}
	s.begun = false
	return nil
}

// Begin records that episode ep has begun and is at its first time step. It copies ep.Task.
func (s *Shell) Begin(ep env.Episode) {
	if ep.Task != nil {
		s.task = append(s.task[:0], ep.Task...)
		ep.Task = s.task
	}
	s.record.Episode, s.record.Actions = ep, s.record.Actions[:0]
	s.kind, s.begun = env.First, true
}

// Current returns nil if there is an episode, env.ErrClosed after Close, and env.ErrResetNeeded before Reset.
func (s *Shell) Current() error {
	switch {
	case s.closed:
		return env.ErrClosed
	case !s.begun:
		return env.ErrResetNeeded
	}
	return nil
}

// Ready returns nil if a step can be taken, and else env.ErrClosed, env.ErrResetNeeded or the error of ctx.
func (s *Shell) Ready(ctx context.Context) error {
	if s.closed {
		return env.ErrClosed
	}
	if !s.begun || s.kind.Last() {
		return env.ErrResetNeeded
	}
	return ctx.Err()
}

// Legal checks action a against the specification and the current mask. Its errors are env.ErrIllegalAction.
func (s *Shell) Legal(a env.Action, mask []bool) error {
	if err := s.Shape(a); err != nil {
		return err
	}
	at := 0
	for i, n := range s.sizes {
		x := a.Disc[i]
		if x < 0 || int(x) >= n {
			return s.outside(x, n)
		}
		if !mask[at+int(x)] {
			return s.Masked(x)
		}
		at += n
	}
	return nil
}

// Index returns the number of an action with one factor, after checking everything except the mask.
func (s *Shell) Index(a env.Action) (int32, error) {
	if err := s.Shape(a); err != nil {
		return 0, err
	}
	if x := a.Disc[0]; x < 0 || int(x) >= s.sizes[0] {
		return 0, s.outside(x, s.sizes[0])
	}
	return a.Disc[0], nil
}

// Masked returns the error for an action that the mask forbids.
func (s *Shell) Masked(x int32) error {
	return fmt.Errorf("%w: %s: %d is masked", env.ErrIllegalAction, s.id, x)
}

// Shape checks the number of parts of action a.
func (s *Shell) Shape(a env.Action) error {
	if len(a.Disc) == len(s.sizes) && len(a.Cont) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: %d indices and %d numbers, want %d and 0",
		env.ErrIllegalAction, s.id, len(a.Disc), len(a.Cont), len(s.sizes))
}

func (s *Shell) outside(x int32, n int) error {
	return fmt.Errorf("%w: %s: %d, want 0 to %d", env.ErrIllegalAction, s.id, x, n-1)
}

// Took records that action a was taken and led to a time step of kind kind. It returns the kind to show: env.Truncated
// in place of env.Mid once the specification's MaxSteps actions have been taken.
func (s *Shell) Took(a env.Action, kind env.Kind) env.Kind {
	s.record.Actions = append(s.record.Actions, a.Disc...)
	if kind == env.Mid && s.maxSteps > 0 && s.Steps() >= s.maxSteps {
		kind = env.Truncated
	}
	s.kind = kind
	return kind
}

// Break ends an episode after an error in the middle of a step. The environment then needs a Reset.
func (s *Shell) Break() { s.begun = false }

// Episode returns the current episode. Its Task belongs to the shell.
func (s *Shell) Episode() env.Episode { return s.record.Episode }

// Actions returns the actions taken, step by step, with all factors of a step in a row. They belong to the shell.
func (s *Shell) Actions() []int32 { return s.record.Actions }

// Steps returns the number of actions taken.
func (s *Shell) Steps() int { return len(s.record.Actions) / len(s.sizes) }

// Kind returns the kind of the current time step.
func (s *Shell) Kind() env.Kind { return s.kind }

// AppendSnapshot implements env.Snapshotter: it writes the episode and its actions, as Record does.
func (s *Shell) AppendSnapshot(dst []byte) ([]byte, error) {
	if err := s.Current(); err != nil {
		return dst, err
	}
	return s.record.Append(dst, len(s.sizes)), nil
}

// RestoreSnapshot implements env.Snapshotter for e, the environment whose shell this is.
func (s *Shell) RestoreSnapshot(e env.Env, src []byte, ts *env.TimeStep) error {
	if s.closed {
		return env.ErrClosed
	}
	to, err := parseRecord(src, len(s.sizes))
	if err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	return s.Replay(e, to, ts)
}

// Replay restores e, the environment whose shell this is, to the state of record to by playing the episode again, and
// fills ts. If the record cannot be played, e is restored to its own state and the error is env.ErrSnapshot.
func (s *Shell) Replay(e env.Env, to Record, ts *env.TimeStep) error {
	if s.closed {
		return env.ErrClosed
	}
	back, begun := s.record.clone(), s.begun
	spec := e.Spec()
	out := env.NewTimeStep(spec)
	if err := to.play(e, out); err != nil {
		if begun { // e's own episode can be played again
			if err := back.play(e, env.NewTimeStep(spec)); err != nil {
				return err
			}
		}
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	ts.Kind, ts.Reward, ts.Elapsed = out.Kind, out.Reward, out.Elapsed
	copy(ts.Obs, out.Obs)
	copy(ts.Mask, out.Mask)
	copy(ts.Info, out.Info)
	return nil
}

// Render implements env.Renderer: it writes to w what draw writes to b. It returns the errors of a closed environment,
// an unknown mode and a missing Reset, in this order.
func (s *Shell) Render(w io.Writer, mode string, draw func(b *strings.Builder)) error {
	switch {
	case s.closed:
		return env.ErrClosed
	case mode != "ansi":
		return fmt.Errorf("%s: render mode %q, want ansi; Paint draws rgb_array", s.id, mode)
	case !s.begun:
		return env.ErrResetNeeded
	}
	var b strings.Builder
	draw(&b)
	_, err := io.WriteString(w, b.String())
	return err
}
