package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"clustergym/env/bridge/wire"
)

// request is a message on its way through a lane.
type request struct {
	id      uint32
	op      string
	m       wire.Map
	f       *frame      // what m has views of
	refused *wire.Error // the reply, where it was found wanting before its turn
}

// lane executes the requests to one handle in order: a goroutine that takes them from a queue and writes the replies.
// Its first request is the one to open. Another goroutine becomes the lane's when a call takes too long (watchdog.go).
type lane struct {
	s     *session
	h     uint32
	queue chan request // has room for all of waiting; closed when no more come

	// Under the session's lock.
	waiting []uint32 // ids of the requests not yet answered, in order
	gone    bool     // queue is closed
	kept    ring     // the last replies
	call    call     // what the goroutine is about
	stuck   *stuck   // the call that was left behind, nil = none; only the lane's goroutine changes it

	// The goroutine's alone.
	hd     handle // nil while it is with a call that was left behind
	closed bool   // there is no handle, or none any more
	timer  *time.Timer
	ctx    context.Context
	cancel context.CancelFunc
}

// call is a call to the environments' side.
type call struct {
	n     uint64 // counts them
	began time.Time
	r     *request // nil = none is running
}

// newLane makes a lane for a request to open. The caller holds the session's lock.
func (s *session) newLane() (*lane, *wire.Error) {
	cfg := &s.srv.cfg
	switch {
	case s.srv.draining.Load():
		return nil, wire.Errorf(wire.Draining, "the server is ending: nothing is opened any more")
	case s.opening == cfg.MaxInflight:
		return nil, wire.Errorf(wire.Busy, "%d requests to open are unanswered, and no more are taken", s.opening)
	case len(s.lanes) >= cfg.MaxHandles:
		return nil, &wire.Error{Code: wire.Capacity, Msg: fmt.Sprintf("this session has %d handles: close one", len(s.lanes)), Retry: true}
	}
	s.handles++
	s.opening++
	keep := 0
	if s.feat&featResume != 0 {
		keep = cfg.MaxInflight
	}
	l := &lane{s: s, h: s.handles, queue: make(chan request, cfg.MaxInflight), kept: newRing(keep)}
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	l.timer = time.AfterFunc(math.MaxInt64, l.expire)
	l.timer.Stop()
	s.lanes[l.h] = l
	s.srv.met.handles.Add(1)
	s.srv.wg.Add(1)
	go func() {
		defer s.srv.wg.Done()
		l.serve()
	}()
	return l, nil
}

// push queues a request. The caller holds the session's lock.
func (l *lane) push(r request) {
	l.waiting = append(l.waiting, r.id)
	l.s.pending++
	l.s.srv.met.inflight.Add(1)
	l.queue <- r
}

// shut lets no more requests come. The caller holds the session's lock.
func (l *lane) shut() {
	if !l.gone {
		l.gone = true
		close(l.queue)
	}
}

// serve executes requests until there are no more, or until one is left behind by the watchdog.
func (l *lane) serve() {
	for r := range l.queue {
		if !l.execute(&r) {
			return
		}
	}
	l.s.srv.met.handles.Add(-1)
	if l.reclaim(true) {
		l.closeHandle(l.hd)
	}
	l.cancel()
}

// execute answers one request. It is false when the call was left behind: another goroutine is the lane's now.
func (l *lane) execute(r *request) bool {
	w := l.kept.writer(l.s.enc)
	switch e := l.refuse(r); {
	case e != nil:
		l.s.srv.met.failed(e.Code)
		e.Reply(w, r.id)
	case r.op == wire.OpClose:
		w.Reply(r.id, wire.OpClose, 0)
		l.closed = true
		if l.stuck == nil {
			l.closeHandle(l.hd)
			l.hd = nil
		}
	default:
		if !l.perform(r, w) {
			return false
		}
	}
	l.s.srv.release(r.f)
	l.reply(r, w)
	return true
}

// refuse is the error of a request that does not reach the environments.
func (l *lane) refuse(r *request) *wire.Error {
	switch {
	case r.refused != nil:
		return r.refused
	case r.op == wire.OpOpen || r.op == wire.OpClose:
		return nil
	case l.closed:
		return wire.Errorf(wire.BadHandle, "handle %d is not open", l.h)
	case !l.reclaim(false):
		return &wire.Error{
			Code: wire.EnvFault, Retry: true,
			Msg: fmt.Sprintf("%s took too long and has not come back yet: reset later, or close the handle", l.stuck.op),
		}
	}
	return nil
}

// perform makes the call that a request asks for. It is false when the call was left behind.
func (l *lane) perform(r *request, w *wire.Writer) bool {
	s := l.s
	hd, ctx := l.hd, l.ctx
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return true // nobody waits for the reply
	}
	l.call = call{n: l.call.n + 1, began: time.Now(), r: r}
	mine := l.call
	l.timer.Reset(s.srv.cfg.StepTimeout)
	s.mu.Unlock()

	hd, err := l.do(ctx, hd, r, w)

	s.mu.Lock()
	if l.call.n != mine.n {
		l.comeBack(hd) // unlocks
		s.srv.release(r.f)
		return false
	}
	l.call.r = nil
	l.timer.Stop()
	s.mu.Unlock()
	if l.hd = hd; hd == nil {
		l.closed = true
	} else {
		s.srv.met.count(hd.stats(), r.op, time.Since(mine.began))
	}
	l.settle(r, w, err)
	return true
}

// do calls the environments' side. What panics there is an error, and spoils the environments.
func (l *lane) do(ctx context.Context, old handle, r *request, w *wire.Writer) (hd handle, err error) {
	s := l.s
	hd = old
	defer func() {
		if p := recover(); p != nil {
			err = wire.Errorf(wire.Internal, "the server failed; its log says how, under %s", l.panicked(r.op, p))
			if hd != nil {
				hd.poison()
			}
		}
	}()
	if r.op != wire.OpOpen {
		return hd, hd.do(ctx, r.op, r.id, r.m, w)
	}
	opened, err := open(ctx, s.srv.factory, &s.srv.cfg, &opening{
		req: r.m, re: r.id, h: l.h, feat: s.feat, role: s.role, key: s.srv.key, log: s.log.With("handle", l.h),
	}, w)
	if err != nil {
		return nil, err
	}
	s.srv.met.envs.Add(int64(opened.envs()))
	return opened, nil
}

// closeHandle closes a handle, which may be none.
func (l *lane) closeHandle(hd handle) {
	if hd == nil {
		return
	}
	l.s.srv.met.envs.Add(-int64(hd.envs()))
	defer func() {
		if p := recover(); p != nil {
			l.panicked(wire.OpClose, p)
		}
	}()
	if err := hd.close(); err != nil {
		l.s.log.Error("closing environments failed", "handle", l.h, "error", err)
	}
}

// panicked logs what was thrown, under an id that the client is told.
func (l *lane) panicked(op string, p any) string {
	id := randomHex(4)
	l.s.log.Error("panic", "id", id, "op", op, "handle", l.h, "value", fmt.Sprint(p), "stack", string(debug.Stack()))
	return id
}

// settle makes the reply an error reply where the call failed, or where it grew too large.
func (l *lane) settle(r *request, w *wire.Writer, err error) {
	if err == nil {
		most := l.s.srv.cfg.MaxFrameOut
		if w.Len() <= most {
			return
		}
		err = wire.Errorf(wire.TooLarge, "a reply of %d bytes, above frame_out, %d", w.Len(), most)
	}
	var e *wire.Error
	if !errors.As(err, &e) {
		id := randomHex(4)
		l.s.log.Error("request failed", "id", id, "op", r.op, "handle", l.h, "error", err)
		e = wire.Errorf(wire.Internal, "the server failed; its log says how, under %s", id)
	}
	l.s.srv.met.failed(e.Code)
	w.Reset()
	e.Reply(w, r.id)
}

// reply books a request as answered and sends the reply.
func (l *lane) reply(r *request, w *wire.Writer) {
	s := l.s
	b := w.Bytes()
	s.mu.Lock()
	c, part := l.book(r)
	s.mu.Unlock()
	if c != nil {
		c.write(b)
	}
	if part {
		s.part(c)
	}
}

// book notes that the slot being written holds the reply to r. It returns where that is to be sent, nil = nowhere now,
// and whether bye is said after it. The caller holds the session's lock.
func (l *lane) book(r *request) (c *conn, part bool) {
	s := l.s
	l.waiting = append(l.waiting[:0], l.waiting[1:]...)
	s.pending--
	s.srv.met.inflight.Add(-1)
	if r.op == wire.OpOpen {
		s.opening--
	}
	if len(l.kept.slots) > 1 {
		l.kept.keep(r.id, r.op == wire.OpOpen)
	}
	if s.ended {
		return nil, false
	}
	if l.closed && len(l.waiting) == 0 {
		l.shut()
		s.bury(l)
	}
	if s.conn == nil {
		return nil, false
	}
	return s.conn, s.leaving()
}
