package vec

import (
	"errors"
	"fmt"
	"time"

	"clustergym/env"
	"clustergym/internal/snap"
)

// magic names the format of a Vec's snapshot and its version.
const magic = "clustergym vec 1\n"

// AppendSnapshot appends the state of the Vec to dst and returns the longer slice: the seed, episode and task of
// every row, what its autoreset is about to do, and the environments themselves, which must be
// env.Snapshotters (errors.ErrUnsupported otherwise). No row may be out. On an error dst is returned as it was.
func (v *Vec) AppendSnapshot(dst []byte) ([]byte, error) { return v.AppendRows(dst, nil) }

// AppendRows is AppendSnapshot of the rows asked alone, nil meaning all, in the order asked.
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
		r := &v.rows[i]
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
		if scratch, err = v.saveRow(scratch[:0], i); err != nil {
			return dst, &RowError{i, err}
		}
		b = snap.Bytes(b, scratch)
	}
	return snap.Seal(b, len(dst)), nil
}

// saveRow appends environment i's own snapshot, nothing where it has no episode.
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

// RestoreSnapshot continues from src, the snapshot of a Vec with the same environments, number of rows and
// mode, and fills b with the time steps that were current then (its Final columns become empty). No row may be out.
// src may be hostile: what cannot be restored is an env.ErrSnapshot, and nothing is changed. Should an environment
// fail to take back its former state afterwards, its row needs a Reset.
func (v *Vec) RestoreSnapshot(src []byte, b *env.Batch) error { return v.restore(src, nil, b, true) }

// RestoreRows is RestoreSnapshot into the rows asked alone, nil meaning all: src is of as many rows, and the k-th of
// them continues in rows[k]. Other rows and their part of b stay as they are. The Vec that was saved may have had
// another mode; but an episode that has ended cannot be restored into SameStep, where no row waits like that.
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
	before := make([][]byte, len(rows))
	for k, i := range rows {
		if before[k], err = v.saveRow(nil, i); err != nil {
			return &RowError{i, err}
		}
	}
	stage := env.NewBatch(v.spec, len(v.rows))
	for k, i := range rows {
		r := &saved[k]
		if !r.live {
			continue
		}
		ts := &v.ts[i]
		v.view(ts, stage, i)
		err := v.envs[i].(env.Snapshotter).RestoreSnapshot(blobs[k], ts)
		if err == nil && ts.Kind.Last() != r.ended {
			err = fmt.Errorf("%w: the environment's time step is %v, the row's %v", env.ErrSnapshot, ts.Kind, r.kind)
			v.takeBack(i, before[k])
		}
		if err != nil {
			for j, i := range rows[:k] {
				if saved[j].live {
					v.takeBack(i, before[j])
				}
			}
			return &RowError{i, err}
		}
		stage.Kind[i], stage.Reward[i], stage.Elapsed[i] = r.kind, r.reward, r.elapsed
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

// takeBack gives environment i its former state again.
func (v *Vec) takeBack(i int, before []byte) {
	if !v.rows[i].live {
		return // it had none: its row waits for a Reset as before
	}
	ts := env.NewTimeStep(v.spec)
	if err := v.envs[i].(env.Snapshotter).RestoreSnapshot(before, ts); err != nil {
		v.rows[i].live = false
	}
}

// parse takes src, the snapshot of n rows, apart without touching v.
func (v *Vec) parse(src []byte, n int, sameMode bool) (rows []row, blobs [][]byte, err error) {
	rd, err := snap.Open(src, magic)
	if err != nil {
		return nil, nil, err
	}
	id, mode, count := rd.String(), rd.Int(), rd.Int()
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
		if r.live && r.ended && v.cfg.Autoreset == SameStep {
			return nil, nil, fmt.Errorf("row %d has ended, which no row has in mode %v", i, SameStep)
		}
	}
	return rows, blobs, rd.Done()
}
