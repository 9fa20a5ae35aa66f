package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// ErrNotPending is returned by Recv if no row has been sent, so that there is nothing to receive.
var ErrNotPending = errors.New("client: no row is out")

// errOut refuses rows that were sent and not yet received.
var errOut = errors.New("client: the row is out: receive it first")

// Pending returns the number of rows that are out: sent and not yet received.
func (v *Vec) Pending() int {
	n := 0
	for _, out := range v.out {
		if out {
			n++
		}
	}
	return n
}

// Send begins to apply row i of a to environment i for each i of rows, nil meaning all, and does not wait: Recv returns
// the results. A row cannot be sent, stepped or reset again before it is received. If the server refuses the actions,
// the next Recv returns the error, and none of these rows is out.
func (v *Vec) Send(ctx context.Context, rows []int, a *env.Actions) error {
	if v.closed {
		return env.ErrClosed
	}
	if v.batch == 0 {
		return fmt.Errorf("client: Send: opened without VecConfig.Batch: %w", errors.ErrUnsupported)
	}
	rows, k, err := v.checkRows(rows)
	if err != nil {
		return err
	}
	if err := v.prepare(ctx, rows, k, a); err != nil {
		return err
	}
	if err := v.home(rows, k); err != nil {
		return err
	}
	v.h.start()
	// One of the requests that the server allows in flight is left for Recv.
	for len(v.sends) >= max(1, v.h.c.allowed().inflight-1) {
		if err := v.acknowledge(ctx); err != nil {
			return err
		}
	}
	v.request(wire.OpSend, rows, a)
	if _, err := v.h.settle(ctx, v.h.w.Bytes(), false); err != nil {
		return err
	}
	if err := v.h.post(); err != nil {
		return err
	}
	if rows == nil {
		rows = v.all
	}
	v.sends = append(v.sends, sent{v.h.cl, slices.Clone(rows)})
	for _, i := range rows {
		v.out[i] = true
	}
	if v.h.c.allowed().inflight < 2 { // Recv needs the only request in flight
		return v.settleSends(ctx)
	}
	return nil
}

// acknowledge waits for the reply of the oldest send.
func (v *Vec) acknowledge(ctx context.Context) error {
	s := v.sends[0]
	if err := v.h.await(ctx, s.cl); err != nil {
		return err
	}
	v.sends = v.sends[1:]
	if err := v.h.take(s.cl); err != nil {
		for _, i := range s.rows {
			v.out[i] = false
		}
		return err
	}
	v.h.release()
	return nil
}

// settleSends waits for the replies of all sends.
func (v *Vec) settleSends(ctx context.Context) error {
	for len(v.sends) > 0 {
		if err := v.acknowledge(ctx); err != nil {
			return err
		}
	}
	return nil
}

// home returns an error that names a row which is out.
func (v *Vec) home(rows []int, k int) error {
	err := error(nil)
	each(rows, k, func(_, i int) {
		if v.out[i] && err == nil {
			err = fmt.Errorf("%w (row %d)", errOut, i)
		}
	})
	return err
}

// Recv waits until VecConfig.Batch of the rows that are out have finished, or all of them if fewer are out, and writes
// them to their rows of b, as Step does. It returns these rows, in a slice that is valid until the next call. Which
// rows finish first depends on timing; their contents do not. If ctx ends first, no row is lost.
func (v *Vec) Recv(ctx context.Context, b *env.Batch) (rows []int, err error) {
	if _, _, err := v.check(nil, b); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if v.h.kept == nil && v.Pending() == 0 {
		return nil, ErrNotPending
	}
	v.h.start()
	v.h.begin(wire.OpRecv, 0)
	again, err := v.h.settle(ctx, v.h.w.Bytes(), false)
	if err != nil {
		return nil, err
	}
	if !again {
		if err := v.h.post(); err != nil {
			return nil, err
		}
	}
	// Replies come in the order of the requests, so those of the sends are first.
	cl := v.h.cl
	unsent := v.settleSends(ctx)
	if err := v.h.await(ctx, cl); err != nil {
		v.h.kept = cl
		return nil, errors.Join(unsent, err)
	}
	if err := v.h.take(cl); err != nil {
		return nil, errors.Join(unsent, err)
	}
	defer v.h.release()
	ids, e := v.h.reply.reply.Ints("ids")
	if e != nil {
		return nil, replyFault(e)
	}
	v.rows = v.rows[:0]
	v.serial++
	for _, i := range ids {
		if i < 0 || i >= int64(len(v.all)) || !v.out[i] || v.asked[i] == v.serial {
			return nil, fmt.Errorf("%w: rows %v received", ErrReply, ids)
		}
		v.asked[i] = v.serial
		v.rows = append(v.rows, int(i))
	}
	if err := v.transitions(v.h.reply.reply, v.rows, b); err != nil {
		return nil, err
	}
	for _, i := range v.rows {
		v.out[i] = false
	}
	return v.rows, unsent
}
