package ddqn

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/nets/model"
	"clustergym/nets/optim"
	"clustergym/replay"
)

// buffer is what the agent needs of a replay beside drawing, which differs between the two kinds.
type buffer interface {
	Add(b *env.Batch, a *env.Actions, next *env.Batch) error
	Len() int
	Added() uint64
	io.WriterTo
	io.ReaderFrom
}

// Agent is a Q-learner for a fixed number of rows. The order of calls is Act, Observe, Act, Observe, …, with Learn
// after every Observe. Not safe for concurrent use.
type Agent struct {
	cfg     Config
	spec    env.Spec
	rows    int
	workers int

	net, target *model.QNet
	fwd         *model.QBatches
	opt         *optim.Adam
	scale       *replay.ReturnScale

	buffer      buffer
	uniform     *replay.Uniform     // one of these two is the buffer
	prioritized *replay.Prioritized // and the other nil

	draws     *rand.Rand // draws batches; draws from drawsPCG
	drawsPCG  *rand.PCG
	progress  float64 // share of the training that is done
	steps     int64   // environment steps observed
	intervals int64   // of TrainEvery steps since LearningStarts, learnt from or skipped
	targets   int64   // of TargetEvery steps after which the target was updated
	updates   int64   // gradient steps
	teaching  bool    // Learn is called by Study
	pace      float64 // learning rate of an imitation; 0 = as in training
	refill    bool    // resumed without the replay: wait until it is filled again

	q        []float32 // [rows, actions]
	explores []bool    // [rows]

	batch  *replay.Batch
	wanted []float32 // [Batch], targets of the values
	delta  []float32 // [Batch], errors
	reward float64   // factor of rewards in the current batch
	shards []shard
	own    []*worker // one for each goroutine
	grads  *optim.ShardSum
	work   func(worker, i int) error
	stats  agents.Stats
}

var _ agents.Agent = (*Agent)(nil)

// New returns an agent for rows environments of spec s that are stepped together, with weights that follow from seed.
// Up to workers goroutines share the work of acting and learning; their number changes nothing but speed. Errors name
// every fault of cfg, or say why Q-learning cannot act in the environment.
func New(cfg Config, s env.Spec, rows, workers int, seed uint64) (*Agent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if rows < 1 {
		return nil, fmt.Errorf("ddqn: got %d rows, want at least 1", rows)
	}
	net, err := newNet(cfg, s, seed)
	if err != nil {
		return nil, err
	}
	target, err := newNet(cfg, s, seed) // the same draws, hence a copy
	if err != nil {
		return nil, err
	}
	pcg := rng.Source(seed, "ddqn/replay")
	adam := optim.DefaultAdamConfig()
	adam.LR, adam.Eps = cfg.LR, cfg.AdamEps
	a := &Agent{
		cfg: cfg, spec: s, rows: rows, workers: max(workers, 1),
		net: net, target: target, fwd: net.Batches(workers),
		opt: optim.NewAdam(net.Params(), adam), scale: replay.NewReturnScale(rows),
		draws: rand.New(pcg), drawsPCG: pcg,
		q: make([]float32, rows*net.Actions()), explores: make([]bool, rows),
		batch: replay.NewBatch(s, cfg.Batch), wanted: make([]float32, cfg.Batch), delta: make([]float32, cfg.Batch),
	}
	r := replay.Config{Capacity: cfg.Buffer, NStep: cfg.NStep, Gamma: cfg.Gamma}
	if cfg.Prioritized {
		a.prioritized, err = replay.NewPrioritized(r, cfg.Priority, s, rows)
		a.buffer = a.prioritized
	} else {
		a.uniform, err = replay.NewUniform(r, s, rows)
		a.buffer = a.uniform
	}
	if err != nil {
		return nil, err
	}
	a.work = a.workShard
	for range min(a.workers, cfg.Shards) {
		w, err := newWorker(net, target, s.ObsLen(), (cfg.Batch+cfg.Shards-1)/cfg.Shards)
		if err != nil {
			return nil, fmt.Errorf("ddqn: %w", err)
		}
		a.own = append(a.own, w)
	}
	a.grads = optim.NewShardSum(a.own[0].loss.grad(), cfg.Shards, len(a.own))
	for i := range cfg.Shards {
		a.shards = append(a.shards, shard{from: i * cfg.Batch / cfg.Shards, to: (i + 1) * cfg.Batch / cfg.Shards})
	}
	return a, nil
}

// epsilon returns the share of random actions.
func (a *Agent) epsilon() float64 {
	if a.cfg.WarmupRandom && a.steps < int64(a.cfg.LearningStarts) {
		return 1
	}
	if a.progress >= a.cfg.EpsShare {
		return a.cfg.EpsEnd
	}
	return a.cfg.EpsStart + (a.cfg.EpsEnd-a.cfg.EpsStart)*a.progress/a.cfg.EpsShare
}

// rate returns the learning rate.
func (a *Agent) rate() float64 {
	if a.teaching && a.pace > 0 {
		return a.pace
	}
	if a.cfg.AnnealLR {
		return a.cfg.LR * (1 - a.progress)
	}
	return a.cfg.LR
}

// beta returns the exponent of the importance weights.
func (a *Agent) beta() float64 { return a.cfg.Beta + (1-a.cfg.Beta)*a.progress }

// Act chooses one legal action for every row of b: a random one with probability epsilon, otherwise the one of the
// largest value. A row draws one number from its stream, and a second when it explores.
func (a *Agent) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if b.N != a.rows {
		return fmt.Errorf("ddqn: a batch of %d rows for an agent of %d", b.N, a.rows)
	}
	if err := fits(a.spec, b, dst); err != nil {
		return err
	}
	if len(src) < a.rows {
		return fmt.Errorf("ddqn: %d streams for %d rows", len(src), a.rows)
	}
	eps, all := a.epsilon(), true
	for i := range a.explores {
		a.explores[i] = src[i].Float64() < eps
		all = all && a.explores[i]
	}
	if !all {
		if err := a.fwd.Run(ctx, b.Obs, b.Mask, b.N, a.q); err != nil {
			return err
		}
	}
	n := a.net.Actions()
	for i, explore := range a.explores {
		k, mask := 0, b.Mask[i*n:(i+1)*n]
		if explore {
			k = pick(mask, src[i])
		} else {
			k = agents.Best(a.q[i*n:(i+1)*n], mask)
		}
		var err error
		if dst.Disc[i], err = chosen(b, i, k); err != nil {
			return err
		}
	}
	return nil
}

// Observe adds a step of all rows to the replay.
func (a *Agent) Observe(b *env.Batch, act *env.Actions, next *env.Batch) error {
	if act.N == a.rows && len(act.Disc) >= a.rows {
		for i, k := range act.Disc[:a.rows] {
			if k < 0 || int(k) >= a.net.Actions() {
				return fmt.Errorf("ddqn: row %d: action %d of %d", i, k, a.net.Actions())
			}
		}
	}
	if err := a.buffer.Add(b, act, next); err != nil {
		return err
	}
	a.scale.Observe(a.spec, a.cfg.Gamma, next)
	for _, kind := range next.Kind[:a.rows] {
		if kind != env.First {
			a.steps++
		}
	}
	return nil
}

// Progress sets the share of the training that is done, which epsilon, beta and the learning rate follow.
func (a *Agent) Progress(share float64) { a.progress = min(max(share, 0), 1) }

// Greedy returns the policy without exploration. It shares the agent's parameters and takes batches of any size.
func (a *Agent) Greedy() agents.Policy {
	return &Policy{spec: a.spec, fwd: a.net.Batches(a.workers), net: a.net}
}

// Params returns the online network's parameters, shared with the agent.
func (a *Agent) Params() *nets.Params { return a.net.Params() }
