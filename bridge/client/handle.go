package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"clustergym/bridge/wire"
)

// handle is one open set of environments. It makes one request at a time and is not safe for concurrent use.
type handle struct {
	c     *Client
	id    uint32 // 0 = the session itself
	w     *wire.Writer
	op    string
	timer *time.Timer
	until time.Time // when the present call must have ended

	cl    *call // the last request
	reply *call // its reply is being read
	kept  *call // it was sent, and then cancelled by its caller
	spare []*call
}

func (c *Client) newHandle(id uint32) *handle {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &handle{c: c, id: id, w: wire.NewWriter(wire.Ext), timer: t}
}

// begin starts a request of n fields, not counting the handle. The caller writes the fields to the writer returned.
func (h *handle) begin(op string, n int) *wire.Writer {
	h.op = op
	h.w.Reset()
	if h.id == 0 {
		h.w.Request(math.MaxUint32, op, n)
		return h.w
	}
	h.w.Request(math.MaxUint32, op, n+1)
	h.w.Key("h")
	h.w.Uint(uint64(h.id))
	return h.w
}

// request starts a request with the entries of m. Steps are written field by field, with begin.
func (h *handle) request(op string, m wire.Map) {
	h.begin(op, len(m)).Entries(m)
}

// numberAt returns the offset of a request's id: after the map's header (one byte below 16 entries), the key "op" (3),
// the op (a byte and its letters), the key "id" (3) and the type (1).
func numberAt(op string) int { return 9 + len(op) }

// number writes the id over begin's placeholder, which is the largest uint32 so that the id has 4 bytes.
func number(frame []byte, op string, id uint32) {
	binary.BigEndian.PutUint32(frame[numberAt(op):], id)
}

// same reports whether two requests are equal except for their ids.
func same(a, b []byte, op string) bool {
	at := numberAt(op)
	return len(a) == len(b) && bytes.Equal(a[:at], b[:at]) && bytes.Equal(a[at+4:], b[at+4:])
}

// moves reports whether an operation changes environments.
func moves(op string) bool {
	switch op {
	case wire.OpReset, wire.OpStep, wire.OpSend, wire.OpRecv, wire.OpRestore, wire.OpOpen:
		return true
	}
	return false
}

// settle deals with an earlier call that was cancelled after it had been sent. If the current request is the same, the
// earlier call takes its place and again is true. If the earlier call changed no environment, or fresh says that the
// current one makes it irrelevant, settle waits for it and drops its reply. Otherwise the current call is ErrPending.
func (h *handle) settle(ctx context.Context, frame []byte, fresh bool) (again bool, err error) {
	k := h.kept
	if k == nil {
		return false, nil
	}
	if k.op == h.op && same(k.frame, frame, h.op) {
		h.kept, h.cl = nil, k
		return true, nil
	}
	if k.op == wire.OpRecv || moves(k.op) && !fresh { // received rows must not be lost
		return false, fmt.Errorf("%s: %w", k.op, ErrPending)
	}
	if err := h.await(ctx, k); err != nil {
		return false, err
	}
	h.kept = nil
	h.finish(k)
	return false, nil
}

// roundTrip sends the request begun and waits for its reply, which is in h.reply until release. A refusal is an error
// made by refused.
func (h *handle) roundTrip(ctx context.Context) error { return h.exchange(ctx, false) }

// exchange is roundTrip, where fresh says that the request makes all earlier ones irrelevant. It repeats a request that
// the server was too busy for, until Config.Timeout is over.
func (h *handle) exchange(ctx context.Context, fresh bool) error {
	h.start()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := h.attempt(ctx, fresh)
		var e *wire.Error
		if err == nil || !errors.As(err, &e) || e.Code != wire.Busy || time.Until(h.until) < pause {
			return err
		}
		h.timer.Reset(pause)
		select {
		case <-h.timer.C:
		case <-ctx.Done():
			h.timer.Stop()
			return ctx.Err()
		}
	}
}

func (h *handle) attempt(ctx context.Context, fresh bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	again, err := h.settle(ctx, h.w.Bytes(), fresh)
	if err != nil {
		return err
	}
	if !again {
		if err := h.post(); err != nil {
			return err
		}
	}
	cl := h.cl
	if err := h.await(ctx, cl); err != nil {
		if !h.c.withdraw(cl) {
			h.kept = cl
		} else {
			h.finish(cl)
		}
		return err
	}
	return h.take(cl)
}

// post queues the request begun for sending.
func (h *handle) post() error {
	cl := h.call()
	cl.h, cl.op = h.id, h.op
	cl.frame = append(cl.frame[:0], h.w.Bytes()...)
	if err := h.c.post(cl); err != nil {
		h.finish(cl)
		return err
	}
	h.cl = cl
	return nil
}

// start begins a call, which Config.Timeout bounds as a whole.
func (h *handle) start() { h.until = time.Now().Add(h.c.cfg.Timeout) }

// await waits until cl has its reply, or has failed with the session. The caller has called start.
func (h *handle) await(ctx context.Context, cl *call) error {
	h.timer.Reset(time.Until(h.until))
	defer h.timer.Stop()
	select {
	case <-cl.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-h.timer.C:
		return fmt.Errorf("client: no answer to %s from %s within %v: %w", cl.op, h.c.url, h.c.cfg.Timeout,
			context.DeadlineExceeded)
	}
}

// take makes the reply of cl, which has come, the one being read.
func (h *handle) take(cl *call) error {
	if cl.err != nil {
		err := cl.err
		h.finish(cl)
		return err
	}
	if op, _ := cl.reply.Str("op", ""); op == wire.OpError {
		err := refused(cl.op, wire.ErrorOf(cl.reply))
		h.finish(cl)
		return err
	} else if op != cl.op {
		h.finish(cl)
		return fmt.Errorf("%w: a reply of kind %.40q to %s", ErrReply, op, cl.op)
	}
	h.reply = cl
	return nil
}

// release ends the reading of the reply. Views of it must not be used afterwards.
func (h *handle) release() {
	h.finish(h.reply)
	h.reply = nil
}

// call returns a call that is not in use.
func (h *handle) call() *call {
	if n := len(h.spare); n > 0 {
		cl := h.spare[n-1]
		h.spare = h.spare[:n-1]
		return cl
	}
	return &call{done: make(chan struct{}, 1)}
}

// finish releases what cl holds. Its reply has come, or never will.
func (h *handle) finish(cl *call) {
	h.c.release(cl.buf)
	cl.reply, cl.buf, cl.err = nil, nil, nil
	h.c.mu.Lock()
	writing := cl.writing
	h.c.mu.Unlock()
	if !writing { // a frame that is being sent again now must not be reused, so it is left to the garbage collector
		h.spare = append(h.spare, cl)
	}
}
