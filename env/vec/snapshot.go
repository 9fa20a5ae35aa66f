package vec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"clustergym/env"
	"clustergym/internal/par"
	"clustergym/internal/snap"
)

// magic names the format of a Vec's snapshot and its version.
const magic = "clustergym vec 1\n"

// AppendSnapshot appends the state of the Vec to dst and returns the longer slice. The state is every row's seed,
// episode and task, what its autoreset is about to do, and the environments themselves, which must be env.Snapshotters
// (errors.ErrUnsupported otherwise). No row may be out. On an error dst is returned unchanged.
func (v *Vec) AppendSnapshot(dst []byte) ([]byte, error) { return v.AppendRows(dst, nil) }

// AppendRows is AppendSnapshot for the given rows only, in the order given; nil means all.
func (v *Vec) AppendRows(dst []byte, rows []int) ([]byte, error) {
	if v.closed {
		return dst, env.ErrClosed
	}
	rows, err := v.checkRows(rows)
	if err != nil {
		return dst, err
	}
	b := snap.Begin(dst, magic)
	b = snap.String(b, v.spec.ID)
	b = snap.Int(b, int(v.cfg.Autoreset))
	b = snap.Int(b, len(rows))
	var scratch []byte
	for _, i := range rows {
		if scratch, err = v.saveRow(scratch[:0], i); err != nil {
			return dst, &RowError{i, err}
		}
		b = appendRow(b, &v.rows[i], scratch)
	}
	return snap.Seal(b, len(dst)), nil
}

// appendRow appends a row and its environment's own snapshot.
func appendRow(b []byte, r *row, blob []byte) []byte {
	b = snap.U64(b, r.seed)
	b = snap.Int(b, r.episode)
	b = snap.Bool(b, r.hasTask)
	b = snap.Int(b, len(r.task))
	for _, x := range r.task {
		b = snap.F64(b, x)
	}
	b = snap.Bool(b, r.live)
	b = snap.Bool(b, r.ended)
	b = snap.Int(b, int(r.kind))
	b = snap.F64(b, r.reward)
	b = snap.Int(b, int(r.elapsed))
	return snap.Bytes(b, blob)
}

// JoinSnapshots returns the snapshot of a Vec whose rows are those of several, in their order. All must be of the same
// environment and mode.
func (v *Vec) JoinSnapshots(parts ...[]byte) ([]byte, error) {
	var rows []row
	var blobs [][]byte
	for _, p := range parts {
		r, b, err := v.parse(p, -1, true)
		if err != nil {
			return nil, fmt.Errorf("%w: %v", env.ErrSnapshot, err)
		}
		rows, blobs = append(rows, r...), append(blobs, b...)
	}
	return v.snapshotOf(rows, blobs), nil
}

// CutSnapshot returns the snapshot of rows from to to-1, counted from 0, of the snapshot src of n rows.
func (v *Vec) CutSnapshot(src []byte, n, from, to int) ([]byte, error) {
	rows, blobs, err := v.parse(src, n, true)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	if from < 0 || from >= to || to > n {
		return nil, fmt.Errorf("vec: rows from %d to %d of %d", from, to-1, n)
	}
	return v.snapshotOf(rows[from:to], blobs[from:to]), nil
}

func (v *Vec) snapshotOf(rows []row, blobs [][]byte) []byte {
	b := snap.Begin(nil, magic)
	b = snap.String(b, v.spec.ID)
	b = snap.Int(b, int(v.cfg.Autoreset))
	b = snap.Int(b, len(rows))
	for i := range rows {
		b = appendRow(b, &rows[i], blobs[i])
	}
	return snap.Seal(b, 0)
}

// saveRow appends environment i's own snapshot, or nothing if it has no episode.
func (v *Vec) saveRow(dst []byte, i int) ([]byte, error) {
	s, ok := v.envs[i].(env.Snapshotter)
	if !ok {
		return dst, fmt.Errorf("%s has no snapshots: %w", v.spec.ID, errors.ErrUnsupported)
	}
	if !v.rows[i].live {
		return dst, nil
	}
	return s.AppendSnapshot(dst)
}

// RestoreSnapshot continues from src, the snapshot of a Vec with the same environments, number of rows and mode, and
// fills b with the time steps that were current when it was saved (its Final columns become empty). No row may be out.
// src may be hostile: if it cannot be restored, RestoreSnapshot returns env.ErrSnapshot and changes nothing. If an
// environment then fails to return to its former state, its row needs a Reset.
func (v *Vec) RestoreSnapshot(src []byte, b *env.Batch) error { return v.restore(src, nil, b, true) }

// RestoreRows is RestoreSnapshot into the given rows only; nil means all. src must hold the same number of rows, and
// the k-th of them continues in rows[k]. Other rows and their part of b are unchanged. The saved Vec may have had
// another mode, with two consequences. An episode that has ended cannot be restored into SameStep, where no row waits
// for its next episode: the error is an *EndedError. And a row saved under SameStep right after an episode's end, which
// has begun its next episode, is restored into another mode at that episode's first time step.
func (v *Vec) RestoreRows(src []byte, rows []int, b *env.Batch) error {
	return v.restore(src, rows, b, false)
}

func (v *Vec) restore(src []byte, rows []int, b *env.Batch, sameMode bool) error {
	rows, err := v.check(rows, b)
	if err != nil {
		return err
	}
	saved, blobs, err := v.parse(src, len(rows), sameMode)
	if err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	if v.cfg.Autoreset == SameStep {
		if err := ended(saved, rows); err != nil {
			return err
		}
	}
	before := make([][]byte, len(rows))
	for k, i := range rows {
		if before[k], err = v.saveRow(nil, i); err != nil {
			return &RowError{i, err}
		}
	}
	// Restoring may involve replaying an episode, so the workers share the rows. All rows are tried; if one fails, the
	// others return to their former state.
	stage := env.NewBatch(v.spec, len(v.rows))
	refused := make([]error, len(rows))
	_ = par.For(context.Background(), v.cfg.Workers, len(rows), func(_, k int) error {
		refused[k] = v.restoreRow(rows[k], &saved[k], blobs[k], before[k], stage)
		return nil // failures are recorded per row
	})
	if bad := slices.IndexFunc(refused, func(err error) bool { return err != nil }); bad >= 0 {
		for k, i := range rows {
			if refused[k] == nil && saved[k].live {
				v.takeBack(i, before[k])
			}
		}
		return &RowError{rows[bad], refused[bad]}
	}
	for k, i := range rows {
		v.rows[i] = saved[k]
		if saved[k].live {
			v.copyRow(b, stage, i)
		}
	}
	clearFinal(b)
	return nil
}

// EndedError lists rows that a snapshot has at the end of their episodes, where no row of the Vec can be.
type EndedError struct{ Rows []int }

// Error implements error.
func (e *EndedError) Error() string {
	return fmt.Sprintf(
		"vec: rows %v are at the end of their episodes, where mode %v has no rows: it begins the next episode in the same "+
			"step", e.Rows, SameStep)
}

// Is makes an EndedError an env.ErrSnapshot.
func (e *EndedError) Is(target error) bool { return target == env.ErrSnapshot }

// ended returns an *EndedError for those of rows that have ended when they were saved, nil if there are none.
func ended(saved []row, rows []int) error {
	var e EndedError
	for k := range saved {
		if saved[k].live && saved[k].ended {
			e.Rows = append(e.Rows, rows[k])
		}
	}
	if e.Rows == nil {
		return nil
	}
	return &e
}

// restoreRow makes environment i continue from blob and writes its time step to stage. On an error the environment is
// unchanged.
func (v *Vec) restoreRow(i int, r *row, blob, before []byte, stage *env.Batch) error {
	if !r.live {
		return nil
	}
	ts := &v.ts[i]
	v.view(ts, stage, i)
	if err := v.envs[i].(env.Snapshotter).RestoreSnapshot(blob, ts); err != nil {
		return err
	}
	if ts.Kind.Last() != r.ended {
		v.takeBack(i, before)
		return fmt.Errorf("%w: the environment's time step is %v, the row's %v", env.ErrSnapshot, ts.Kind, r.kind)
	}
	stage.Kind[i], stage.Reward[i], stage.Elapsed[i] = r.kind, r.reward, r.elapsed
	return nil
}

// takeBack restores environment i to its former state.
func (v *Vec) takeBack(i int, before []byte) {
	if !v.rows[i].live {
		return // it had no episode: its row waits for a Reset, as before
	}
	ts := env.NewTimeStep(v.spec)
	if err := v.envs[i].(env.Snapshotter).RestoreSnapshot(before, ts); err != nil {
		v.rows[i].live = false
	}
}

// parse decodes src, the snapshot of n rows, -1 = of any number, without changing v.
func (v *Vec) parse(src []byte, n int, sameMode bool) (rows []row, blobs [][]byte, err error) {
	rd, err := snap.Open(src, magic)
	if err != nil {
		return nil, nil, err
	}
	id, mode, count := rd.String(), rd.Int(), rd.Int()
	if n < 0 {
		if count < 1 || count > len(src) { // a row has more than a byte
			return nil, nil, fmt.Errorf("%d rows", count)
		}
		n = count
	}
	if id != v.spec.ID || count != n || sameMode && mode != int(v.cfg.Autoreset) {
		return nil, nil, fmt.Errorf("of %d rows of %.40q in mode %v, want %d rows of %q in mode %v",
			count, id, Autoreset(mode&0xff), n, v.spec.ID, v.cfg.Autoreset)
	}
	rows, blobs = make([]row, n), make([][]byte, n)
	for i := range rows {
		r := &rows[i]
		r.seed, r.episode = rd.U64(), rd.Int()
		r.hasTask = rd.Bool()
		r.task = make([]float64, rd.Count(8))
		for k := range r.task {
			r.task[k] = rd.F64()
		}
		r.live, r.ended = rd.Bool(), rd.Bool()
		kind := rd.Int()
		r.kind, r.reward, r.elapsed = env.Kind(kind&3), rd.F64(), time.Duration(rd.Int())
		blobs[i] = rd.Bytes()
		if r.episode < -1 || kind != int(r.kind) || r.elapsed < 0 || !r.hasTask && len(r.task) > 0 ||
			r.live && len(blobs[i]) == 0 {
			return nil, nil, fmt.Errorf("row %d makes no sense", i)
		}
		if Autoreset(mode) == SameStep && v.cfg.Autoreset != SameStep && r.kind.Last() && !r.ended {
			r.kind, r.reward, r.elapsed = env.First, 0, 0
		}
	}
	return rows, blobs, rd.Done()
}
