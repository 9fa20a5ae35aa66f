package replay

import (
	"fmt"

	"clustergym/env"
)

// ring is the storage of both buffers: the last Capacity transitions by column, with observations in frames.
//
// Each observation is stored once, although up to two transitions of a row begin or end there: a row's next call to
// add is assumed to start where the last one ended. The current observation is read from the caller's batch only at
// the beginning of an episode.
type ring struct {
	cfg  Config
	spec env.Spec
	rows int

	frames frames
	wait   nstep

	size, pos int    // transitions held; the slot to write next
	added     uint64 // transitions ever added

	// [Capacity]
	obs, next []uint64 // numbers of observations
	low       []uint64 // no transition of this age or younger refers to an observation below this number
	disc      []int32  // × factors
	cont      []float32
	reward    []float32
	discount  []float32

	fresh []int // slots written by the last add, in order
}

func newRing(cfg Config, s env.Spec, rows int) (*ring, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if rows < 1 {
		return nil, fmt.Errorf("replay: got %d rows, want at least 1", rows)
	}
	c := cfg.Capacity
	return &ring{
		cfg: cfg, spec: s, rows: rows,
		frames: newFrames(s.ObsLen(), s.MaskLen()),
		wait:   newNstep(s, rows, cfg.NStep),
		obs:    make([]uint64, c), next: make([]uint64, c), low: make([]uint64, c),
		disc: make([]int32, c*len(s.Action.Sizes)), cont: make([]float32, c*len(s.Action.Low)),
		reward: make([]float32, c), discount: make([]float32, c),
		fresh: make([]int, 0, rows*(cfg.NStep+1)),
	}, nil
}

// Add stores one step of all rows: the batch that was acted on, the actions and the batch that followed, which must be
// the next call's b. An ended row's next observation is its FinalObs, or its Obs if it has none; rows of next with
// Kind First are not transitions and are left out. If NStep is above 1, a transition is stored when its last step
// arrives. Add copies everything and does not allocate in steady state. An error (impossible rows, lengths or rewards)
// changes nothing.
//
// What a step completes is stored row by row, each row's oldest transition first.
func (r *ring) Add(b *env.Batch, a *env.Actions, next *env.Batch) error {
	r.fresh = r.fresh[:0]
	if err := checkBatches(r.spec, r.rows, b, a, next); err != nil {
		return err
	}
	w, o, m := &r.wait, r.spec.ObsLen(), r.spec.MaskLen()
	// Transitions completed now or later begin at an observation that a row refers to now, or at one pushed from here
	// on.
	low := w.floor(r.frames.next)
	at := 0
	for i := 0; i < r.rows; i++ {
		kind := next.Kind[i]
		if w.cur[i] != nowhere && (kind == env.First || b.Kind[i] == env.First) {
			// The episode was abandoned from outside before this step: for the learner that is a truncation.
			r.flush(i, w.cur[i], low)
			w.cur[i] = nowhere
		}
		if kind == env.First {
			continue // the reset step of NextStep batches: no decision was made here
		}
		if w.cur[i] == nowhere {
			w.cur[i] = r.frames.push(b.Obs[i*o:(i+1)*o], b.Mask[i*m:(i+1)*m])
		}
		w.begin(i, a.Row(i))
		w.extend(i, next.Reward[i], discount(r.spec, r.cfg.Gamma, next, i))
		w.cur[i] = r.frames.push(After(r.spec, next, i, &at))
		if kind.Last() {
			r.flush(i, w.cur[i], low)
			w.cur[i] = nowhere
		} else if w.len[i] == w.n {
			r.put(w.pop(i), w.cur[i], low)
		}
	}
	r.frames.release(r.floor())
	return nil
}

// Len returns the number of transitions that can be drawn.
func (r *ring) Len() int { return r.size }

// Added returns the number of transitions ever added.
func (r *ring) Added() uint64 { return r.added }

// flush completes all waiting transitions of row i at observation end.
func (r *ring) flush(i int, end, low uint64) {
	for r.wait.len[i] > 0 {
		r.put(r.wait.pop(i), end, low)
	}
}

// put stores transition k of r.wait, which ends at observation end.
func (r *ring) put(k int, end, low uint64) {
	w, s := &r.wait, r.pos
	r.obs[s], r.next[s], r.low[s] = w.obs[k], end, low
	copy(r.disc[s*w.factors:(s+1)*w.factors], w.disc[k*w.factors:])
	copy(r.cont[s*w.conts:(s+1)*w.conts], w.cont[k*w.conts:])
	r.reward[s], r.discount[s] = float32(w.sum[k]), float32(w.prod[k])
	r.fresh = append(r.fresh, s)
	r.pos = (s + 1) % r.cfg.Capacity
	r.size = min(r.size+1, r.cfg.Capacity)
	r.added++
}

// floor returns the lowest number of an observation that is still referred to.
func (r *ring) floor() uint64 {
	low := r.wait.floor(r.frames.next)
	if r.size > 0 {
		low = min(low, r.low[r.oldest()])
	}
	return low
}

// oldest returns the slot of the oldest transition.
func (r *ring) oldest() int {
	if r.size < r.cfg.Capacity {
		return 0
	}
	return r.pos
}

// gather copies the transition of slot s to row i of dst.
func (r *ring) gather(dst *Batch, i, s int) {
	o, m := r.spec.ObsLen(), r.spec.MaskLen()
	f, c := r.wait.factors, r.wait.conts
	copy(dst.Obs[i*o:(i+1)*o], r.frames.obs(r.obs[s]))
	copy(dst.NextObs[i*o:(i+1)*o], r.frames.obs(r.next[s]))
	r.frames.unpack(dst.Mask[i*m:(i+1)*m], r.obs[s])
	r.frames.unpack(dst.NextMask[i*m:(i+1)*m], r.next[s])
	copy(dst.Action.Disc[i*f:(i+1)*f], r.disc[s*f:])
	copy(dst.Action.Cont[i*c:(i+1)*c], r.cont[s*c:])
	dst.Reward[i], dst.Discount[i], dst.Index[i] = r.reward[s], r.discount[s], s
}

// checkDst reports whether dst can hold a sample.
func (r *ring) checkDst(dst *Batch) error {
	n, s := dst.N, r.spec
	if n < 1 || len(dst.Obs) < n*s.ObsLen() || len(dst.NextObs) < n*s.ObsLen() || len(dst.Mask) < n*s.MaskLen() ||
		len(dst.NextMask) < n*s.MaskLen() || len(dst.Action.Disc) < n*r.wait.factors ||
		len(dst.Action.Cont) < n*r.wait.conts ||
		len(dst.Reward) < n || len(dst.Discount) < n || len(dst.Weight) < n || len(dst.Index) < n {
		return fmt.Errorf("replay: the batch has no room for %d transitions of %s", n, s.ID)
	}
	if r.size < n {
		return fmt.Errorf("%w: %d of %d", ErrTooFew, r.size, n)
	}
	return nil
}
