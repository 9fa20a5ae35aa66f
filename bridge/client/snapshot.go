package client

import (
	"context"
	"fmt"
	"time"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// snapshot appends the state of all rows to dst.
func (r *remote) snapshot(dst []byte) ([]byte, error) {
	if r.closed {
		return dst, env.ErrClosed
	}
	r.h.begin(wire.OpSnapshot, 0)
	if err := r.h.roundTrip(context.Background()); err != nil {
		return dst, err
	}
	defer r.h.release()
	blob, e := r.h.reply.reply.Bytes("blob")
	if e != nil || len(blob) == 0 {
		return dst, fmt.Errorf("%w: no blob", ErrReply)
	}
	return append(dst, blob...), nil
}

// restore asks the server to continue from src. The reply is in r.h.reply.
func (r *remote) restore(src []byte) error {
	if r.closed {
		return env.ErrClosed
	}
	if most := r.h.c.allowed().frameIn - 1024; len(src) > most {
		return fmt.Errorf("%w: %d bytes, want at most %d", env.ErrSnapshot, len(src), most)
	}
	r.h.request(wire.OpRestore, wire.MapOf("blob", src))
	return r.h.exchange(context.Background(), true)
}

// AppendSnapshot appends the state of all rows to dst and returns the longer slice. The server signs the bytes, and
// takes them back into environments of the same id, kwargs, number and mode.
func (v *Vec) AppendSnapshot(dst []byte) ([]byte, error) {
	if !v.closed {
		if err := v.home(nil, len(v.all)); err != nil {
			return dst, err
		}
	}
	return v.snapshot(dst)
}

// RestoreSnapshot continues from src, fills b with the time steps that were current then, and empties its Final
// columns. If src cannot be restored, the error is an env.ErrSnapshot and nothing changes.
func (v *Vec) RestoreSnapshot(src []byte, b *env.Batch) error {
	if _, _, err := v.check(nil, b); err != nil {
		return err
	}
	if err := v.home(nil, len(v.all)); err != nil {
		return err
	}
	if err := v.restore(src); err != nil {
		return err
	}
	defer v.h.release()
	if err := v.l.readRestored(v.h.reply.reply, len(v.all)); err != nil {
		return err
	}
	clearFinal(b)
	for i := range v.all {
		v.writeRow(b, i, i)
		b.Kind[i], b.Reward[i], b.Elapsed[i] = v.l.restored(i)
		v.begun[i], v.fresh[i], v.ended[i] = true, false, v.mode != SameStep && b.Kind[i].Last()
	}
	return nil
}

// RestoreSnapshot continues from src and fills ts with the time step that was current then. If src cannot be restored,
// the error is an env.ErrSnapshot and nothing changes.
func (e *Env) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	if e.closed {
		return env.ErrClosed
	}
	if err := e.fits(ts); err != nil {
		return err
	}
	if err := e.restore(src); err != nil {
		return err
	}
	defer e.h.release()
	if err := e.l.readRestored(e.h.reply.reply, 1); err != nil {
		return err
	}
	e.l.write(0, ts.Obs, ts.Mask, ts.Info)
	ts.Kind, ts.Reward, ts.Elapsed = e.l.restored(0)
	e.begun, e.ended = true, ts.Kind.Last()
	return nil
}

// readRestored checks the reply to a restore, whose time steps may be of any kind.
func (l *layout) readRestored(m wire.Map, k int) (err error) {
	if l.firstCol = need(&err, m, "first", wire.Bool, k, -1); err != nil {
		return err
	}
	return l.read(m, k, true)
}

// restored returns kind, reward and elapsed time of row i of the reply to a restore.
func (l *layout) restored(i int) (env.Kind, float64, time.Duration) {
	if l.firstCol.Data[i] != 0 {
		return env.First, 0, 0
	}
	return l.kind(i), l.reward(i), l.duration(i)
}
