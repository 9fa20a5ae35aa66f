package server

import (
	"context"
	"fmt"
	"time"

	"clustergym/bridge/handle"
	"clustergym/bridge/wire"
)

// A call that takes longer than StepTimeout is abandoned. A goroutine cannot be stopped from outside, so the timer's
// goroutine takes the turn and answers the request. If the call was made by the lane's goroutine, the timer's goroutine
// replaces it. When the abandoned call returns at last, its goroutine only gives the environments back. Until then
// every request except close is an error.

// stuck is an abandoned call.
type stuck struct {
	what string // for people
	// Guarded by the session's lock.
	hd       handle.Served // the call's handle, once the call has returned, if it has one
	returned bool
	orphan   bool // the lane has ended, so the call must close hd when it returns
}

// expire abandons the lane's call if it has taken too long. The lane's timer calls it.
func (l *lane) expire() {
	s := l.s
	limit := s.srv.cfg.StepTimeout
	s.mu.Lock()
	late := l.call
	l.armed = false
	if !late.running || s.ended {
		s.mu.Unlock()
		return // the next call arms the timer, or the session has ended
	}
	if left := limit - time.Since(late.began); left > 0 {
		l.armed = true
		l.timer.Reset(left)
		s.mu.Unlock()
		return // the current call began later than the one for which the timer was set
	}
	// From here on this goroutine has the turn.
	s.srv.wg.Add(1)
	defer s.srv.wg.Done()
	l.call = call{n: late.n + 1}
	l.brief = false
	l.stuck = &stuck{what: fmt.Sprintf("%s, request %d,", late.op, late.id)}
	l.hd = nil
	l.kept.abandon()
	w := l.writer()
	e := wire.Errorf(wire.Timeout, "%s took longer than %v", late.op, limit)
	switch late.op {
	case wire.OpOpen, wire.OpSimulate:
		l.closed = true
		e.Reply(w, late.id)
	case wire.OpClose: // for the client the handle is closed
		l.closed = true
		w.Reply(late.id, wire.OpClose, 0)
	case wire.OpDecide:
		e.Msg += ": the simulations are lost"
		e.Reply(w, late.id)
	default:
		e.Msg += ": what it did is lost, reset before going on"
		e.Reply(w, late.id)
	}
	b := w.Bytes()
	c, part := l.book(late.id, late.op)
	abort := l.cancel
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	s.mu.Unlock()
	abort()
	s.srv.met.failed(wire.Timeout)
	s.log.Warn("a request took too long and was left behind", "op", late.op, "request", late.id, "handle", l.h, "limit",
		limit)
	if c != nil {
		c.write(b)
	}
	if part {
		s.part(c)
	}
	l.turn.Unlock()
	if !late.inline {
		l.serve()
	}
}

// comeBack is called when an abandoned call has returned, and gives its handle back. The caller holds the session's
// lock, which comeBack unlocks.
func (l *lane) comeBack(hd handle.Served) {
	st := l.stuck
	st.hd, st.returned = hd, true
	orphan := st.orphan
	l.s.mu.Unlock()
	if orphan {
		l.closeHandle(hd)
		l.end()
	}
}

// reclaim takes back the handle of an abandoned call. It returns false if the call has not returned; with last the call
// is then told to close the handle.
func (l *lane) reclaim(last bool) bool {
	st := l.stuck
	if st == nil {
		return true
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if !st.returned {
		st.orphan = last
		return false
	}
	l.hd, l.stuck = st.hd, nil
	if l.hd != nil && !last {
		l.hd.Poison()
	}
	return true
}
