package workerplace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/snap"
)

// Snapshots begin with these bytes: those of generated jobs with the first, those of a workload, which also name the
// workload, the window and the part, with the second. A snapshot is the episode and the actions that were taken in it.
const (
	snapshotMagic = "clustergym workerplace 1\n"
	recordedMagic = "clustergym workerplace 2\n"
)

// magic returns the one of e's snapshots.
func (e *Env) magic() string {
	if e.work != nil {
		return recordedMagic
	}
	return snapshotMagic
}

// AppendSnapshot implements env.Snapshotter; before the first Reset there is nothing to save (env.ErrResetNeeded).
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) {
	if err := e.shell.Current(); err != nil {
		return dst, err
	}
	ep, moves := e.shell.Episode(), e.shell.Actions()
	b := snap.Begin(dst, e.magic())
	b = snap.U64(b, e.fingerprint())
	if e.work != nil {
		b = snap.String(b, e.work.sha)
		b = snap.Int(b, ep.Window)
		b = snap.String(b, ep.Split)
	}
	b = snap.U64(b, ep.Seed)
	b = snap.Int(b, len(ep.Task))
	for _, v := range ep.Task {
		b = snap.F64(b, v)
	}
	b = snap.Int(b, len(moves))
	for _, k := range moves {
		b = snap.Int(b, int(k))
	}
	return snap.Seal(b, len(dst)), nil
}

// fingerprint tells configurations apart. Without crowding it is what it was before there was crowding, so that older snapshots stay
// valid.
func (e *Env) fingerprint() uint64 {
	return rng.Hash(strings.Replace(fmt.Sprintf("%+v", e.cfg), " Crowding:0 ", " ", 1))
}

// RestoreSnapshot implements env.Snapshotter. Speeds that were put in must be the ones of then.
func (e *Env) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	if err := e.shell.Current(); errors.Is(err, env.ErrClosed) {
		return err
	}
	r, err := snap.Open(src, e.magic())
	if err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	if id := r.U64(); id != e.fingerprint() {
		return fmt.Errorf("%w: %s: of other arguments", env.ErrSnapshot, ID)
	}
	ep := env.Episode{Window: -1}
	if e.work != nil {
		if sha := r.String(); sha != e.work.sha {
			return fmt.Errorf("%w: %s: of another workload", env.ErrSnapshot, ID)
		}
		ep.Window, ep.Split = r.Int(), r.String()
	}
	ep.Seed = r.U64()
	n := r.Count(8)
	for range n {
		ep.Task = append(ep.Task, r.F64())
	}
	n = r.Count(8)
	moves := make([]int, n)
	for i := range moves {
		moves[i] = r.Int()
	}
	if err := r.Done(); err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	if _, err := readTask(ep.Task, e.tasks); err != nil {
		return fmt.Errorf("%w: %s: %v", env.ErrSnapshot, ID, err)
	}
	fresh, err := NewRecorded(e.cfg, e.work, e.part)
	if err != nil {
		return err
	}
	fresh.speeds = e.speeds
	ctx, at := context.Background(), env.NewTimeStep(e.spec)
	if err := fresh.Reset(ctx, ep, at); err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	for i, k := range moves {
		if at.Kind.Last() || k < 0 || k >= len(fresh.mask) || !fresh.mask[k] {
			return fmt.Errorf("%w: %s: action %d of %d is %d, which was not legal", env.ErrSnapshot, ID, i, len(moves), k)
		}
		if err := fresh.Step(ctx, env.Action{Disc: []int32{int32(k)}}, at); err != nil {
			return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
		}
	}
	fresh.rec = e.rec
	*e = *fresh
	e.src, e.times = rand.New(&e.pcg), rand.New(&e.pcgT)
	e.fill(ts, at.Kind)
	return nil
}
