package improper

import (
	"context"
	"fmt"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/nets"
	"clustergym/replay"
)

// Agent learns a mixture of controllers. The order of calls is Act, Observe, Act, Observe, …, with Learn after every
// Observe. Not safe for concurrent use.
type Agent struct {
	*mixture
	cfg     Config
	spec    env.Spec
	rows    int
	workers int
	seed    uint64

	roll   *replay.Rollout // of pg and nac
	critic *critic
	last   []float32 // [rows, obs], after the last step
	value  []float32 // [rows], of the observations that were acted on
	final  []float32 // [rows], of truncated episodes' last observations
	zeros  []float32 // [rows]
	shards []shard
	sum    shard     // of all shards
	step   []float64 // [dim], of theta
	probs  []float64 // [Steps, rows, controllers], of the rollout's states
	// Scratch of solve, [max(dim, n)].
	residue, along, image []float64

	trial *perturbed // of spsa

	p       []float64 // [controllers], scratch
	updates int64
	share   float64 // of the training that is done
	stats   agents.Stats
}

var _ agents.Agent = (*Agent)(nil)

// New returns an agent for rows environments of spec s that are stepped together, with weights that follow from seed.
// Up to workers goroutines share the work of learning; their number changes nothing but speed.
func New(cfg Config, s env.Spec, rows, workers int, seed uint64) (*Agent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m, err := newMixture(cfg, s)
	if err != nil {
		return nil, err
	}
	if rows < 1 {
		return nil, fmt.Errorf("improper: got %d rows, want at least 1", rows)
	}
	m.scatter(cfg.Init, seed)
	a := &Agent{mixture: m, cfg: cfg, spec: s, rows: rows, workers: max(workers, 1), seed: seed,
		p: make([]float64, m.controllers)}
	if cfg.Method == "spsa" {
		a.trial, err = newPerturbed(a)
		return a, err
	}
	if a.roll, err = replay.NewRollout(s, cfg.Steps, rows, cfg.Gamma); err != nil {
		return nil, err
	}
	a.critic = newCritic(a.obs)
	a.last, a.value, a.final, a.zeros = make([]float32,
		rows*a.obs), make([]float32, rows), make([]float32, rows), make([]float32, rows)
	dim := len(m.params.Data)
	for range cfg.Shards {
		a.shards = append(a.shards, newShard(dim, m.controllers, a.critic.n))
	}
	a.sum, a.step, a.probs = newShard(dim, m.controllers,
		a.critic.n), make([]float64, dim), make([]float64, cfg.Steps*rows*m.controllers)
	for _, v := range []*[]float64{&a.residue, &a.along, &a.image} {
		*v = make([]float64, max(dim, a.critic.n))
	}
	return a, nil
}

// Act draws a legal controller for every row of b.
func (a *Agent) Act(_ context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if b.N != a.rows || len(src) < a.rows {
		return fmt.Errorf("improper: a batch of %d rows and %d streams for an agent of %d", b.N, len(src), a.rows)
	}
	if err := a.fits(b, dst); err != nil {
		return err
	}
	for i := range a.rows {
		theta := a.params.Data
		if a.trial != nil {
			theta = a.trial.theta(i)
		}
		k, err := a.act(a.p, theta, b, i, src[i])
		if err != nil {
			return err
		}
		dst.Disc[i] = k
	}
	return nil
}

// Observe adds a step of all rows to what the next update learns from.
func (a *Agent) Observe(b *env.Batch, act *env.Actions, next *env.Batch) error {
	if a.trial != nil {
		return a.trial.observe(next)
	}
	if b.N != a.rows || next.N != a.rows {
		return fmt.Errorf("improper: batches of %d and %d rows for an agent of %d", b.N, next.N, a.rows)
	}
	at := 0
	for i := range a.rows {
		a.value[i] = a.critic.value(b.Obs[i*a.obs : (i+1)*a.obs])
		a.final[i] = 0
		if next.Kind[i] == env.Truncated {
			obs, _ := replay.After(a.spec, next, i, &at)
			a.final[i] = a.critic.value(obs)
		}
	}
	copy(a.last, next.Obs[:a.rows*a.obs])
	return a.roll.Add(b, act, next, a.zeros, a.value, a.final)
}

// Progress sets the share of the training that is done, which the learning rate follows.
func (a *Agent) Progress(share float64) { a.share = min(max(share, 0), 1) }

// rate returns the learning rate.
func (a *Agent) rate() float64 {
	if a.cfg.AnnealLR {
		return a.cfg.LR * (1 - a.share)
	}
	return a.cfg.LR
}

// Greedy returns the policy that is judged: the mixture. It shares the agent's parameters.
func (a *Agent) Greedy() agents.Policy { return newPolicy(a.mixture, a.spec) }

// Params returns theta, shared with the agent.
func (a *Agent) Params() *nets.Params { return a.params }

// Network returns a fingerprint of the names and shapes of the parameters, for checkpoint.Meta.
func (a *Agent) Network() string { return nets.Fingerprint(a.params.Views) }
