package handle

import (
	"context"
	"errors"

	"clustergym/bridge/wire"
	"clustergym/env/vec"
)

// doSend begins a step of rows without waiting for it.
func (h *Handle) doSend(q request, w *wire.Writer) error {
	if err := h.ready(q.rows, true); err != nil {
		return err
	}
	if err := h.actions(q.req, q.rows); err != nil {
		return err
	}
	h.v.SetWorkers(h.pace.most(len(h.all))) // the first Send starts this many for good
	if err := h.v.Send(q.rows, h.a); err != nil {
		return err
	}
	w.Reply(q.re, wire.OpSend, 0)
	return nil
}

// doRecv answers with the rows that finished first among those that are out.
func (h *Handle) doRecv(ctx context.Context, re uint32, w *wire.Writer) error {
	if h.stray {
		return h.failedOf(h.all)
	}
	rows, err := h.v.Recv(ctx, h.batch, h.b)
	if errors.Is(err, vec.ErrNotPending) {
		return &wire.Error{Code: wire.NotPending, Msg: "no environment has been sent an action whose result was not received",
			Want: "a send first"}
	}
	if rows == nil && err != nil {
		return err
	}
	return h.finish(re, wire.OpRecv, rows, true, err, w)
}
