package ppo

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/nets/kernel"
	"clustergym/nets/model"
)

// piece is the number of rows that a network sees at a time when acting. A row's bits do not depend on the other
// rows, so cutting a batch into pieces, on any number of workers, changes nothing.
const piece = 64

// checkSpec says why this algorithm cannot act in an environment, nil if it can.
func checkSpec(s env.Spec) error {
	if len(s.Action.Sizes) != 1 || len(s.Action.Low) > 0 {
		return fmt.Errorf("ppo: %s has %d discrete factors and %d continuous actions, want one factor and no continuous actions",
			s.ID, len(s.Action.Sizes), len(s.Action.Low))
	}
	if s.ObsLen() == 0 {
		return fmt.Errorf("ppo: %s has no observation", s.ID)
	}
	return nil
}

// input describes the observation to the network.
func input(s env.Spec) model.Input {
	in := make(model.Input, len(s.Obs))
	for i, f := range s.Obs {
		in[i] = model.Field{Name: f.Name, Shape: f.Shape}
	}
	return in
}

// newNet builds the network; its initial weights follow from seed alone.
func newNet(cfg Config, s env.Spec, seed uint64) (*model.ActorCritic, error) {
	net, err := model.NewActorCritic(cfg.Network, input(s), s.Action.Sizes[0], rng.Stream(seed, "ppo/init"))
	if err != nil {
		return nil, fmt.Errorf("ppo: network for %s: %w", s.ID, err)
	}
	return net, nil
}

// forward runs the network over batches of any size, piece by piece on workers goroutines.
type forward struct {
	workers int
	obsLen  int
	actions int
	nets    []*model.ACForward // one for each worker

	// The call under way, in fields so that passing it to goroutines allocates nothing.
	n      int
	obs    []float32
	logits []float32 // nil = not wanted
	value  []float32 // nil = not wanted
	piece  func(worker, i int) error
}

func newForward(m *model.ActorCritic, obsLen, workers int) *forward {
	f := &forward{workers: max(workers, 1), obsLen: obsLen, actions: m.Actions()}
	for range f.workers {
		f.nets = append(f.nets, m.Forward(piece))
	}
	f.piece = f.runPiece
	return f
}

// run fills logits [n, actions] and value [n], either of which may be nil.
func (f *forward) run(ctx context.Context, obs []float32, n int, logits, value []float32) error {
	f.n, f.obs, f.logits, f.value = n, obs, logits, value
	err := par.For(ctx, f.workers, (n+piece-1)/piece, f.piece)
	f.obs, f.logits, f.value = nil, nil, nil
	return err
}

func (f *forward) runPiece(worker, i int) error {
	from, to := i*piece, min((i+1)*piece, f.n)
	logits, value := f.nets[worker].Run(f.obs[from*f.obsLen:to*f.obsLen], to-from)
	if f.logits != nil {
		copy(f.logits[from*f.actions:to*f.actions], logits)
	}
	if f.value != nil {
		copy(f.value[from:to], value)
	}
	return nil
}

// actor turns logits into actions. Buffers grow with the largest batch seen.
type actor struct {
	spec    env.Spec
	actions int
	logits  []float32 // [N, actions]
	mask    []float32 // [N, actions], 1 = legal
	logp    []float32 // [N, actions], after masking
	weights []float64 // [actions], scratch of one row
}

func newActor(s env.Spec) actor {
	a := s.Action.Sizes[0]
	return actor{spec: s, actions: a, weights: make([]float64, a)}
}

// fit makes room for n rows and checks the batch.
func (a *actor) fit(b *env.Batch, dst *env.Actions, src []*rand.Rand, draws bool) error {
	n := b.N
	if dst.N != n || len(dst.Disc) < n || draws && len(src) < n {
		return fmt.Errorf("ppo: a batch of %d rows, room for %d actions and %d streams, want as many of each", n, len(dst.Disc), len(src))
	}
	if len(b.Obs) < n*a.spec.ObsLen() || len(b.Mask) < n*a.actions || len(b.Kind) < n {
		return fmt.Errorf("ppo: a batch of %d rows with %d observations and %d mask bits does not fit %s", n, len(b.Obs), len(b.Mask), a.spec.ID)
	}
	if len(a.mask) < n*a.actions {
		a.logits, a.mask, a.logp = make([]float32, n*a.actions), make([]float32, n*a.actions), make([]float32, n*a.actions)
	}
	for k, legal := range b.Mask[:n*a.actions] {
		a.mask[k] = 0
		if legal {
			a.mask[k] = 1
		}
	}
	return nil
}

// distribution fills logp for n rows. The losses compute theirs with the same kernel from the same logits, so the
// ratio of probabilities is exactly 1 before the first step of an update.
func (a *actor) distribution(n int) {
	kernel.LogSoftmax(a.logp[:n*a.actions], a.logits[:n*a.actions], a.mask[:n*a.actions], n, a.actions)
}

// sample draws row i's action by inversion: the first legal action whose cumulative probability, summed in float64
// and in order, exceeds one uniform draw. Exactly one number is taken from src. An ended row (whose mask may be
// empty, and whose action is ignored) gets action 0 when nothing is legal.
func (a *actor) sample(b *env.Batch, i int, src *rand.Rand) (int32, error) {
	u := src.Float64()
	logp, mask := a.logp[i*a.actions:(i+1)*a.actions], a.mask[i*a.actions:(i+1)*a.actions]
	total, last := 0.0, -1
	for k, lp := range logp {
		a.weights[k] = 0
		if mask[k] != 0 {
			a.weights[k] = math.Exp(float64(lp))
			total += a.weights[k]
			last = k
		}
	}
	if last < 0 {
		return a.none(b, i)
	}
	if !(total > 0) { // NaN too
		return 0, fmt.Errorf("ppo: row %d: the policy's probabilities sum to %v", i, total)
	}
	u *= total
	sum := 0.0
	for k, w := range a.weights {
		sum += w
		if w > 0 && u < sum {
			return int32(k), nil
		}
	}
	return int32(last), nil // u was pushed to the total by rounding
}

// best is row i's legal action of the largest logit, the first among equals; but doing nothing (env.Spec.NoOp) must
// be likelier than all other actions together. A choice that is split among many like actions (ten short jobs to
// start) would else lose against a wait that nobody prefers: acting or not is decided first, then how.
func (a *actor) best(b *env.Batch, i int) (int32, error) {
	logits, mask := a.logits[i*a.actions:(i+1)*a.actions], a.mask[i*a.actions:(i+1)*a.actions]
	best, noop := -1, a.spec.NoOp
	for k, v := range logits {
		if mask[k] == 0 {
			continue
		}
		if v != v {
			return 0, fmt.Errorf("ppo: row %d: logit %d is NaN", i, k)
		}
		if k != noop && (best < 0 || v > logits[best]) {
			best = k
		}
	}
	if noop < 0 || noop >= len(logits) || mask[noop] == 0 {
		if best < 0 {
			return a.none(b, i)
		}
		return int32(best), nil
	}
	if best < 0 {
		return int32(noop), nil
	}
	others := 0.0 // the weight of all others against that of doing nothing
	for k, v := range logits {
		if mask[k] != 0 && k != noop {
			others += math.Exp(float64(v) - float64(logits[noop]))
		}
	}
	if others < 1 {
		return int32(noop), nil
	}
	return int32(best), nil
}

func (a *actor) none(b *env.Batch, i int) (int32, error) {
	if b.Kind[i].Last() {
		return 0, nil
	}
	return 0, fmt.Errorf("ppo: row %d has no legal action", i)
}

// Policy acts by a network's parameters, greedily or by sampling. It takes batches of any size. It has its own
// buffers and shares the parameters: use one for each goroutine, and none while somebody learns.
type Policy struct {
	fwd    *forward
	act    actor
	net    *model.ActorCritic
	sample bool
}

var _ agents.Policy = (*Policy)(nil)

func newPolicy(net *model.ActorCritic, s env.Spec, workers int) *Policy {
	return &Policy{fwd: newForward(net, s.ObsLen(), workers), act: newActor(s), net: net}
}

// NewPolicy returns the greedy policy of saved weights ("weights.safetensors" of a checkpoint) for environments of
// spec s. cfg.Network must be what they were trained with; errors name the first tensor that does not fit.
func NewPolicy(cfg Config, s env.Spec, weights io.Reader) (*Policy, error) {
	if err := cfg.Network.Validate(); err != nil {
		return nil, err
	}
	if err := checkSpec(s); err != nil {
		return nil, err
	}
	net, err := newNet(cfg, s, 0)
	if err != nil {
		return nil, err
	}
	if _, err := net.Params().ReadFrom(weights); err != nil {
		return nil, fmt.Errorf("ppo: weights for %s: %w", s.ID, err)
	}
	return newPolicy(net, s, 1), nil
}

// Sampling returns the policy that draws from the distribution instead of taking its most likely action. It
// shares p's parameters.
func (p *Policy) Sampling() *Policy {
	q := newPolicy(p.net, p.act.spec, p.fwd.workers)
	q.sample = true
	return q
}

// Act chooses one legal action for every row of b. A greedy policy draws nothing, and src may be nil.
func (p *Policy) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if err := p.act.fit(b, dst, src, p.sample); err != nil {
		return err
	}
	if err := p.fwd.run(ctx, b.Obs, b.N, p.act.logits, nil); err != nil {
		return err
	}
	if p.sample {
		p.act.distribution(b.N)
	}
	for i := 0; i < b.N; i++ {
		var err error
		if p.sample {
			dst.Disc[i], err = p.act.sample(b, i, src[i])
		} else {
			dst.Disc[i], err = p.act.best(b, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
