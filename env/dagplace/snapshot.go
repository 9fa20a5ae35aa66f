package dagplace

import (
	"errors"
	"fmt"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/snap"
)

// snapshots begin with these bytes.
const snapshotMagic = "clustergym dagplace 1\n"

// AppendSnapshot appends the state of the episode: its seed and actions, for everything follows from them. Before the
// first Reset there is none (env.ErrResetNeeded).
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) {
	if err := e.shell.Current(); err != nil {
		return dst, err
	}
	b := snap.Begin(dst, snapshotMagic)
	b = snap.String(b, fmt.Sprintf("%+v", e.cfg))
	b = snap.U64(b, e.shell.Episode().Seed)
	b = snap.Int(b, len(e.shell.Actions()))
	for _, a := range e.shell.Actions() {
		b = snap.Int(b, int(a))
	}
	return snap.Seal(b, len(dst)), nil
}

// RestoreSnapshot continues from src by playing its actions again.
func (e *Env) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	began := e.shell.Current()
	if errors.Is(began, env.ErrClosed) {
		return began
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
	to := sched.Record{Episode: env.Episode{Seed: seed, Window: -1}, Actions: actions}
	if err := e.shell.Replay(e, to, ts); err != nil {
		if began != nil {
			e.shell.Break() // there is no episode to return to
		}
		return fmt.Errorf("%w: %s: impossible state", env.ErrSnapshot, ID)
	}
	return nil
}
