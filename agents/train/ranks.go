package train

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"clustergym/agents"
	"clustergym/env/vec"
)

// Peers are the other processes of a training whose rows are shared out: rank 0 has the first share, and so on. All
// ranks make the same calls in the same order.
type Peers interface {
	// Any reports whether yes is true at any rank.
	Any(yes bool) (bool, error)
	// Collect gives rank 0 the bytes of all ranks, in their order, and nil to the others.
	Collect(own []byte) ([][]byte, error)
}

// ranks is what a Trainer needs beside itself if it has a share of the rows.
type ranks struct {
	peers Peers
	rank  int
	of    int // ranks
	first int // row of all, the own first one

	taken int64     // steps since episodes were collected
	over  []episode // that ended in them
	stop  bool      // some rank wants to stop
}

var _ agents.Share = (*Trainer)(nil)

// NewRank returns the trainer of rank's share of cfg.Envs rows, which are those of v. The agent has the same share
// (ppo.Rank). What the ranks do together is what New's trainer does with all rows: records and checkpoints, which are
// rank 0's, have the same bytes. The ranks' hooks are called at the same steps; those that save make Sync and Share at
// all of them. Cancelling the context of any stops all after the next update.
func NewRank(cfg Config, v *vec.Vec, agent agents.Agent, seed uint64, rank, of int, peers Peers) (*Trainer, error) {
	if rank < 0 || rank >= of || cfg.Envs%of != 0 {
		return nil, fmt.Errorf("train: rank %d of %d with %d environments, want a multiple", rank, of, cfg.Envs)
	}
	return newTrainer(cfg, v, agent, seed, ranks{peers: peers, rank: rank, of: of, first: rank})
}

// placed adds to an error of one of the own rows which rows these are.
func (t *Trainer) placed(err error) error {
	if t.peers == nil {
		return err
	}
	return fmt.Errorf("in rows %d to %d, counted from 0: %w", t.first, t.first+t.vec.Len()-1, err)
}

// stopped returns the error with which Run ends before its time, if it does.
func (t *Trainer) stopped(ctx context.Context) error {
	if t.peers == nil {
		return ctx.Err()
	}
	if t.stop {
		t.stop = false
		return context.Canceled
	}
	return nil
}

// together is an iteration of a rank. Ranks agree only at updates, where they meet anyway: between them each takes its
// steps at its own pace.
func (t *Trainer) together(ctx context.Context) error {
	before := t.updates
	if err := t.iterate(context.WithoutCancel(ctx)); err != nil || t.updates == before {
		return err
	}
	if err := t.collectEpisodes(); err != nil {
		return err
	}
	var err error
	t.stop, err = t.peers.Any(ctx.Err() != nil)
	return err
}

// keep keeps a finished episode for collectEpisodes.
func (t *Trainer) keep(ret float64, length int64, info []float64) {
	t.over = append(t.over, episode{t.taken, ret, length, info})
}

// sentEpisode is an episode on its way to rank 0. Floats are kept as bits because JSON has no NaN.
type sentEpisode struct {
	Step   int64    `json:"s"`
	Return uint64   `json:"r"`
	Length int64    `json:"l"`
	Info   []uint64 `json:"i"`
}

// collectEpisodes counts, at rank 0, the episodes of all ranks in the order in which one process would have finished
// them.
func (t *Trainer) collectEpisodes() error {
	if t.peers == nil || t.taken == 0 {
		return nil
	}
	list := make([]sentEpisode, len(t.over))
	for i, e := range t.over {
		list[i] = sentEpisode{e.step, bits([]float64{e.ret})[0], e.length, bits(e.info)}
	}
	own, err := json.Marshal(list)
	if err != nil {
		return err
	}
	t.over, t.taken = t.over[:0], 0
	all, err := t.peers.Collect(own)
	if err != nil {
		return err
	}
	var over []sentEpisode
	for k, b := range all {
		var theirs []sentEpisode
		if err := json.Unmarshal(b, &theirs); err != nil {
			return fmt.Errorf("train: the episodes of rank %d: %w", k, err)
		}
		over = append(over, theirs...)
	}
	slices.SortStableFunc(over, func(a, b sentEpisode) int { return cmp.Compare(a.Step, b.Step) })
	for _, e := range over {
		if len(e.Info) != len(t.spec.Info) {
			return fmt.Errorf("train: an episode with %d infos, want %d", len(e.Info), len(t.spec.Info))
		}
		t.ended(floats([]uint64{e.Return})[0], e.Length, floats(e.Info))
	}
	return nil
}

// Sync implements agents.Share.
func (t *Trainer) Sync() error { return t.collectEpisodes() }

// Share implements agents.Share.
func (t *Trainer) Share() []agents.Part { return t.Parts() }

// Whole implements agents.Share.
func (t *Trainer) Whole(shares []map[string][]byte) ([]agents.Part, error) {
	s, err := t.save()
	if err != nil {
		return nil, err
	}
	s.Streams, s.Return, s.Length = nil, nil, nil
	var envs [][]byte
	for k, share := range shares {
		var theirs state
		if err := json.Unmarshal(share["trainer.json"], &theirs); err != nil {
			return nil, fmt.Errorf("train: the trainer of rank %d: %w", k, err)
		}
		s.Streams, s.Return, s.Length = append(s.Streams,
			theirs.Streams...), append(s.Return, theirs.Return...), append(s.Length, theirs.Length...)
		envs = append(envs, share["envs.bin"])
	}
	joined, err := t.vec.JoinSnapshots(envs...)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return []agents.Part{
		agents.NewJSONPart("trainer.json", func() (state, error) { return s, nil }, t.load),
		agents.NewWrittenPart("envs.bin", joined),
	}, nil
}
