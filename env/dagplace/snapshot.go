package dagplace

import (
	"fmt"

	"clustergym/env"
	"clustergym/internal/snap"
)

// snapshots begin with these bytes.
const snapshotMagic = "clustergym dagplace 1\n"

// AppendSnapshot appends the state of the episode: its seed and actions, for everything follows from them. Before the
// first Reset there is none (env.ErrResetNeeded).
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) {
	if e.closed {
		return dst, env.ErrClosed
	}
	if e.ep == nil {
		return dst, env.ErrResetNeeded
	}
	b := snap.Begin(dst, snapshotMagic)
	b = snap.String(b, fmt.Sprintf("%+v", e.cfg))
	b = snap.U64(b, e.ep.seed)
	b = snap.Int(b, len(e.ep.actions))
	for _, a := range e.ep.actions {
		b = snap.Int(b, int(a))
	}
	return snap.Seal(b, len(dst)), nil
}

// RestoreSnapshot continues from src by playing its actions again.
func (e *Env) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	if e.closed {
		return env.ErrClosed
	}
	r, err := snap.Open(src, snapshotMagic)
	if err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	if cfg := r.String(); cfg != fmt.Sprintf("%+v", e.cfg) {
		return fmt.Errorf("%w: of %s with other settings", env.ErrSnapshot, ID)
	}
	seed, n := r.U64(), r.Int()
	if n < 0 || n > len(src)/8 {
		return fmt.Errorf("%w: %s: impossible state", env.ErrSnapshot, ID)
	}
	actions := make([]int32, n)
	for k := range actions {
		a := r.Int()
		if a < 0 || a >= len(e.mask) {
			return fmt.Errorf("%w: %s: impossible state", env.ErrSnapshot, ID)
		}
		actions[k] = int32(a)
	}
	if err := r.Done(); err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	p, err := e.begin(seed)
	if err != nil {
		return err
	}
	obs, mask := make([]float32, len(e.obs)), make([]bool, len(e.mask))
	for _, a := range actions {
		p.encode(obs, mask)
		if p.kind.Last() || !mask[a] {
			return fmt.Errorf("%w: %s: impossible state", env.ErrSnapshot, ID)
		}
		p.step(&e.cfg, a)
	}
	e.ep = p
	e.show(ts)
	return nil
}
