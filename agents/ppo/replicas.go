package ppo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/replay"
)

// Replicas is data-parallel PPO (Wijmans et al. 2020, "DD-PPO", arXiv 1911.00357): Config.Replicas agents that begin
// with the same weights, each with an equal share of the rows and its own rollout, optimiser and order of
// minibatches. For every step they sum the gradients of their minibatches, weighted by size and in order of ranks, so
// all copies of the weights stay equal bit for bit. Advantages are normalised, and target_kl is checked, over the
// minibatches of all replicas. One epoch with one minibatch is therefore, up to rounding, what one agent does with
// all rows. The order of calls is that of Agent. Not safe for concurrent use.
//
// Replicas are goroutines here. They communicate through an Exchange alone, with two exceptions that separate
// processes would have to merge: the scales of observations and of rewards are counted over all rows, in their order.
// With Act and Observe all replicas step together and there are no stragglers; with Collect each takes its steps at
// its own pace.
type Replicas struct {
	members  []*Agent
	rows     int // of each
	workers  int
	exchange *inProcess
	scale    *replay.ReturnScale
	parts    []part
	stats    agents.Stats

	collectors []collector // with Config.PreemptShare
	list       []agents.Collector
	full       atomic.Int32 // replicas whose rollout has all of its steps, while they collect

	// The call under way, in fields so that passing it to goroutines allocates nothing.
	ctx                  context.Context
	b, next              *env.Batch
	a                    *env.Actions
	src                  []*rand.Rand
	act, observe, update func(worker, rank int) error
}

// part is a replica's part of a call.
type part struct {
	b, next   env.Batch
	a         env.Actions
	finalRows []int
	stats     agents.Stats
}

var _ agents.Agent = (*Replicas)(nil)

// NewReplicas returns cfg.Replicas replicas that share rows environments equally. Replica 0 begins as the Agent of
// the same seed would.
func NewReplicas(cfg Config, s env.Spec, rows, workers int, seed uint64) (*Replicas, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := cfg.Replicas
	if rows < n || rows%n != 0 {
		return nil, fmt.Errorf("ppo: %d rows for %d replicas, want a multiple", rows, n)
	}
	r := &Replicas{
		rows: rows / n, workers: max(workers,
			1), exchange: newInProcess(n), scale: replay.NewReturnScale(rows), parts: make([]part, n),
	}
	for k := range n {
		a, err := New(cfg, s, rows/n, 1, seed)
		if err != nil {
			return nil, err
		}
		if k > 0 {
			a.orderPCG = rng.Source(seed, fmt.Sprintf("ppo/order/%d", k))
			a.order = rand.New(a.orderPCG)
		}
		a.rank, a.exchange, a.scale = k, r.exchange, r.scale
		if k > 0 {
			a.act.scale = r.members[0].act.scale
		}
		r.members = append(r.members, a)
		r.parts[k].finalRows = make([]int, 0, rows/n)
	}
	r.act, r.observe, r.update = r.actOne, r.observeOne, r.learnOne
	if cfg.PreemptShare > 0 {
		r.separate()
	}
	return r, nil
}

// Act samples one legal action for every row of b, as Agent.Act does.
func (r *Replicas) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	n := r.rows * len(r.members)
	first := r.members[0]
	if b.N != n || dst.N != n || len(src) < n {
		return fmt.Errorf("ppo: a batch of %d rows, %d actions and %d streams for replicas of %d rows", b.N, dst.N, len(src),
			n)
	}
	if scale := first.act.scale; scale != nil {
		scale.Observe(b.Obs, n)
	}
	r.ctx, r.b, r.a, r.src = ctx, b, dst, src
	return par.For(ctx, r.workers, len(r.members), r.act)
}

func (r *Replicas) actOne(_, k int) error {
	p := &r.parts[k]
	r.view(&p.b, r.b, k)
	r.actions(&p.a, r.a, k)
	return r.members[k].Act(r.ctx, &p.b, &p.a, r.src[k*r.rows:(k+1)*r.rows])
}

// Observe adds a step to all rollouts, as Agent.Observe does.
func (r *Replicas) Observe(b *env.Batch, a *env.Actions, next *env.Batch) error {
	n := r.rows * len(r.members)
	if b.N != n || a.N != n || next.N != n {
		return fmt.Errorf("ppo: batches of %d and %d rows and %d actions for replicas of %d rows", b.N, next.N, a.N, n)
	}
	r.b, r.a, r.next = b, a, next
	if err := par.For(context.Background(), r.workers, len(r.members), r.observe); err != nil {
		return err
	}
	r.scale.Observe(r.members[0].spec, r.members[0].cfg.Gamma, next)
	return nil
}

func (r *Replicas) observeOne(_, k int) error {
	p := &r.parts[k]
	r.view(&p.b, r.b, k)
	r.view(&p.next, r.next, k)
	r.actions(&p.a, r.a, k)
	return r.members[k].Observe(&p.b, &p.a, &p.next)
}

// Learn makes one update of all replicas, and returns statistics over all of them. With Config.PreemptShare there are
// two more: ppo/preempted, the number of replicas cut short, and ppo/collected, the share of all steps that was
// collected.
func (r *Replicas) Learn(ctx context.Context) (agents.Stats, error) {
	for _, a := range r.members {
		if !a.roll.Full() {
			return nil, agents.ErrNotReady
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	preempted, collected := r.sizes()
	r.sameBeginning()
	r.exchange.reset()
	// One goroutine for each replica, however many workers there are, because they wait for each other.
	if err := par.For(context.WithoutCancel(ctx), len(r.members), len(r.members), r.update); err != nil {
		return nil, err
	}
	if len(r.collectors) == 0 {
		return r.parts[0].stats, nil
	}
	r.stats = append(append(r.stats[:0], r.parts[0].stats...),
		agents.Stat{Name: "ppo/preempted", Value: float64(preempted)}, agents.Stat{Name: "ppo/collected", Value: collected})
	return r.stats, nil
}

func (r *Replicas) learnOne(_, k int) (err error) {
	if r.parts[k].stats, err = r.members[k].Learn(context.Background()); err != nil {
		r.exchange.abort()
		if errors.Is(err, errAborted) {
			return nil // the one that failed says why
		}
		return fmt.Errorf("replica %d: %w", k, err)
	}
	return nil
}

// view sets v to replica k's rows of b.
func (r *Replicas) view(v, b *env.Batch, k int) {
	s := r.members[0].spec
	o, m, n := s.ObsLen(), s.MaskLen(), len(s.Info)
	from, to := k*r.rows, (k+1)*r.rows
	*v = env.Batch{
		N: r.rows, Kind: b.Kind[from:to], Reward: b.Reward[from:to], Elapsed: b.Elapsed[from:to],
		Obs: b.Obs[from*o : to*o], Mask: b.Mask[from*m : to*m], Info: b.Info[from*n : to*n],
	}
	v.FinalRows = r.parts[k].finalRows[:0]
	low, high := -1, -1
	for j, row := range b.FinalRows {
		if row >= from && row < to {
			if low < 0 {
				low = j
			}
			high = j + 1
			v.FinalRows = append(v.FinalRows, row-from)
		}
	}
	if low < 0 {
		return
	}
	v.FinalObs = b.FinalObs[low*o : high*o]
	if len(b.FinalMask) > 0 {
		v.FinalMask = b.FinalMask[low*m : high*m]
	}
	if len(b.FinalInfo) > 0 {
		v.FinalInfo = b.FinalInfo[low*n : high*n]
	}
}

func (r *Replicas) actions(v, a *env.Actions, k int) {
	s := &r.members[0].spec.Action
	f, c := len(s.Sizes), len(s.Low)
	from, to := k*r.rows, (k+1)*r.rows
	*v = env.Actions{N: r.rows, Disc: a.Disc[from*f : to*f], Cont: a.Cont[from*c : to*c]}
}

// Progress is Agent.Progress.
func (r *Replicas) Progress(share float64) {
	for _, a := range r.members {
		a.Progress(share)
	}
}

// Greedy is Agent.Greedy by replica 0's parameters, which equal those of all replicas.
func (r *Replicas) Greedy() agents.Policy {
	a := r.members[0]
	return newPolicy(a.cfg, a.net, a.spec, a.act.scale, r.workers)
}

// Params returns replica 0's parameters, which equal those of all replicas.
func (r *Replicas) Params() *nets.Params { return r.members[0].net.Params() }

// Network is Agent.Network.
func (r *Replicas) Network() string { return r.members[0].Network() }

// Parts is Agent.Parts with one part each for weights, optimiser and anchor for all replicas, and an agent-K.json and a
// rollout-K.bin for each replica but the first.
func (r *Replicas) Parts() []agents.Part {
	var all [][]agents.Part
	for k, a := range r.members {
		all = append(all, a.partsOf(k))
	}
	var parts []agents.Part
	for i, p := range all[0] {
		switch p.Name() {
		case statePart:
			parts = append(parts, p)
		case rolloutPart:
			parts = append(parts, p)
			for _, others := range all[1:] {
				parts = append(parts, others[i-1], others[i]) // its state and rollout
			}
		default:
			var same copies
			for _, list := range all {
				same = append(same, list[i])
			}
			parts = append(parts, agents.NewPart(p.Name(), same))
		}
	}
	return parts
}

// copies are parts with equal content: the first is saved, and all are loaded.
type copies []agents.ReadWriter

func (c copies) WriteTo(w io.Writer) (int64, error) { return c[0].WriteTo(w) }

func (c copies) ReadFrom(src io.Reader) (int64, error) {
	var kept bytes.Buffer
	n, err := c[0].ReadFrom(io.TeeReader(src, &kept))
	for _, x := range c[1:] {
		if err == nil {
			_, err = x.ReadFrom(bytes.NewReader(kept.Bytes()))
		}
	}
	return n, err
}
