package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"clustergym/bridge/handle"
	"clustergym/bridge/wire"
)

// request is a message on its way through a lane.
type request struct {
	id      uint32
	op      string
	m       wire.Map
	f       *frame      // m has views of it
	refused *wire.Error // the reply, if the request was refused before its turn
}

// lane executes the requests to one handle in order: its goroutine takes them from a queue and writes the replies. The
// first request is the open. If a call takes too long, another goroutine takes the lane over (watchdog.go).
//
// Waking the lane's goroutine takes longer than many steps. So the reading goroutine executes a request itself if none
// is queued and the previous one was short (claim); reader.go says which goroutine reads meanwhile. Only the goroutine
// that holds the turn executes.
type lane struct {
	s     *session
	h     uint32
	queue chan request // has room for every request in waiting; closed when no more come

	// Guarded by the session's lock.
	waiting []uint32 // ids of the unanswered requests, in order
	gone    bool     // queue is closed
	kept    ring     // the last replies
	room    replyRoom
	call    call // of the goroutine that holds the turn
	brief   bool // the last call was short
	timer   *time.Timer
	// timer runs; it keeps running after a call, because an idle expiry costs less than arming it for every call
	armed bool
	stuck *stuck // the abandoned call, nil = none; changed only by the holder of the turn

	// turn is held from before a request is executed until its reply is written, and guards the fields below. It must
	// not be waited for while holding the session's lock.
	turn   sync.Mutex
	hd     handle.Served // nil while an abandoned call has it
	closed bool          // the handle was not opened, or is closed
	frames int64         // bytes that are reserved for the handle's requests
	ctx    context.Context
	cancel context.CancelFunc
}

// briefly is how long a call may take for the reading goroutine to execute the next one itself.
const briefly = 200 * time.Microsecond

// call is a call to the handle.
type call struct {
	n       uint64 // counts the calls
	running bool
	inline  bool // in the reading goroutine
	began   time.Time
	id      uint32 // of the request
	op      string
}

// newLane makes a lane for a request to open, or returns why there can be none. The caller holds the session's lock.
func (s *session) newLane() (*lane, *wire.Error) {
	cfg := &s.srv.cfg
	switch {
	case s.srv.draining.Load():
		return nil, wire.Errorf(wire.Draining, "the server is ending: nothing is opened any more")
	case s.opening == cfg.MaxInflight:
		return nil, wire.Errorf(wire.Busy, "%d requests to open are unanswered, and no more are taken", s.opening)
	case len(s.lanes) >= cfg.MaxHandles:
		return nil, &wire.Error{Code: wire.Capacity, Msg: fmt.Sprintf("this session has %d handles: close one", len(s.lanes)),
			Retry: true}
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
	s.srv.wg.Go(l.serve)
	return l, nil
}

// push queues a request. The caller holds the session's lock.
func (l *lane) push(r request) {
	l.expect(r.id)
	l.queue <- r
}

// expect notes a request that will be answered. The caller holds the session's lock.
func (l *lane) expect(id uint32) {
	l.waiting = append(l.waiting, id)
	l.s.pending++
	l.s.srv.met.inflight.Add(1)
}

// claim prepares a request that the caller executes itself, with run. It takes the turn if the lane is idle and its
// last call was short, and else returns false. The caller holds the session's lock.
func (l *lane) claim(r *request) bool {
	if !l.brief || len(l.waiting) > 0 || r.op == wire.OpClose || !l.turn.TryLock() {
		return false
	}
	l.expect(r.id)
	return true
}

// run executes a claimed request.
func (l *lane) run(r request) {
	if l.execute(r, true) {
		l.turn.Unlock()
	}
}

// shut closes the queue. The caller holds the session's lock.
func (l *lane) shut() {
	if !l.gone {
		l.gone = true
		close(l.queue)
		l.s.srv.met.handles.Add(-1) // before the reply to close is written: its reader may look
	}
}

// serve executes requests until there are no more, or until the watchdog has abandoned its call.
func (l *lane) serve() {
	for r := range l.queue {
		l.turn.Lock()
		if !l.execute(r, false) {
			return
		}
		l.turn.Unlock()
	}
	l.turn.Lock() // never released: the lane has ended
	if l.reclaim(true) {
		l.closeHandle(l.hd)
		l.end()
	}
	l.cancel()
	l.timer.Stop()
}

// execute answers one request. It returns false if the call was abandoned: another goroutine then holds the turn.
func (l *lane) execute(r request, inline bool) bool {
	w := l.writer()
	e := l.refuse(&r)
	switch {
	case e != nil:
		l.s.srv.met.failed(e.Code)
		e.Reply(w, r.id)
	case r.op == wire.OpClose && l.hd == nil: // already closed, or an abandoned call has it and will close it
		l.closed = true
		w.Reply(r.id, wire.OpClose, 0)
	default:
		if !l.perform(r, inline, w) {
			return false
		}
	}
	l.s.srv.release(r.f)
	l.reply(r.id, r.op, w)
	return true
}

// refuse returns the error of a request that must not reach the environments, else nil.
func (l *lane) refuse(r *request) *wire.Error {
	if r.refused != nil {
		return r.refused
	}
	back := l.reclaim(false)
	switch {
	case opens(r.op) || r.op == wire.OpClose:
		return nil
	case l.closed:
		return wire.Errorf(wire.BadHandle, "handle %d is not open", l.h)
	case !back:
		return &wire.Error{
			Code: wire.EnvFault, Retry: true,
			Msg: fmt.Sprintf("%s took too long and has not come back yet: reset later, or close the handle", l.stuck.what),
		}
	}
	return nil
}

// perform makes the call that a request asks for. It returns false if the call was abandoned.
func (l *lane) perform(r request, inline bool, w *wire.Writer) bool {
	s := l.s
	hd, ctx := l.hd, l.ctx
	began := time.Now()
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return true // the session has ended, and the reply has no receiver
	}
	mine := l.call.n + 1
	l.call = call{n: mine, running: true, inline: inline, began: began, id: r.id, op: r.op}
	if !l.armed {
		l.armed = true
		l.timer.Reset(s.srv.cfg.StepTimeout)
	}
	s.mu.Unlock()

	hd, err := l.do(ctx, hd, &r, w)

	took := time.Since(began)
	s.mu.Lock()
	if l.call.n != mine {
		l.comeBack(hd) // unlocks
		s.srv.release(r.f)
		return false
	}
	l.call.running = false
	l.brief = took < briefly
	s.mu.Unlock()
	if hd != nil {
		s.srv.met.count(hd.Stats(), r.op, took)
	}
	if err == nil && opens(r.op) {
		err = l.reserve(hd)
	}
	if !l.settle(&r, w, err) && opens(r.op) {
		l.closeHandle(hd) // the client got an error, and does not know the handle
		l.unreserve()
		hd = nil
	}
	l.hd, l.closed = hd, hd == nil
	return true
}

// do calls the handle. A panic becomes an error and poisons the handle.
func (l *lane) do(ctx context.Context, old handle.Served, r *request, w *wire.Writer) (hd handle.Served, err error) {
	s := l.s
	hd = old
	defer func() {
		if p := recover(); p != nil {
			err = wire.Errorf(wire.Internal, "the server failed; its log says how, under %s", l.panicked(r.op, p))
			if hd != nil {
				hd.Poison()
			}
		}
	}()
	switch r.op {
	case wire.OpOpen, wire.OpSimulate:
		opened, err := l.open(ctx, r.op, &handle.Opening{
			Req: r.m, Re: r.id, H: l.h, Async: s.feat&featAsync != 0, Share: s.feat&featShm != 0, Foreign: s.role&RoleAdmin != 0,
			Key: s.srv.key, Log: s.log.With("handle", l.h), Budget: s.srv.budget, Replies: l.replies(), Requests: l.requests(),
			Steppers: &s.srv.steppers,
		}, w)
		if err != nil {
			return nil, err
		}
		s.srv.met.envs.Add(int64(opened.Envs()))
		return opened, nil
	case wire.OpClose:
		l.closeHandle(hd)
		w.Reply(r.id, wire.OpClose, 0)
		return nil, nil
	}
	return hd, hd.Do(ctx, r.op, r.id, r.m, w)
}

// closeHandle closes a handle, which may be nil.
func (l *lane) closeHandle(hd handle.Served) {
	if hd == nil {
		return
	}
	l.s.srv.met.envs.Add(-int64(hd.Envs()))
	defer func() {
		if p := recover(); p != nil {
			l.panicked(wire.OpClose, p)
		}
	}()
	if err := hd.Close(); err != nil {
		l.s.log.Error("closing environments failed", "handle", l.h, "error", err)
	}
}

// panicked logs the value of a panic under an id, and returns the id for the client.
func (l *lane) panicked(op string, p any) string {
	id := randomHex(4)
	l.s.log.Error("panic", "id", id, "op", op, "handle", l.h, "value", fmt.Sprint(p), "stack", string(debug.Stack()))
	return id
}

// settle replaces the reply by an error if the call failed or the reply is too large. It returns true if all is well.
func (l *lane) settle(r *request, w *wire.Writer, err error) bool {
	if err == nil {
		err = l.fits(w)
	}
	if err == nil {
		switch most := l.s.srv.cfg.MaxFrameOut; {
		case w.Len() > most:
			err = wire.Errorf(wire.TooLarge, "a reply of %d bytes, above frame_out, %d", w.Len(), most)
		case !w.Complete():
			err = fmt.Errorf("the reply to %s is not complete", r.op)
		default:
			return true
		}
	}
	var e *wire.Error
	if !errors.As(err, &e) {
		id := randomHex(4)
		l.s.log.Error("request failed", "id", id, "op", r.op, "handle", l.h, "error", err)
		e = wire.Errorf(wire.Internal, "the server failed; its log says how, under %s", id)
	}
	l.s.srv.met.failed(e.Code)
	l.spare(w)
	e.Reply(w, r.id)
	return false
}

// reply notes a request as answered and sends the reply.
func (l *lane) reply(id uint32, op string, w *wire.Writer) {
	s := l.s
	b := w.Bytes()
	s.mu.Lock()
	c, part := l.book(id, op)
	s.mu.Unlock()
	if c != nil {
		c.write(b)
	}
	if part {
		s.part(c)
	}
}

// book notes that the slot being written holds the reply to a request. It returns the connection to send it on, nil =
// none now, and whether the session says bye after it. The caller holds the session's lock.
func (l *lane) book(id uint32, op string) (c *conn, part bool) {
	s := l.s
	l.waiting = append(l.waiting[:0], l.waiting[1:]...)
	s.pending--
	s.srv.met.inflight.Add(-1)
	if opens(op) {
		s.opening--
	}
	if len(l.kept.slots) > 1 {
		l.kept.keep(id, opens(op))
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
