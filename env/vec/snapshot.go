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
// env.Snapshotters (errors.ErrUnsupported otherwise). On an error dst is returned as it was.
func (v *Vec) AppendSnapshot(dst []byte) ([]byte, error) {
	if v.closed {
		return dst, env.ErrClosed
	}
	b := snap.Begin(dst, magic)
	b = snap.String(b, v.spec.ID)
	b = snap.Int(b, int(v.cfg.Autoreset))
	b = snap.Int(b, len(v.rows))
	var scratch []byte
	for i := range v.rows {
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
		var err error
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
// mode, and fills b with the time steps that were current then (its Final columns become empty). src may be
// hostile: what cannot be restored is an env.ErrSnapshot, and nothing is changed. Should an environment fail to
// take back its former state afterwards, its row needs a Reset.
func (v *Vec) RestoreSnapshot(src []byte, b *env.Batch) error {
	if _, err := v.check(nil, b); err != nil {
		return err
	}
	rows, blobs, err := v.parse(src)
	if err != nil {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	before := make([][]byte, len(v.rows))
	for i := range v.rows {
		if before[i], err = v.saveRow(nil, i); err != nil {
			return &RowError{i, err}
		}
	}
	stage := env.NewBatch(v.spec, len(v.rows))
	stage.CopyFrom(b)
	for i := range rows {
		r := &rows[i]
		if !r.live {
			continue
		}
		ts := &v.ts[i]
		v.view(ts, stage, i)
		err := v.envs[i].(env.Snapshotter).RestoreSnapshot(blobs[i], ts)
		if err == nil && ts.Kind.Last() != r.ended {
			err = fmt.Errorf("%w: the environment's time step is %v, the row's %v", env.ErrSnapshot, ts.Kind, r.kind)
			v.takeBack(i, before[i])
		}
		if err != nil {
			for k := range i {
				if rows[k].live {
					v.takeBack(k, before[k])
				}
			}
			return &RowError{i, err}
		}
		stage.Kind[i], stage.Reward[i], stage.Elapsed[i] = r.kind, r.reward, r.elapsed
	}
	v.rows = rows
	b.CopyFrom(stage)
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

// parse takes src apart without touching v.
func (v *Vec) parse(src []byte) (rows []row, blobs [][]byte, err error) {
	rd, err := snap.Open(src, magic)
	if err != nil {
		return nil, nil, err
	}
	id, mode, n := rd.String(), rd.Int(), rd.Int()
	if id != v.spec.ID || mode != int(v.cfg.Autoreset) || n != len(v.rows) {
		return nil, nil, fmt.Errorf("of %d rows of %.40q in mode %v, want %d rows of %q in mode %v",
			n, id, Autoreset(mode&0xff), len(v.rows), v.spec.ID, v.cfg.Autoreset)
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
	}
	return rows, blobs, rd.Done()
}
