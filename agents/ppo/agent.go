package ppo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/nets/model"
	"clustergym/nets/optim"
	"clustergym/replay"
)

// Agent is a PPO learner for a fixed number of rows. The order of calls is Act, Observe, Act, Observe, …, with
// Learn after any Observe. Not safe for concurrent use.
type Agent struct {
	cfg     Config
	spec    env.Spec
	rows    int
	workers int

	net   *model.ActorCritic
	fwd   *model.ACBatches
	act   actor
	opt   *optim.Adam
	roll  *replay.Rollout
	scale *replay.ReturnScale

	rank     int      // of the replica
	exchange Exchange // with the other replicas, nil without any

	order    *rand.Rand // shuffles minibatches; draws from orderPCG
	orderPCG *rand.PCG
	progress float64 // share of the training that is done
	begun    float64 // the same, when the rollout began
	updates  int64   // gradient steps

	acted    bool        // Act was called and Observe was not
	step     env.Batch   // of the last Act, with observations as the network saw them
	taken    env.Actions // of the last Observe, with numbers as they were drawn
	value    []float32   // [rows], of the observations acted on
	logp     []float32   // [rows], of the actions observed
	final    []float32   // [rows], of truncated episodes' last observations
	last     []float32   // [rows], of the observations after the last step
	finalObs []float32   // [rows, ObsLen], of rows whose value is needed
	finalRow []int       // rows in finalObs

	losses  []*loss // one for each worker; with Config.CriticEpochs of the policy alone
	critic  *critic // with Config.CriticEpochs
	shards  []stats // of a minibatch
	grads   *optim.ShardSum
	index   []int // of live steps, shuffled
	batch   minibatch
	pass    []moments  // of the minibatches of a pass
	ahead   []float64  // for their exchange
	sums    [6]float64 // for exchanges, in a field so that it allocates nothing
	work    func(worker, i int) error
	groups  *groups // with Config.Baseline group
	average average // of the reward, with Config.Average
	popart  *popart // with Config.ValueNorm popart
	study   *study  // nil until a teacher is watched
	taught  taught
	pace    float64 // learning rate of an imitation; 0 = as in training
	anchor  *anchor // with Config.Anchor
	warm    int     // updates of the critic's warm-up that are done
	stats   agents.Stats
}

var _ agents.Agent = (*Agent)(nil)

// minibatch is the current call that shards work on, in a field so that passing it to goroutines allocates nothing.
type minibatch struct {
	index     []int     // of steps in the rollout
	advantage []float32 // normalised, in index's order
	coefs     coefs
	anchor    float64 // the weight of the anchor in this update
}

// New returns an agent for rows environments of spec s that are stepped together, with weights that follow from seed.
// Up to workers goroutines share the work of acting and learning; their number changes nothing but speed. Errors name
// every fault of cfg, or say why PPO cannot act in the environment.
func New(cfg Config, s env.Spec, rows, workers int, seed uint64) (*Agent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if rows < 1 {
		return nil, fmt.Errorf("ppo: got %d rows, want at least 1", rows)
	}
	if cfg.Steps > math.MaxInt32/rows {
		return nil, fmt.Errorf("ppo: a rollout of %d steps of %d rows is too large", cfg.Steps, rows)
	}
	size := cfg.Steps * rows
	if cfg.Batch == 0 && size < cfg.Minibatches {
		return nil, fmt.Errorf("ppo: %d minibatches of a rollout with %d steps (%d of %d rows), want no more than that",
			cfg.Minibatches, size, cfg.Steps, rows)
	}
	net, err := newNet(cfg, s, seed)
	if err != nil {
		return nil, err
	}
	roll, err := replay.NewRollout(s, cfg.Steps, rows, cfg.Gamma)
	if err != nil {
		return nil, err
	}
	pcg := rng.Source(seed, "ppo/order")
	adam := optim.DefaultAdamConfig()
	adam.LR, adam.Eps = cfg.LR, cfg.AdamEps
	roll.RewardClip = cfg.ClipReward
	_, largest := cfg.pieces(size)
	a := &Agent{
		cfg: cfg, spec: s, rows: rows, workers: max(workers, 1),
		net: net, fwd: net.Batches(workers), act: newActor(cfg, s, net.LogStd(),
			newObsScale(cfg, s)), opt: optim.NewAdam(net.Params(), adam),
		roll: roll, scale: replay.NewReturnScale(rows),
		order: rand.New(pcg), orderPCG: pcg,
		value: make([]float32, rows), logp: make([]float32, rows), final: make([]float32, rows), last: make([]float32, rows),
		finalObs: make([]float32, rows*s.ObsLen()), finalRow: make([]int, 0, rows),
		index: make([]int, 0, size), batch: minibatch{advantage: make([]float32, largest)},
		taken: env.Actions{Cont: make([]float32, rows*len(s.Action.Low))},
	}
	if cfg.timed() {
		roll.Timed()
		roll.LambdaTau = cfg.LambdaTau
	}
	if cfg.Baseline == ByGroup {
		if a.groups, err = newGroups(cfg, rows); err != nil {
			return nil, err
		}
	}
	if cfg.ValueNorm == PopArt {
		a.popart = newPopart()
	}
	if cfg.Anchor > 0 {
		if a.anchor, err = newAnchor(cfg, s, workers, seed, size); err != nil {
			return nil, err
		}
	}
	a.work = a.workShard
	for range min(a.workers, cfg.Shards) {
		l, err := newLoss(cfg.Loss, net, a.act.dist, s.ObsLen(), ceil(largest, cfg.Shards),
			lossParts{anchor: cfg.Anchor > 0, alone: cfg.CriticEpochs > 0})
		if err != nil {
			return nil, fmt.Errorf("ppo: %w", err)
		}
		a.losses = append(a.losses, l)
	}
	if cfg.CriticEpochs > 0 {
		if a.critic, err = newCritic(a, adam, ceil(largest, cfg.Shards)); err != nil {
			return nil, fmt.Errorf("ppo: %w", err)
		}
	}
	a.shards, a.grads = make([]stats, cfg.Shards), optim.NewShardSum(a.losses[0].grad(), cfg.Shards, len(a.losses))
	return a, nil
}

func ceil(n, k int) int { return (n + k - 1) / k }

// Act samples one legal action for every row of b and remembers values and probabilities for Observe. With
// Config.NormObs it counts the observations.
func (a *Agent) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if b.N != a.rows {
		return fmt.Errorf("ppo: a batch of %d rows for an agent of %d", b.N, a.rows)
	}
	a.acted = false
	if err := a.act.fit(b, dst, src, true); err != nil {
		return err
	}
	if a.act.scale != nil && a.exchange == nil {
		a.act.scale.Observe(b.Obs, b.N)
	}
	obs := a.act.seen(b.Obs, b.N)
	if err := a.fwd.Run(ctx, obs, b.N, a.act.head, a.value); err != nil {
		return err
	}
	a.popart.value(a.value)
	a.act.distribution(b.N)
	for i := range b.N {
		if err := a.act.sample(b, i, src[i], dst); err != nil {
			return err
		}
	}
	a.acted = true
	return nil
}

// ErrOrder is returned by Observe without a preceding call of Act.
var ErrOrder = errors.New("ppo: Observe without Act: the probabilities of the actions are not known")

// Observe adds a step to the rollout. b must be the batch of the last Act. The actions need not be those that Act
// chose, if they are legal. It returns replay.ErrFull while a full rollout waits for Learn.
func (a *Agent) Observe(b *env.Batch, act *env.Actions, next *env.Batch) error {
	if !a.acted {
		return ErrOrder
	}
	f, c := len(a.act.dist.Sizes), a.act.dist.Dims
	if b.N != a.rows || act.N != a.rows || len(act.Disc) < a.rows*f || len(act.Cont) < a.rows*c {
		return fmt.Errorf("ppo: a batch of %d rows with %d actions for %d rows", b.N, act.N, a.rows)
	}
	for i := range a.logp {
		var err error
		if a.logp[i], err = a.act.logProb(act, i, a.taken.Cont[i*c:(i+1)*c]); err != nil {
			return err
		}
	}
	if next.N != a.rows {
		return fmt.Errorf("ppo: a batch of %d rows for an agent of %d", next.N, a.rows)
	}
	a.step, a.taken.N, a.taken.Disc = *b, act.N, act.Disc
	if a.act.scale != nil {
		a.step.Obs = a.act.obs[:b.N*a.act.obsLen] // as they were scaled when they were acted on
	}
	if err := a.finalValues(next); err != nil {
		return err
	}
	begins := a.roll.Len() == 0
	if err := a.roll.Add(&a.step, &a.taken, next, a.logp, a.value, a.final); err != nil {
		return err
	}
	a.acted = false
	if begins {
		a.begun = a.progress
	}
	if a.groups != nil {
		if begins {
			a.groups.remember()
		}
		a.groups.follow(next)
	}
	if a.exchange == nil {
		a.scale.Observe(a.spec, a.cfg.Gamma, next)
	}
	if !a.roll.Full() {
		return nil
	}
	return a.bootstrap(next)
}

// bootstrap fills last after the rollout's last step.
func (a *Agent) bootstrap(next *env.Batch) error {
	obs := next.Obs
	if a.act.scale != nil {
		obs = a.finalObs
		a.act.scale.Apply(obs, next.Obs, a.rows)
	}
	err := a.fwd.Run(context.Background(), obs, a.rows, nil, a.last)
	a.popart.value(a.last)
	return err
}

// finalValues fills final for the rows that were truncated.
func (a *Agent) finalValues(next *env.Batch) error {
	o := a.spec.ObsLen()
	a.finalRow = a.finalRow[:0]
	at := 0
	for i, kind := range next.Kind[:a.rows] {
		if kind == env.Truncated {
			obs, _ := replay.After(a.spec, next, i, &at)
			copy(a.finalObs[len(a.finalRow)*o:], obs)
			a.finalRow = append(a.finalRow, i)
		}
	}
	if len(a.finalRow) == 0 {
		return nil
	}
	if a.act.scale != nil {
		a.act.scale.Apply(a.finalObs, a.finalObs, len(a.finalRow))
	}
	// The values come out in the order of finalRow and are moved to their rows, the last first, as rows ascend.
	if err := a.fwd.Run(context.Background(), a.finalObs, len(a.finalRow), nil, a.final); err != nil {
		return err
	}
	a.popart.value(a.final[:len(a.finalRow)])
	for k := len(a.finalRow) - 1; k >= 0; k-- {
		a.final[a.finalRow[k]] = a.final[k]
	}
	return nil
}

// Progress sets the share of the training that is done, which schedules of learning rate and clip range follow.
func (a *Agent) Progress(share float64) { a.progress = min(max(share, 0), 1) }

// Greedy returns the policy of the most likely actions. It shares the agent's parameters and takes batches of any
// size.
func (a *Agent) Greedy() agents.Policy {
	return newPolicy(a.cfg, a.net, a.spec, a.act.scale, a.workers)
}

// Params are the network's parameters, shared with the agent.
func (a *Agent) Params() *nets.Params { return a.net.Params() }
