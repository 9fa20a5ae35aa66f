package maml

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/replay"
)

// Model is what the learner needs of a policy: its parameters, which it sets, and gradients at them.
type Model interface {
	agents.Policy
	// Params returns the parameters. Changing them changes the policy.
	Params() *nets.Params
	// Numbers returns the continuous actions of the last Act as they were drawn, row after row.
	Numbers() []float32
	// Greedy returns the policy of the most likely actions, with the same parameters.
	Greedy() agents.Policy
	// Score fills e's LogProb, Head and LogStd as if this policy had acted.
	Score(e *replay.Episodes) error
	// Surrogate returns the loss −mean(min(r·A, clip(r, 1±clip)·A)) − ent·entropy over e; clip 0 does not clip. Its
	// gradient overwrites g; nil means that it is not wanted.
	Surrogate(g *nets.Params, e *replay.Episodes, clip, ent float64) (loss float64, err error)
	// Divergence returns the mean divergence from the policy that acted. Its gradient overwrites g; nil means that it
	// is not wanted.
	Divergence(g *nets.Params, e *replay.Episodes) (kl float64, err error)
}

// Teller is a Model without continuous actions that can tell after Act what Score would write, so that Score need not
// compute the episodes once more.
type Teller interface {
	// Told returns what Score writes for row i of the last Act and its action: LogProb and the row of Head, which is valid
	// until the next Act.
	Told(i int, a env.Action) (logProb float32, head []float32)
}

// Valuer is a Model that computes both losses in one forward pass, without gradients.
type Valuer interface {
	// Values returns what Surrogate and Divergence return.
	Values(e *replay.Episodes, clip, ent float64) (loss, kl float64, err error)
}

// Task is one of a Distribution's tasks.
type Task struct {
	// Values are for env.Episode.Task; nil means the environment's own.
	Values []float64
	// Variant names one of several dynamics, for a Distribution that has them.
	Variant int
	// Seed is the seed from which the task's episodes are drawn.
	Seed uint64
	// Same makes all episodes of the task use Seed itself: they begin alike and differ only by the actions.
	Same bool
}

// Distribution is a distribution over tasks.
type Distribution interface {
	// Open returns a new environment; they all have the same spec.
	Open() (env.Env, error)
	// Sample draws n tasks.
	Sample(src *rand.Rand, n int) ([]Task, error)
	// Enter makes e an environment of the task, before every reset. The environment itself interprets the task's
	// Values.
	Enter(e env.Env, t Task) error
}

// Family is the Distribution of an environment that can draw tasks itself.
type Family struct {
	open func() (env.Env, error)
	draw env.Tasker
	size int
}

// NewFamily returns the family of the environments that open opens, or an error if they draw no tasks.
func NewFamily(open func() (env.Env, error)) (*Family, error) {
	e, err := open()
	if err != nil {
		return nil, err
	}
	t, ok := e.(env.Tasker)
	if !ok {
		id := e.Spec().ID
		return nil, errors.Join(fmt.Errorf("maml: %s has no tasks to draw from", id), e.Close())
	}
	f := &Family{open: open, draw: t}
	for _, s := range t.TaskSpec() {
		f.size += s.Len()
	}
	return f, nil
}

// Open implements Distribution.
func (f *Family) Open() (env.Env, error) { return f.open() }

// Enter implements Distribution: the task's Values say everything.
func (f *Family) Enter(env.Env, Task) error { return nil }

// Sample implements Distribution.
func (f *Family) Sample(src *rand.Rand, n int) ([]Task, error) {
	tasks := make([]Task, n)
	for i := range tasks {
		tasks[i].Values = make([]float64, f.size)
		f.draw.SampleTask(src, tasks[i].Values)
		tasks[i].Seed = src.Uint64()
	}
	return tasks, nil
}

// workerState is a worker's environments, policy and scratch. What it computes depends on the task alone.
type workerState struct {
	world Distribution
	spec  env.Spec
	model Model
	envs  []env.Env
	steps []*env.TimeStep
	batch *env.Batch
	act   *env.Actions
	rows  []int // of the batch: the environments whose episodes have not ended
	src   []*rand.Rand
	pcg   []*rand.PCG
	recs  []*replay.Episodes // of each environment

	base   *baseline
	differ *Differ[float32]
	grad   *nets.Params // as the model's
	g, u   []float32
}

func newHand(w Distribution, m Model, cfg *Config, rows int) (*workerState, error) {
	h := &workerState{world: w, model: m}
	for range rows {
		e, err := w.Open()
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		h.envs = append(h.envs, e)
	}
	h.spec = h.envs[0].Spec()
	h.batch, h.act = env.NewBatch(h.spec, rows), env.NewActions(h.spec, rows)
	for range rows {
		p := new(rand.PCG)
		h.steps = append(h.steps, env.NewTimeStep(h.spec))
		h.pcg, h.src = append(h.pcg, p), append(h.src, rand.New(p))
	}
	var err error
	if h.base, err = newBaseline(cfg.Baseline, h.spec.ObsLen(), len(h.spec.Info)); err != nil {
		return nil, errors.Join(err, h.close())
	}
	size := len(m.Params().Data)
	h.differ, h.grad = NewDiffer[float32](size, cfg.HVPReach), m.Params().Like()
	h.g, h.u = make([]float32, size), make([]float32, size)
	return h, nil
}

func (h *workerState) close() error {
	var errs []error
	for _, e := range h.envs {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

// set sets the model's parameters.
func (h *workerState) set(x []float32) { copy(h.model.Params().Data, x) }

// play fills dst with n episodes of task t by policy p. Every episode of a phase has its own streams, so neither the
// number of environments nor the other episodes matter.
func (h *workerState) play(ctx context.Context, dst *replay.Episodes, t Task, phase, n int, p agents.Policy) error {
	dst.Reset()
	for from := 0; from < n; from += len(h.envs) {
		if err := h.round(ctx, dst, t, phase, from, min(len(h.envs), n-from), p); err != nil {
			return err
		}
	}
	return nil
}

// round plays n episodes side by side and adds them in order.
func (h *workerState) round(ctx context.Context, dst *replay.Episodes, t Task, phase, first, n int,
	p agents.Policy) error {
	for len(h.recs) < n {
		h.recs = append(h.recs, dst.Like())
	}
	recs := h.recs[:n]
	h.rows = h.rows[:0]
	for j := range n {
		recs[j].Reset()
		if err := h.begin(ctx, t, phase, first+j, j); err != nil {
			return err
		}
		h.rows = append(h.rows, j)
	}
	o, m, f, c := h.spec.ObsLen(), h.spec.MaskLen(), len(h.spec.Action.Sizes), len(h.spec.Action.Low)
	numbers := h.model.Numbers
	var tell Teller
	if p == agents.Policy(h.model) {
		tell, _ = h.model.(Teller)
	}
	src := make([]*rand.Rand, len(h.envs))
	for len(h.rows) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		k := len(h.rows)
		b := &env.Batch{N: k, Kind: h.batch.Kind[:k], Obs: h.batch.Obs[:k*o], Mask: h.batch.Mask[:k*m]}
		a := &env.Actions{N: k, Disc: h.act.Disc[:k*f], Cont: h.act.Cont[:k*c]}
		for i, j := range h.rows {
			s := h.steps[j]
			b.Kind[i] = s.Kind
			copy(b.Obs[i*o:], s.Obs)
			copy(b.Mask[i*m:], s.Mask)
			src[i] = h.src[j]
		}
		if err := p.Act(ctx, b, a, src[:k]); err != nil {
			return err
		}
		var drawn []float32
		if c > 0 {
			drawn = numbers()
		}
		left := h.rows[:0]
		for i, j := range h.rows {
			act := env.Action{Disc: a.Disc[i*f : (i+1)*f], Cont: a.Cont[i*c : (i+1)*c]}
			var num []float32
			if len(drawn) >= k*c { // a greedy policy draws none
				num = drawn[i*c : (i+1)*c]
			}
			recs[j].Act(h.steps[j], act, num)
			if tell != nil {
				logp, head := tell.Told(i, act)
				recs[j].LogProb, recs[j].Head = append(recs[j].LogProb, logp), append(recs[j].Head, head...)
			}
			if err := h.envs[j].Step(ctx, act, h.steps[j]); err != nil {
				return fmt.Errorf("maml: %w", err)
			}
			if r := h.steps[j].Reward; r-r != 0 {
				return fmt.Errorf("maml: %s gave a reward of %v", h.spec.ID, r)
			}
			recs[j].After(h.steps[j])
			if !h.steps[j].Kind.Last() {
				left = append(left, j)
			}
		}
		h.rows = left
	}
	for _, r := range recs {
		dst.Append(r)
	}
	return nil
}

// begin begins episode number at of a phase of task t in environment j.
func (h *workerState) begin(ctx context.Context, t Task, phase, at, j int) error {
	if err := h.world.Enter(h.envs[j], t); err != nil {
		return err
	}
	seed := rng.At(t.Seed, uint64(phase), uint64(at))
	rng.Seed(h.pcg[j], seed, "maml/act")
	if t.Same {
		seed = t.Seed
	}
	if err := h.envs[j].Reset(ctx, env.Episode{Seed: seed, Window: -1, Task: t.Values}, h.steps[j]); err != nil {
		return fmt.Errorf("maml: %w", err)
	}
	return nil
}

// experience returns n episodes by the policy of parameters x, scored, with their advantages.
func (h *workerState) experience(ctx context.Context, dst *replay.Episodes, t Task, phase, n int, x []float32,
	lambda float64) error {
	h.set(x)
	if err := h.play(ctx, dst, t, phase, n, h.model); err != nil {
		return err
	}
	if len(dst.LogProb) != dst.Len() {
		if err := h.model.Score(dst); err != nil {
			return err
		}
	}
	return h.base.advantages(dst, lambda)
}

// surrogate returns the gradient of the loss over e.
func (h *workerState) surrogate(e *replay.Episodes, clip, ent float64) Gradient[float32] {
	return func(g, x []float32) error {
		h.set(x)
		_, err := h.model.Surrogate(h.grad, e, clip, ent)
		copy(g, h.grad.Data)
		return err
	}
}

// divergence returns the gradient of the divergence over e.
func (h *workerState) divergence(e *replay.Episodes) Gradient[float32] {
	return func(g, x []float32) error {
		h.set(x)
		_, err := h.model.Divergence(h.grad, e)
		copy(g, h.grad.Data)
		return err
	}
}
