package server

import (
	"context"
	"fmt"
	"time"

	"clustergym/env/bridge/wire"
)

// A call that takes longer than StepTimeout is left behind. Nothing can stop a goroutine from outside, so the roles
// change: the timer's goroutine answers the request and becomes the lane's, and the former one, when its call comes
// back at last, only hands the environments over. Until then they belong to nobody, and every request but close is an
// error.

// stuck is a call that was left behind.
type stuck struct {
	op string
	// Under the session's lock.
	hd       handle // of the call; of `open` only once it has returned
	returned bool
	orphan   bool // the lane has ended: whoever comes back closes hd
}

// expire is called by the timer of a lane.
func (l *lane) expire() {
	s := l.s
	limit := s.srv.cfg.StepTimeout
	s.mu.Lock()
	r := l.call.r
	if r == nil || time.Since(l.call.began) < limit || s.ended {
		s.mu.Unlock()
		return // it came back in time, or nobody waits
	}
	// From here on this goroutine is the lane's.
	s.srv.wg.Add(1)
	defer s.srv.wg.Done()
	l.call = call{n: l.call.n + 1}
	l.stuck = &stuck{op: fmt.Sprintf("%s, request %d,", r.op, r.id), hd: l.hd}
	l.hd = nil
	l.closed = r.op == wire.OpOpen
	l.kept.abandon()
	w := l.kept.writer(s.enc)
	e := wire.Errorf(wire.Timeout, "%s took longer than %v; what it did is lost: reset before going on", r.op, limit)
	if l.closed {
		e.Msg = fmt.Sprintf("open took longer than %v", limit)
	}
	e.Reply(w, r.id)
	b := w.Bytes()
	answered := *r // the one in the call is not ours
	c, part := l.book(&answered)
	abort := l.cancel
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	s.mu.Unlock()
	abort()
	s.srv.met.failed(wire.Timeout)
	s.log.Warn("a request took too long and was left behind", "op", answered.op, "handle", l.h, "limit", limit)
	if c != nil {
		c.write(b)
	}
	if part {
		s.part(c)
	}
	l.serve()
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
