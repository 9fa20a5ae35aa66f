package rollout

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/nearest"
	"clustergym/simulator/policyname"
	"clustergym/simulator/sim"
)

// Stopper looks ahead through the action space of an environment in which an action starts a visible job, stops a
// visible gang, or waits, such as JobSelect-v1 with preempt: true. It improves a rule that stops gangs. Its candidates
// are the rule's choice, waiting, starts, and moves: stops after which a visible job starts. The base plays on over the
// whole queue and stops gangs at the environment's cost. It is an agents.Policy for batches of one row: the
// environment's current time step. Not safe for concurrent use.
type Stopper struct {
	e      *sched.Env
	rule   *sched.Actor
	look   *stopping
	noop   int32
	k      int // slots, so row r is stopped by action k + r
	seed   uint64
	seeded bool
	gangs  []sim.Job // that may be stopped
	disc   [1]int32
	tally  Tally
}

// NewStopper returns an actor that improves rule, which plays the order called base through e's actions. A setup
// without a source draws from the training part of e's workload (RecordedOf).
func NewStopper(setup Setup, base string, rule *sched.Actor, e *sched.Env) (*Stopper, error) {
	cfg, parts := e.Config(), e.Parts()
	name := policyname.AtSlots(base).Looking(policyname.Rollout)
	switch {
	case !cfg.Estimates.Known():
		return nil, fmt.Errorf("%s: %s: %w", parts.ID, name, ErrBlind)
	case !slices.Contains(Stopping(), base):
		return nil, fmt.Errorf("%s: %s: no order %q that stops jobs to play on with, want %s", parts.ID, name, base,
			nearest.OneOf(base, Stopping()))
	case !e.Stops():
		return nil, fmt.Errorf("%s: %s stops running jobs, which preempt: false does not allow; want preempt: true", parts.ID,
			name)
	}
	var err error
	s := &Stopper{e: e, rule: rule, noop: int32(e.Spec().NoOp), k: e.Spec().NoOp - e.Rows()}
	if setup.Source == nil {
		if setup.Source, err = RecordedOf(e); err != nil {
			return nil, err
		}
	}
	s.look, err = newStopping(setup, base, parts.Placement, cfg.Estimates)
	return s, err
}

// Tally returns what the actor has decided so far.
func (s *Stopper) Tally() Tally { return s.tally }

// Act implements agents.Policy.
func (s *Stopper) Act(ctx context.Context, b *env.Batch, dst *env.Actions, _ []*rand.Rand) (err error) {
	if b.N != 1 {
		return fmt.Errorf("rollout: a batch of %d rows for a search in one environment", b.N)
	}
	dst.Disc[0], err = s.Action(ctx, b.Mask)
	return err
}

// Action returns the action to take at e's current time step, whose mask is given.
func (s *Stopper) Action(ctx context.Context, mask []bool) (int32, error) {
	st := s.e.State()
	if !s.seeded || s.seed != st.Seed {
		s.seed, s.seeded = st.Seed, true
		s.look.reseed(s.seed)
	}
	if d := s.look.goOn(st.View); d != nil {
		if a := s.action(st, d); a >= 0 && mask[a] {
			return a, nil
		}
		s.look.pending.open = false
	}
	own, err := s.rule.Action(mask, nil)
	if err != nil {
		return 0, err
	}
	s.disc[0] = own
	if _, err := s.e.Parts().Actions.Decode(env.Action{Disc: s.disc[:]}, st, s.look.own()); err != nil {
		return 0, err
	}
	s.gangs = s.gangs[:0]
	for i, j := range st.Running {
		if mask[s.k+i] {
			s.gangs = append(s.gangs, j)
		}
	}
	s.look.keep(s.e.Stoppable(), s.e.Parts().Stops.Min)
	d, err := s.look.choose(ctx, st.View, s.seed, st.Slots, s.gangs, mask[s.noop], &s.tally)
	if err != nil {
		return 0, err
	}
	return s.action(st, d), nil
}

// action returns the action that makes decision d. It returns −1 if no action makes it.
func (s *Stopper) action(st *sched.State, d *sim.Decision) int32 {
	switch d.Op {
	case sim.StartJob:
		return int32(slices.Index(st.Slots, d.Job))
	case sim.PreemptJob:
		if r := slices.Index(st.Running, d.Job); r >= 0 {
			return int32(s.k + r)
		}
		return -1
	}
	return s.noop
}
