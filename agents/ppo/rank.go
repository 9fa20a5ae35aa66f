package ppo

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/replay"
)

// Peers are the other members of the group that a Rank belongs to.
type Peers interface {
	Exchange
	// Gather fills all with the own bytes of all ranks, in their order. All pass the same number of bytes.
	Gather(rank int, own, all []byte) error
}

// Rank is one replica of data-parallel PPO in a process of its own. The ranks of a group together are, bit for bit, the
// Replicas of one process: they have the same shares of the rows, streams and sums in order of ranks. What Replicas
// share in memory the ranks count each for themselves, from what all have seen: rewards at the next update, which they
// do not influence before, and with Config.NormObs the observations at every step, which is then an exchange.
//
// Every call of Act with NormObs, of Learn and of Sync is made by all ranks. The order of calls is that of Agent. If a
// rank fails, the calls of the others must return an error of the Peers.
type Rank struct {
	*Agent
	peers Peers
	world int

	paid     []payment // steps since the last Sync, [steps, rows]
	own, all []byte    // for Gather
	obs      []float32 // of all rows
}

var (
	_ agents.Agent = (*Rank)(nil)
	_ agents.Share = (*Rank)(nil)
)

// NewRank returns replica rank of cfg.Replicas that share rows environments equally, for the rows that are its own. It
// is replica rank of NewReplicas.
func NewRank(cfg Config, s env.Spec, rows, workers int, seed uint64, rank int, peers Peers) (*Rank, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := cfg.Replicas
	switch {
	case rank < 0 || rank >= n:
		return nil, fmt.Errorf("ppo: rank %d of %d replicas", rank, n)
	case rows < n || rows%n != 0:
		return nil, fmt.Errorf("ppo: %d rows for %d replicas, want a multiple", rows, n)
	case cfg.PreemptShare > 0:
		return nil,
			fmt.Errorf(
				"ppo: preempt_share: got %v, want 0 with ranks: each takes its steps at its own pace, and none is cut short",
				cfg.PreemptShare)
	}
	a, err := New(cfg, s, rows/n, workers, seed)
	if err != nil {
		return nil, err
	}
	if rank > 0 {
		a.orderPCG = rng.Source(seed, fmt.Sprintf("ppo/order/%d", rank))
		a.order = rand.New(a.orderPCG)
	}
	a.rank, a.exchange, a.scale = rank, peers, replay.NewReturnScale(rows)
	r := &Rank{Agent: a, peers: peers, world: n, paid: make([]payment, 0, cfg.Steps*a.rows)}
	if cfg.NormObs {
		r.obs = make([]float32, rows*s.ObsLen())
	}
	r.room(cfg.Steps * a.rows * paymentBytes)
	return r, nil
}

// room makes room for n bytes of every rank.
func (r *Rank) room(n int) {
	if len(r.own) < n {
		r.own, r.all = make([]byte, n), make([]byte, r.world*n)
	}
}

// Act is Agent.Act. With Config.NormObs the observations of all ranks are counted first, in the order of rows.
func (r *Rank) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if scale := r.act.scale; scale != nil {
		n := r.rows * r.act.obsLen
		if b.N != r.rows || len(b.Obs) < n {
			return fmt.Errorf("ppo: a batch of %d rows for an agent of %d", b.N, r.rows)
		}
		r.room(4 * n)
		for i, x := range b.Obs[:n] {
			binary.LittleEndian.PutUint32(r.own[4*i:], math.Float32bits(x))
		}
		all := r.all[:4*n*r.world]
		if err := r.peers.Gather(r.rank, r.own[:4*n], all); err != nil {
			return err
		}
		for i := range r.obs {
			r.obs[i] = math.Float32frombits(binary.LittleEndian.Uint32(all[4*i:]))
		}
		scale.Observe(r.obs, r.rows*r.world)
	}
	return r.Agent.Act(ctx, b, dst, src)
}

// Observe is Agent.Observe. What the scale of rewards needs is kept until the next Sync.
func (r *Rank) Observe(b *env.Batch, a *env.Actions, next *env.Batch) error {
	if err := r.Agent.Observe(b, a, next); err != nil {
		return err
	}
	for i := range next.N {
		r.paid = append(r.paid, payment{next.Kind[i], next.Reward[i], r.spec.Discount(r.cfg.Gamma, next.Elapsed[i])})
	}
	return nil
}

// paymentBytes is the size of a payment on its way.
const paymentBytes = 1 + 8 + 8

// Sync counts the rewards of all ranks since the last Sync: in order of steps and, within a step, of rows. It is for
// Learn, and for a checkpoint between two updates.
func (r *Rank) Sync() error {
	n := len(r.paid) * paymentBytes
	if n == 0 {
		return nil
	}
	r.room(n)
	for i, p := range r.paid {
		b := r.own[i*paymentBytes:]
		b[0] = byte(p.kind)
		binary.LittleEndian.PutUint64(b[1:], math.Float64bits(p.reward))
		binary.LittleEndian.PutUint64(b[9:], math.Float64bits(p.discount))
	}
	if err := r.peers.Gather(r.rank, r.own[:n], r.all[:n*r.world]); err != nil {
		return err
	}
	for t := 0; t < len(r.paid); t += r.rows {
		for k := range r.world {
			for i := range r.rows {
				b := r.all[k*n+(t+i)*paymentBytes:]
				r.scale.ObserveRow(k*r.rows+i, env.Kind(b[0]), math.Float64frombits(binary.LittleEndian.Uint64(b[1:])),
					math.Float64frombits(binary.LittleEndian.Uint64(b[9:])))
			}
		}
	}
	r.paid = r.paid[:0]
	return nil
}

// Learn is Agent.Learn over the rollouts of all ranks. Its statistics are those of Replicas at rank 0.
func (r *Rank) Learn(ctx context.Context) (agents.Stats, error) {
	if !r.roll.Full() {
		return nil, agents.ErrNotReady
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := r.Sync(); err != nil {
		return nil, err
	}
	return r.Agent.Learn(ctx)
}

// ownParts returns the names of the parts that a rank has for itself.
func ownParts(rank int) (state, rollout string) {
	if rank == 0 {
		return statePart, rolloutPart
	}
	return fmt.Sprintf("agent-%d.json", rank), fmt.Sprintf("rollout-%d.bin", rank)
}

// renamed is a part under another name.
type renamed struct {
	agents.Part
	name string
}

func (r renamed) Name() string { return r.name }

// Parts returns what this rank reads of a checkpoint of Replicas: weights, optimisers and anchor, which all share, and
// the state and rollout of its own.
func (r *Rank) Parts() []agents.Part { return r.Agent.partsOf(r.rank) }

// partsOf returns the agent's parts under the names that they have for a rank.
func (a *Agent) partsOf(rank int) []agents.Part {
	state, rollout := ownParts(rank)
	parts := a.Parts()
	for i, p := range parts {
		switch p.Name() {
		case statePart:
			parts[i] = renamed{p, state}
		case rolloutPart:
			parts[i] = renamed{p, rollout}
		}
	}
	return parts
}

// Share implements agents.Share: the parts that only this rank has, nothing at rank 0, which writes the checkpoint.
func (r *Rank) Share() []agents.Part {
	state, rollout := ownParts(r.rank)
	return slices.DeleteFunc(r.Parts(),
		func(p agents.Part) bool { return r.rank == 0 || p.Name() != state && p.Name() != rollout })
}

// Whole implements agents.Share: at rank 0, all parts of a checkpoint, which are those of Replicas. shares are what the
// ranks' Share gave.
func (r *Rank) Whole(shares []map[string][]byte) ([]agents.Part, error) {
	parts := r.Agent.Parts()
	i := slices.IndexFunc(parts, func(p agents.Part) bool { return p.Name() == rolloutPart }) + 1
	whole := slices.Clone(parts[:i])
	for k, share := range shares {
		if k == 0 {
			continue
		}
		state, rollout := ownParts(k)
		for _, name := range []string{state, rollout} {
			b, ok := share[name]
			if !ok {
				return nil, fmt.Errorf("ppo: rank %d gave no %s", k, name)
			}
			whole = append(whole, agents.NewWrittenPart(name, b))
		}
	}
	return append(whole, parts[i:]...), nil
}
