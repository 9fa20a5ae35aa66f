package maml

import (
	"context"
	"errors"
	"fmt"
	"math"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/nets/optim"
	"clustergym/replay"
)

// Learner meta-learns. It draws everything from its seed and the number of the iteration, so an interrupted run
// continues bit for bit. Not safe for concurrent use.
type Learner struct {
	cfg     Config
	world   Distribution
	workers int
	seed    uint64

	theta        *nets.Params // the parameters before adaptation
	adam         *optim.Adam
	workerStates []*workerState
	batch        []*trial
	grad         *nets.Params
	sums         []float64

	iteration int64
	steps     int64 // of environments
	stats     agents.Stats
}

// trial is one task of a meta-batch with the episodes played in it.
type trial struct {
	task   Task
	before []*replay.Episodes // of every inner step
	after  *replay.Episodes
	// the transitions of after that products with the curvature are made of; after itself if all are
	few  *replay.Episodes
	path Path[float32]
	out  []float32 // a gradient or a product with a direction
	loss float64   // after adaptation
	kl   float64
}

// New returns a learner whose parameters are those of the first model that model makes. All models must begin alike;
// each is used by one goroutine. Up to workers goroutines run side by side; their number changes nothing but speed.
func New(cfg Config, w Distribution, model func() (Model, error), workers int, seed uint64) (*Learner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	l := &Learner{cfg: cfg, world: w, workers: max(1, min(workers, cfg.Tasks)), seed: seed}
	for range l.workers {
		m, err := model()
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		h, err := newHand(w, m, &l.cfg, min(max(cfg.Before, cfg.After), maxRows))
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.workerStates = append(l.workerStates, h)
	}
	l.theta = l.workerStates[0].model.Params().Clone()
	l.grad, l.sums = l.theta.Like(), make([]float64, len(l.theta.Data))
	adam := optim.DefaultAdamConfig()
	adam.LR, adam.Eps = cfg.LR, 1e-5
	l.adam = optim.NewAdam(l.theta, adam)
	for range cfg.Tasks {
		t, err := l.newTrial()
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.batch = append(l.batch, t)
	}
	return l, nil
}

// maxRows is the most environments that a worker plays side by side.
const maxRows = 32

func (l *Learner) newTrial() (*trial, error) {
	t := &trial{path: NewPath[float32](l.cfg.inner(), len(l.theta.Data)), out: make([]float32, len(l.theta.Data))}
	for range l.cfg.inner() + 1 {
		e, err := replay.NewEpisodes(l.workerStates[0].spec, l.cfg.Gamma)
		if err != nil {
			return nil, err
		}
		t.before = append(t.before, e)
	}
	t.after = t.before[l.cfg.inner()]
	t.before = t.before[:l.cfg.inner()]
	return t, nil
}

// Close closes all environments.
func (l *Learner) Close() error {
	var errs []error
	for _, h := range l.workerStates {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// Params returns the parameters before adaptation. They belong to the learner.
func (l *Learner) Params() *nets.Params { return l.theta }

// Spec returns the spec of the environments.
func (l *Learner) Spec() env.Spec { return l.workerStates[0].spec }

// Iteration returns the number of meta-batches learnt from.
func (l *Learner) Iteration() int64 { return l.iteration }

// Steps returns the number of environment steps learnt from.
func (l *Learner) Steps() int64 { return l.steps }

// each calls fn for every task with a worker's state.
func (l *Learner) each(ctx context.Context, fn func(h *workerState, t *trial) error) error {
	return par.For(ctx, l.workers, len(l.batch), func(worker, i int) error {
		if err := fn(l.workerStates[worker], l.batch[i]); err != nil {
			return fmt.Errorf("task %d: %w", i, err)
		}
		return nil
	})
}

// Learn draws a meta-batch of tasks, adapts to each, and improves the parameters before adaptation. An error changes
// nothing. The statistics are valid until the next call.
func (l *Learner) Learn(ctx context.Context) (agents.Stats, error) {
	tasks, err := l.world.Sample(rng.Stream(rng.At(l.seed, uint64(l.iteration)), "maml/tasks"), l.cfg.Tasks)
	if err != nil {
		return nil, err
	}
	for i, t := range l.batch {
		t.task = tasks[i]
	}
	if err := l.each(ctx, l.collect); err != nil {
		return nil, fmt.Errorf("maml: iteration %d: %w", l.iteration, err)
	}
	old := l.theta.Clone()
	l.stats = l.stats[:0]
	switch {
	case l.cfg.Method == "reptile":
		err = l.reptile()
	case l.cfg.Outer == "ppo":
		err = l.proximal(ctx)
	default:
		err = l.trust(ctx)
	}
	if err == nil {
		if s := optim.GlobalNorm(l.theta); s-s != 0 {
			err = errors.New("a parameter is no number any more")
		}
	}
	if err != nil {
		copy(l.theta.Data, old.Data)
		return nil, fmt.Errorf("maml: iteration %d: %w", l.iteration, err)
	}
	l.iteration++
	var before, after, length float64
	for _, t := range l.batch {
		after += t.after.MeanReturn() / float64(len(l.batch))
		length += float64(t.after.Len()) / float64(t.after.Episodes()) / float64(len(l.batch))
		for k, e := range t.before {
			if k == 0 {
				before += e.MeanReturn() / float64(len(l.batch))
			}
			l.steps += int64(e.Len())
		}
		l.steps += int64(t.after.Len())
	}
	if l.cfg.inner() > 0 {
		l.add("return_before", before)
	}
	l.stats = append(l.stats,
		agents.Stat{Name: "return_after", Value: after},
		agents.Stat{Name: "length_after", Value: length}, agents.Stat{Name: "iterations", Value: float64(l.iteration)})
	return l.stats, nil
}

// collect plays a task before and after adaptation.
func (l *Learner) collect(h *workerState, t *trial) error {
	ctx := context.Background() // a task is played whole
	copy(t.path[0], l.theta.Data)
	for k, e := range t.before {
		if err := h.experience(ctx, e, t.task, k, l.cfg.Before, t.path[k], l.cfg.Lambda); err != nil {
			return err
		}
		if err := h.surrogate(e, 0, 0)(h.g, t.path[k]); err != nil {
			return err
		}
		Step(t.path[k+1], t.path[k], h.g, l.cfg.InnerLR)
	}
	return h.experience(ctx, t.after, t.task, phaseAfter, l.cfg.After, t.path.Last(), l.cfg.Lambda)
}

// Phases of a task besides the numbers of inner steps. Each phase has its own random streams.
const (
	phaseAfter = 1 << 20
	phaseJudge = 1 << 21
	phaseAdapt = 1 << 22
)

// inner returns the loss of inner step k, over the episodes played for that step.
func (t *trial) inner(h *workerState) func(k int) Gradient[float32] {
	return func(k int) Gradient[float32] { return h.surrogate(t.before[k], 0, 0) }
}

// adapt adapts from theta on the episodes already played.
func (l *Learner) adapt(h *workerState, t *trial, theta []float32) error {
	copy(t.path[0], theta)
	return Adapt(t.path, l.cfg.InnerLR, t.inner(h), h.g)
}

// pull transforms t.out, a gradient after adaptation, to the gradient at theta if products with Hessians are made.
func (l *Learner) pull(h *workerState, t *trial) error {
	if !l.cfg.second() {
		return nil
	}
	return h.differ.Pull(t.out, t.path, l.cfg.InnerLR, t.inner(h), h.g)
}

// mean sets dst to the mean of all tasks' out, summed in order in float64.
func (l *Learner) mean(dst []float32) {
	clear(l.sums)
	for _, t := range l.batch {
		for i, x := range t.out {
			l.sums[i] += float64(x)
		}
	}
	for i, s := range l.sums {
		dst[i] = float32(s / float64(len(l.batch)))
	}
}

// total returns the mean of value over the tasks.
func (l *Learner) total(value func(t *trial) float64) float64 {
	sum := 0.0
	for _, t := range l.batch {
		sum += value(t)
	}
	return sum / float64(len(l.batch))
}

func (l *Learner) add(name string, v float64) {
	if !math.IsNaN(v) {
		l.stats = append(l.stats, agents.Stat{Name: name, Value: v})
	}
}
