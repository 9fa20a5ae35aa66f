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
	"clustergym/simulator/predict"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Actor looks ahead through the action space of an environment in which an action starts one of the visible jobs or
// waits, such as JobSelect-v1. Its candidates are the jobs in the slots that fit, in the order of the base, and
// waiting. The base plays on over the whole queue and skips what does not fit. It is an agents.Policy for batches of
// one row: the environment's current time step. Not safe for concurrent use.
type Actor struct {
	e      *sched.Env
	base   schedulers.Policy
	line   *line
	search *Search
	most   int
	noop   int32
	seed   uint64
	seeded bool
	slots  []sim.Job
	cands  []sim.Decision
	tally  Tally
}

// NewActor returns an actor that improves the order called base, such as sjf, in e. A setup without a source draws from
// the training part of e's workload (RecordedOf).
func NewActor(setup Setup, base string, e *sched.Env) (*Actor, error) {
	cfg, parts := e.Config(), e.Parts()
	name := policyname.AtSlots(base).Looking(policyname.Rollout)
	h := schedulers.Passing(base)
	h.Placement, h.Estimates, h.Hold = parts.Placement, cfg.Estimates, setup.Hold
	if cfg.ID != "" && base == "hold" && h.Hold.IsZero() {
		h.Hold = tuned.SteadyHold(cfg.Estimates)
	}
	if !cfg.Estimates.Known() {
		return nil, fmt.Errorf("%s: %s: %w", parts.ID, name, ErrBlind)
	}
	if !slices.Contains(schedulers.Bases(), base) && !schedulers.Written(base) {
		return nil, fmt.Errorf("%s: %s: no order %q to play on with, want %s", parts.ID, name, base,
			nearest.OneOf(base, schedulers.Bases()))
	}
	if err := h.Validate(); err != nil {
		return nil, err
	}
	noop := e.Spec().NoOp
	if _, pilot := parts.Actions.(sched.Pilot); pilot || len(e.Spec().Action.Sizes) != 1 || noop < 0 {
		return nil, fmt.Errorf("%s: %s starts jobs of slots or waits, which is no action here", parts.ID, name)
	}
	var err error
	a := &Actor{e: e, most: setup.Candidates, noop: int32(noop)}
	if setup.Source == nil {
		if setup.Source, err = RecordedOf(e); err != nil {
			return nil, err
		}
	}
	if a.search, err = setup.search(h, cfg.Estimates); err != nil {
		return nil, err
	}
	if a.base, err = schedulers.New(h); err != nil {
		return nil, err
	}
	a.line, err = newLine(h)
	return a, err
}

// RecordedOf returns the futures of the training part of e's workload, at e's load, with forecasts where jobs have
// some: stretched by the factor of the workload if e is a cluster in operation, else each by its own. It may be shared
// by environments over the same workload.
func RecordedOf(e *sched.Env) (*Recorded, error) {
	cfg, parts := e.Config(), e.Parts()
	return RecordedIn(parts.Windows, cfg)
}

// RecordedIn is RecordedOf for an environment over the windows w with these settings.
func RecordedIn(w sched.Windows, cfg sched.Config) (*Recorded, error) {
	t, ok := w.(interface {
		Jobs(p traces.Part) []traces.Job
	})
	if !ok {
		return nil, fmt.Errorf("rollout: windows of type %T have no training part to draw futures from", w)
	}
	var err error
	var maker predict.Maker
	if cfg.Estimates.Causal() {
		if maker, err = sched.Predictor(w, cfg.Estimates, cfg.Forecast); err != nil {
			return nil, err
		}
	}
	jobs := t.Jobs(traces.Training)
	if cfg.Mode == sched.Drained || cfg.Load == 0 {
		return NewRecorded(jobs, cfg.Window, cfg.Load, maker), nil
	}
	o, ok := w.(sched.Offering)
	if !ok || !(o.Offered() > 0) {
		return nil, fmt.Errorf("rollout: the load that windows of type %T offer is not known", w)
	}
	return NewSteady(jobs, cfg.Window, o.Offered()/cfg.Load, maker), nil
}

// Tally returns what the actor has decided so far.
func (a *Actor) Tally() Tally { return a.tally }

// Act implements agents.Policy.
func (a *Actor) Act(ctx context.Context, b *env.Batch, dst *env.Actions, _ []*rand.Rand) (err error) {
	if b.N != 1 {
		return fmt.Errorf("rollout: a batch of %d rows for a search in one environment", b.N)
	}
	dst.Disc[0], err = a.Action(ctx, b.Mask)
	return err
}

// Action returns the action to take at e's current time step, whose mask is given.
func (a *Actor) Action(ctx context.Context, mask []bool) (int32, error) {
	st := a.e.State()
	v := st.View
	if !a.seeded || a.seed != st.Seed {
		a.seed, a.seeded = st.Seed, true
		a.base.Reseed(a.seed)
		a.line.policy.Reseed(a.seed)
		a.search.Reseed(a.seed)
	}
	a.slots = a.slots[:0]
	for i, j := range st.Slots {
		if mask[i] {
			a.slots = append(a.slots, j)
		}
	}
	if len(a.slots) == 0 {
		if !mask[a.noop] {
			return int32(slices.Index(mask, true)), nil // it stops jobs only where nothing else is legal
		}
		return a.noop, nil
	}
	a.cands = grow(a.cands[:0])
	if err := a.line.first(v, a.base, st.Slots, &a.cands[0]); err != nil {
		return 0, err
	}
	waits := a.cands[0].Op != sim.StartJob
	if waits && !mask[a.noop] || !waits && !slices.Contains(a.slots, a.cands[0].Job) {
		a.cands, waits = a.cands[:0], false
	}
	most := a.most
	canWait := !waits && mask[a.noop] && len(v.Running()) > 0
	if canWait {
		most--
	}
	var err error
	if a.cands, err = a.line.add(v, a.slots, max(1, most), a.cands); err != nil {
		return 0, err
	}
	if len(a.cands) == 0 {
		return 0, fmt.Errorf("rollout: none of %d jobs that fit is placed", len(a.slots))
	}
	if canWait {
		a.cands = grow(a.cands)
	}
	best, err := a.search.take(ctx, v, a.seed, a.cands, &a.tally)
	if err != nil {
		return 0, err
	}
	if c := &a.cands[best]; c.Op == sim.StartJob {
		return int32(slices.Index(st.Slots, c.Job)), nil
	}
	return a.noop, nil
}
