package vec

import (
	"context"
	"errors"
	"slices"

	"clustergym/env"
	"clustergym/internal/par"
)

var (
	// ErrOut is returned for a row that was sent and has not been received.
	ErrOut = errors.New("vec: the row is out: receive it first")
	// ErrNotPending is returned by Recv when no row is out.
	ErrNotPending = errors.New("vec: no row is out")
)

// async is the state of asynchronous stepping. Its workers write to their own batch, from which Recv copies.
type async struct {
	call   call // of all rows: a worker owns row i from Put(i) to Done
	pool   *par.Pool
	cancel context.CancelFunc
	out    int   // rows sent and not yet received
	ready  []int // done, but not yet returned by Recv
	rows   []int // returned by the last Recv
}

// Pending returns the number of rows that are out, that is, sent and not yet received.
func (v *Vec) Pending() int {
	if v.async == nil {
		return 0
	}
	return v.async.out
}

// Out reports whether row i is out.
func (v *Vec) Out(i int) bool { return v.rows[i].out }

// Send starts applying row i of a to environment i, for each of rows (nil means all), and does not wait; Recv returns
// the results. Send copies the actions. Until a row is received, no other call may name it (ErrOut); other rows may be
// reset and stepped meanwhile. After any error nothing was done.
//
// The first Send starts Config.Workers goroutines, at least one; Close ends them.
func (v *Vec) Send(rows []int, a *env.Actions) error {
	if v.closed {
		return env.ErrClosed
	}
	if err := v.checkActions(a); err != nil {
		return err
	}
	rows, err := v.checkRows(rows)
	if err != nil {
		return err
	}
	if v.async == nil {
		v.start()
	}
	s := v.async
	d, c := v.discLen, v.contLen
	for _, i := range rows {
		r := &v.rows[i]
		r.out, r.final, r.err = true, false, nil
		copy(s.call.a.Disc[i*d:(i+1)*d], a.Disc[i*d:])
		copy(s.call.a.Cont[i*c:(i+1)*c], a.Cont[i*c:])
		v.view(&v.ts[i], s.call.b, i)
	}
	s.out += len(rows)
	for _, i := range rows {
		s.pool.Put(i)
	}
	return nil
}

func (v *Vec) start() {
	n := len(v.rows)
	ctx, cancel := context.WithCancel(context.Background())
	s := &async{
		call:   call{ctx: ctx, a: env.NewActions(v.spec, n), b: env.NewBatch(v.spec, n)},
		cancel: cancel,
		ready:  make([]int, 0, n), rows: make([]int, 0, n),
	}
	s.pool = par.NewPool(min(v.cfg.Workers, n), n, func(_, i int) {
		r := &v.rows[i]
		if r.err = v.step(&s.call, i); r.err == nil {
			v.publish(s.call.b, i)
		}
	})
	v.async = s
}

// Recv waits until at least `least` of the rows that are out are done, or all of them if fewer are out. It writes the
// first `least` of them to their rows of b, as Step does, and leaves others for the next Recv. It returns those rows
// in ascending order, in a slice that is valid until the next Recv, and reports failures of rows as Step does. The
// order in which rows are done depends on timing; their contents do not.
//
// If ctx ends first, Recv returns its error and no row is lost.
func (v *Vec) Recv(ctx context.Context, least int, b *env.Batch) (rows []int, err error) {
	if v.closed {
		return nil, env.ErrClosed
	}
	if err := v.checkBatch(b); err != nil {
		return nil, err
	}
	if v.Pending() == 0 {
		return nil, ErrNotPending
	}
	s := v.async
	want := max(1, min(least, s.out))
	for len(s.ready) < want {
		select {
		case i := <-s.pool.Done():
			s.ready = append(s.ready, i)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.rows = append(s.rows[:0], s.ready[:want]...)
	s.ready = append(s.ready[:0], s.ready[want:]...)
	s.out -= want
	slices.Sort(s.rows)
	clearFinal(b)
	failed := false
	for _, i := range s.rows {
		r := &v.rows[i]
		r.out = false
		if r.err != nil {
			failed = true
			continue
		}
		v.copyRow(b, s.call.b, i)
		if r.final {
			v.gather(b, i)
		}
	}
	if failed {
		err = v.failures(s.rows)
	}
	return s.rows, err
}

// copyRow copies row i from src to dst.
func (v *Vec) copyRow(dst, src *env.Batch, i int) {
	o, m, n := v.obsLen, v.maskLen, v.infoLen
	dst.Kind[i], dst.Reward[i], dst.Elapsed[i] = src.Kind[i], src.Reward[i], src.Elapsed[i]
	copy(dst.Obs[i*o:(i+1)*o], src.Obs[i*o:])
	copy(dst.Mask[i*m:(i+1)*m], src.Mask[i*m:])
	copy(dst.Info[i*n:(i+1)*n], src.Info[i*n:])
}
