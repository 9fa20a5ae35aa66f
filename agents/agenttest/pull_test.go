package agenttest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/rng"
)

// pull is the least agent that learns: a weight for each pair of observed number and action, pulled at random by
// the rewards of every fifth step. fault is what is wrong with it, "" = nothing.
type pull struct {
	fault   string
	spec    env.Spec
	w       []float32 // [ObsLen, actions]
	n       [2]int64  // steps seen and updates
	sum     float64   // of rewards since the last update
	workers int
	draws   *rand.PCG
	pull    *rand.Rand
	stats   agents.Stats
	garbage []byte
}

var _ Learner = (*pull)(nil)

func builder(fault string) Constructor[*pull] {
	return func(spec env.Spec, _, workers int, seed uint64) (*pull, error) {
		if fault == "one seed for all" {
			seed = 1
		}
		if len(spec.Action.Sizes) != 1 {
			return nil, fmt.Errorf("%d discrete factors and %d continuous", len(spec.Action.Sizes), len(spec.Action.Low))
		}
		if len(spec.Obs) == 0 {
			return nil, errors.New("no observation")
		}
		a := &pull{fault: fault, spec: spec, workers: workers, draws: rng.Source(seed, "draws"),
			stats: agents.Stats{{Name: "sum"}, {Name: "n_updates"}}}
		a.pull = rand.New(a.draws)
		a.w = make([]float32, spec.ObsLen()*spec.Action.Sizes[0])
		for i := range a.w {
			a.w[i] = float32(a.pull.NormFloat64())
		}
		return a, nil
	}
}

func (a *pull) Network() string { return fmt.Sprint(len(a.w)) }

func (a *pull) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if a.fault == "acting allocates" {
		a.garbage = make([]byte, 1<<16)
	}
	for i := range b.N {
		legal, best, most := 0, -1, float32(0)
		k := a.spec.Action.Sizes[0]
		for act := range k {
			if !b.Mask[i*k+act] {
				continue
			}
			v := float32(0)
			for j, x := range b.Obs[i*len(b.Obs)/b.N : (i+1)*len(b.Obs)/b.N] {
				v += x * a.w[j*k+act]
			}
			if best < 0 || v > most {
				best, most = act, v
			}
			if legal++; src != nil && src[i].IntN(2*legal) == 0 {
				best, most = act, v+1
			}
		}
		if best < 0 && !b.Kind[i].Last() && a.fault != "acts without legal actions" {
			return fmt.Errorf("row %d has no legal action", i)
		}
		dst.Disc[i] = int32(max(best, 0))
	}
	return ctx.Err()
}

func (a *pull) Observe(_ *env.Batch, _ *env.Actions, next *env.Batch) error {
	a.n[0]++
	for _, r := range next.Reward {
		a.sum += r
	}
	return nil
}

func (a *pull) Learn(context.Context) (agents.Stats, error) {
	if a.n[0] == 0 || a.n[0]%5 != 0 || a.fault == "never learns" {
		return nil, agents.ErrNotReady
	}
	a.n[1]++
	rate := 0.01
	if a.fault == "workers count" {
		rate *= float64(a.workers)
	}
	for i := range a.w {
		a.w[i] += float32(rate * a.sum * a.pull.NormFloat64())
	}
	a.stats[0].Value, a.stats[1].Value = a.sum, float64(a.n[1])
	a.sum = 0
	if a.fault == "an update without a metric" {
		return a.stats[1:], nil
	}
	return a.stats, nil
}

func (a *pull) Progress(float64) {}

func (a *pull) Greedy() agents.Policy {
	if a.fault == "greedy play of the past" {
		old, _ := builder("")(a.spec, 1, 1, 12)
		return old
	}
	return a
}

func (a *pull) Parts() []agents.Part { return []agents.Part{part{a, weights}, part{a, "agent.bin"}} }

// part is the weights or everything else.
type part struct {
	*pull
	name string
}

func (p part) Name() string { return p.name }

func (p part) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	if p.name == weights {
		err := binary.Write(&b, binary.LittleEndian, p.w)
		n, errW := b.WriteTo(w)
		return n, errors.Join(err, errW)
	}
	draws, err := p.draws.MarshalBinary()
	b.Write(draws)
	err = errors.Join(err, binary.Write(&b, binary.LittleEndian, p.n))
	if p.fault != "a sum is not saved" {
		err = errors.Join(err, binary.Write(&b, binary.LittleEndian, p.sum))
	}
	n, errW := b.WriteTo(w)
	return n, errors.Join(err, errW)
}

func (p part) ReadFrom(r io.Reader) (int64, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return 0, err
	}
	if p.name == weights {
		if len(data) != 4*len(p.w) {
			return 0, fmt.Errorf("%d bytes, want %d", len(data), 4*len(p.w))
		}
		_, err := binary.Decode(data, binary.LittleEndian, p.w)
		return int64(len(data)), err
	}
	size := 20 + 16 + 8
	if p.fault == "a sum is not saved" {
		size -= 8
	}
	if len(data) != size && p.fault != "broken state is taken" {
		if p.fault == "broken state spoils" {
			p.n[0]++
		}
		return 0, fmt.Errorf("%d bytes, want %d", len(data), size)
	}
	if len(data) < size {
		return int64(len(data)), nil
	}
	if p.fault != "the stream starts anew" {
		err = p.draws.UnmarshalBinary(data[:20])
	}
	_, errN := binary.Decode(data[20:], binary.LittleEndian, &p.n)
	if size == 44 {
		_, errS := binary.Decode(data[36:], binary.LittleEndian, &p.sum)
		err = errors.Join(err, errS)
	}
	return int64(len(data)), errors.Join(err, errN)
}
