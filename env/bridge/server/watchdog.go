package server

import (
	"context"
	"fmt"
	"time"

	"clustergym/env/bridge/wire"
)

// A call that takes longer than StepTimeout is left behind. Nothing can stop a goroutine from outside, so the roles
// change: the timer's goroutine gets the turn and answers the request, and where the call is the lane's own goroutine's
// becomes that. The former one, when its call comes back at last, only hands the environments over. Until then they
// belong to nobody, and every request but close is an error.

// stuck is a call that was left behind.
type stuck struct {
	what string // for people
	// Under the session's lock.
	hd       handle // of the call, if it has one once it has returned
	returned bool
	orphan   bool // the lane has ended: whoever comes back closes hd
}

// expire is called by the timer of a lane.
func (l *lane) expire() {
	s := l.s
	limit := s.srv.cfg.StepTimeout
	s.mu.Lock()
	late := l.call
	l.armed = false
	if !late.running || s.ended {
		s.mu.Unlock()
		return // the next call arms the timer, or nobody waits
	}
	if left := limit - time.Since(late.began); left > 0 {
		l.armed = true
		l.timer.Reset(left)
		s.mu.Unlock()
		return // it is a later call's time
	}
	// From here on this goroutine has the turn.
	s.srv.wg.Add(1)
	defer s.srv.wg.Done()
	l.call = call{n: late.n + 1}
	l.brief = false
	l.stuck = &stuck{what: fmt.Sprintf("%s, request %d,", late.op, late.id)}
	l.hd = nil
	l.kept.abandon()
	w := l.kept.writer(s.enc)
	e := wire.Errorf(wire.Timeout, "%s took longer than %v", late.op, limit)
	switch late.op {
	case wire.OpOpen:
		l.closed = true
		e.Reply(w, late.id)
	case wire.OpClose: // for the client it is
		l.closed = true
		w.Reply(late.id, wire.OpClose, 0)
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
	s.log.Warn("a request took too long and was left behind", "op", late.op, "request", late.id, "handle", l.h, "limit", limit)
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

// comeBack ends the goroutine of a call that was left behind. The caller holds the session's lock, which it unlocks.
func (l *lane) comeBack(hd handle) {
	st := l.stuck
	st.hd, st.returned = hd, true
	orphan := st.orphan
	l.s.mu.Unlock()
	if orphan {
		l.closeHandle(hd)
	}
}

// reclaim takes the handle back that was left with a call, if it has returned; false = it has not. At the lane's end
// the call is then told to close it.
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
		l.hd.poison()
	}
	return true
}
