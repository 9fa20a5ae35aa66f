package dagplace

import (
	"errors"
	"fmt"
	"strings"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/snap"
)

// Snapshots begin with these bytes: those of generated graphs with the first, those of a workload, which also name the
// workload, the window and the part, with the second.
const (
	snapshotMagic = "clustergym dagplace 1\n"
	recordedMagic = "clustergym dagplace 2\n"
)

// magic returns the one of e's snapshots.
func (e *Env) magic() string {
	if e.work != nil {
		return recordedMagic
	}
	return snapshotMagic
}

// settings are the settings in words. Hopes came after the first snapshots, which it leaves valid.
func (e *Env) settings() string {
	c := e.cfg
	if c.Hopes == "random" {
		c.Hopes = ""
	}
	return strings.Replace(fmt.Sprintf("%+v", c), " Hopes: ", " ", 1)
}

// AppendSnapshot appends the state of the episode: its seed and actions, for everything follows from them. Before the
// first Reset there is none (env.ErrResetNeeded).
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) {
	if err := e.shell.Current(); err != nil {
		return dst, err
	}
	ep := e.shell.Episode()
	b := snap.Begin(dst, e.magic())
	b = snap.String(b, e.settings())
	if e.work != nil {
		b = snap.String(b, e.work.sha)
		b = snap.Int(b, ep.Window)
		b = snap.String(b, ep.Split)
	}
	b = snap.U64(b, ep.Seed)
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
	r, err := snap.Open(src, e.magic())
	if err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	if cfg := r.String(); cfg != e.settings() {
		return fmt.Errorf("%w: of %s with other settings", env.ErrSnapshot, ID)
	}
	ep := env.Episode{Window: -1}
	if e.work != nil {
		if sha := r.String(); sha != e.work.sha {
			return fmt.Errorf("%w: of %s with another workload", env.ErrSnapshot, ID)
		}
		ep.Window, ep.Split = r.Int(), r.String()
	}
	ep.Seed = r.U64()
	n := r.Int()
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
	if err := e.shell.Replay(e, sched.Record{Episode: ep, Actions: actions}, ts); err != nil {
		if began != nil {
			e.shell.Break() // there is no episode to return to
		}
		return fmt.Errorf("%w: %s: impossible state", env.ErrSnapshot, ID)
	}
	return nil
}
