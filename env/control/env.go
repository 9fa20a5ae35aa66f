package control

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/snap"
)

// problem is the part of an environment that differs between problems. Its callers pass only legal actions and call
// its methods in order; its random draws come from src only.
type problem interface {
	// reset draws the start of an episode.
	reset(src *rand.Rand)
	// step takes a legal action; end is env.Mid if the episode continues. Env applies Spec.MaxSteps.
	step(a env.Action, src *rand.Rand) (reward float64, end env.Kind)
	// observe writes the current observation and the legal actions, every element of both.
	observe(obs []float32, mask []bool)
	// save appends the state. load reads it and reports whether it is possible in an episode of that many steps whose
	// last time step was of this kind.
	save(dst []byte) []byte
	load(r *snap.Reader, steps int, kind env.Kind) bool
}

// family is a problem with a family of tasks.
type family interface {
	problem
	// taskSpec describes a task, sampleTask draws one.
	taskSpec() []env.Field
	sampleTask(src *rand.Rand, dst []float64)
	// setTask replaces the task that reset drew, so that all other draws of the episode stay as they are.
	setTask(task []float64)
}

// Env is one of this package's problems as an environment. It implements env.Env, env.Snapshotter,
// env.Renderer and env.Painter.
type Env struct {
	spec env.Spec
	make func() problem
	p    problem
	task []env.Field // nil if there are no tasks
	pcg  rand.PCG
	rand *rand.Rand

	obs    []float32 // of the current state
	mask   []bool
	kind   env.Kind
	reward float64
	steps  int
	begun  bool
	closed bool
}

var (
	_ env.Env         = (*Env)(nil)
	_ env.Snapshotter = (*Env)(nil)
	_ env.Renderer    = (*Env)(nil)
	_ env.Tasker      = (*Family)(nil)
)

// Family is an Env with a family of tasks: it also implements env.Tasker.
type Family struct{ *Env }

// TaskSpec describes a task. A non-nil Episode.Task must stay within its bounds.
func (f *Family) TaskSpec() []env.Field { return f.p.(family).taskSpec() }

// SampleTask draws a task.
func (f *Family) SampleTask(src *rand.Rand, dst []float64) { f.p.(family).sampleTask(src, dst) }

func newEnv(spec env.Spec, mk func() problem) *Env {
	e := &Env{
		spec: spec, make: mk, p: mk(),
		obs: make([]float32, spec.ObsLen()), mask: make([]bool, spec.MaskLen()),
	}
	e.rand = rand.New(&e.pcg)
	if f, ok := e.p.(family); ok {
		e.task = f.taskSpec()
	}
	return e
}

// Spec describes the problem.
func (e *Env) Spec() env.Spec { return e.spec }

// Close closes e: every later call returns env.ErrClosed.
func (e *Env) Close() error {
	e.closed = true
	return nil
}

// Reset begins an episode. Its draws depend only on ep.Seed. In a problem with tasks, a nil ep.Task means that the
// task is drawn too; the other draws are the same either way.
func (e *Env) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if e.closed {
		return env.ErrClosed
	}
	e.begun = false // until this Reset has succeeded
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.checkTask(ep.Task); err != nil {
		return fmt.Errorf("%w: %s: %w", env.ErrEpisode, e.spec.ID, err)
	}
	if ep.Split != "" {
		return fmt.Errorf("%w: %s: split %q, want none, for it has no workload", env.ErrEpisode, e.spec.ID, ep.Split)
	}
	rng.Seed(&e.pcg, ep.Seed, e.spec.ID)
	e.p.reset(e.rand)
	if len(ep.Task) > 0 {
		e.p.(family).setTask(ep.Task)
	}
	e.kind, e.reward, e.steps, e.begun = env.First, 0, 0, true
	e.p.observe(e.obs, e.mask)
	e.fill(ts)
	return nil
}

// Step applies one action.
func (e *Env) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if e.closed {
		return env.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !e.begun || e.kind.Last() {
		return env.ErrResetNeeded
	}
	if err := e.checkAction(a); err != nil {
		return fmt.Errorf("%w: %s: %w", env.ErrIllegalAction, e.spec.ID, err)
	}
	e.reward, e.kind = e.p.step(a, e.rand)
	e.steps++
	if e.kind == env.Mid && e.steps == e.spec.MaxSteps {
		e.kind = env.Truncated
	}
	e.p.observe(e.obs, e.mask)
	e.fill(ts)
	return nil
}

// checkAction returns why a is illegal, or nil.
func (e *Env) checkAction(a env.Action) error {
	s := &e.spec.Action
	if len(a.Disc) != len(s.Sizes) || len(a.Cont) != len(s.Low) {
		return fmt.Errorf("%d indices and %d numbers, want %d and %d", len(a.Disc), len(a.Cont), len(s.Sizes), len(s.Low))
	}
	at := 0
	for i, n := range s.Sizes {
		k := int(a.Disc[i])
		if k < 0 || k >= n {
			return fmt.Errorf("%d, want 0 to %d", k, n-1)
		}
		if !e.mask[at+k] {
			return fmt.Errorf("%d is masked", k)
		}
		at += n
	}
	for i, x := range a.Cont {
		if !(x >= s.Low[i] && x <= s.High[i]) { // the negation also catches NaN
			return fmt.Errorf("number %d is %v, want %v to %v", i, x, s.Low[i], s.High[i])
		}
	}
	return nil
}

// checkTask returns what is wrong with a task, or nil.
func (e *Env) checkTask(task []float64) error {
	if len(task) == 0 {
		return nil
	}
	n := 0
	for _, f := range e.task {
		n += f.Len()
	}
	if n == 0 {
		return fmt.Errorf("a task of %d numbers, want none", len(task))
	}
	if len(task) != n {
		return fmt.Errorf("a task of %d numbers, want %d", len(task), n)
	}
	at := 0
	for _, f := range e.task {
		for i := range f.Len() {
			if v := task[at]; !(v >= float64(f.Low) && v <= float64(f.High)) {
				return fmt.Errorf("task %s[%d] is %v, want %v to %v", f.Name, i, v, f.Low, f.High)
			}
			at++
		}
	}
	return nil
}

func (e *Env) fill(ts *env.TimeStep) {
	ts.Kind, ts.Reward, ts.Elapsed = e.kind, e.reward, 0
	copy(ts.Obs, e.obs)
	copy(ts.Mask, e.mask)
}

// snapshotMagic begins every snapshot, followed by the ID and a line feed.
const snapshotMagic = "clustergym control 1\n"

// AppendSnapshot appends the state of the episode; before the first Reset it returns env.ErrResetNeeded.
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) {
	if e.closed {
		return dst, env.ErrClosed
	}
	if !e.begun {
		return dst, env.ErrResetNeeded
	}
	b := snap.Begin(dst, snapshotMagic)
	b = snap.String(b, e.spec.ID)
	pcg, err := e.pcg.MarshalBinary()
	if err != nil {
		return dst, fmt.Errorf("%s: %w", e.spec.ID, err)
	}
	b = snap.Bytes(b, pcg)
	b = snap.Int(b, int(e.kind))
	b = snap.F64(b, e.reward)
	b = snap.Int(b, e.steps)
	b = e.p.save(b)
	return snap.Seal(b, len(dst)), nil
}

// RestoreSnapshot continues from src.
func (e *Env) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	if e.closed {
		return env.ErrClosed
	}
	r, err := snap.Open(src, snapshotMagic)
	if err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	if id := r.String(); id != e.spec.ID {
		return fmt.Errorf("%w: of %.40q, want %q", env.ErrSnapshot, id, e.spec.ID)
	}
	var pcg rand.PCG
	if err := pcg.UnmarshalBinary(r.Bytes()); err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	n, reward, steps := r.Int(), r.F64(), r.Int()
	kind := env.Kind(n & 3)
	p := e.make()
	ok := p.load(&r, steps, kind)
	if err := r.Done(); err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	limit := e.spec.MaxSteps
	if !ok || int(kind) != n || steps < 0 || limit > 0 && steps > limit ||
		(kind == env.First) != (steps == 0) || kind == env.First && reward != 0 ||
		math.IsNaN(reward) || math.IsInf(reward, 0) ||
		kind != env.Terminated && (kind == env.Truncated) != (limit > 0 && steps == limit) {
		return fmt.Errorf("%w: %s: impossible state", env.ErrSnapshot, e.spec.ID)
	}
	e.p, e.pcg = p, pcg
	e.kind, e.reward, e.steps, e.begun = kind, reward, steps, true
	e.p.observe(e.obs, e.mask)
	e.fill(ts)
	return nil
}
