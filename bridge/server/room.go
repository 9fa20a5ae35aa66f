package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"clustergym/bridge/budget"
	"clustergym/bridge/handle"
	"clustergym/bridge/wire"
)

// The server's memory is one budget. When a handle is opened, it reserves everything that it can take: environments,
// the buffers of replies, and requests of the usual size. So no step or reset of an open handle fails for lack of
// memory. What a client does beyond that is reserved when it happens: a large message is read when there is memory for
// it, and a large reply to snapshot, render or call without memory is refused as `capacity`.

const (
	// sessionFrames is the memory of messages that every session may have without reserving any, as connections may before
	// they say hello. The number of sessions bounds it.
	sessionFrames = 64 << 10
	// leastReply is the memory of a reply buffer, however small the replies to steps are.
	leastReply = 4 << 10
	// roomWait is how often a reader that waits for memory looks again.
	roomWait = 5 * time.Millisecond
)

// frameRoom counts the memory of a session's messages: those that are being read, and those that wait for their turn.
type frameRoom struct {
	budget *budget.Budget
	held   atomic.Int64 // in use
	own    atomic.Int64 // reserved for good by its handles, and sessionFrames

	mu    sync.Mutex
	extra atomic.Int64 // reserved beyond that; changed under mu
}

// grow reserves n more bytes for good, and reports whether they fit.
func (r *frameRoom) grow(n int64) bool {
	if !r.budget.Reserve(budget.Frames, n) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own.Add(n)
	r.settle()
	return true
}

// shrink gives back n bytes of grow, except for what is in use.
func (r *frameRoom) shrink(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own.Add(-n)
	r.extra.Add(n)
	r.settle()
}

// settle gives back what of extra is not in use. The caller holds mu.
func (r *frameRoom) settle() {
	need := max(0, r.held.Load()-r.own.Load())
	if over := r.extra.Load() - need; over > 0 {
		r.extra.Add(-over)
		r.budget.Release(budget.Frames, over)
	}
}

// hold takes n bytes into use, and reports whether there is room.
func (r *frameRoom) hold(n int64) bool {
	return r.held.Add(n) <= r.own.Load() || r.more(n)
}

// more reserves what hold has taken beyond what is reserved. It undoes hold if that does not fit.
func (r *frameRoom) more(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	need := r.held.Load() - r.own.Load() - r.extra.Load()
	if need <= 0 {
		return true
	}
	if !r.budget.Reserve(budget.Frames, need) {
		r.held.Add(-n)
		r.settle()
		return false
	}
	r.extra.Add(need)
	return true
}

// free takes n bytes out of use.
func (r *frameRoom) free(n int64) {
	r.held.Add(-n)
	if r.extra.Load() > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.settle()
	}
}

// noRoom is the reason of a close frame for a message that there was no memory for.
const noRoom = "no memory is left for a message of this size: connect again in a while, or send smaller ones"

// errCrowded ends the reader that found no memory for a message. The session is parked: its client can resume it, and
// send the message again.
var errCrowded = fmt.Errorf("%w: no memory for a message", errShut)

// charge counts n more bytes for the message f, and waits until there is room for them. It waits only if the client
// sent more than its handles have reserved, and only this client waits. Without a session it counts nothing.
func (c *conn) charge(f *frame, n int64) error {
	if c.sess == nil || n == 0 {
		return nil
	}
	room := &c.sess.room
	if !room.hold(n) {
		if err := c.crowd(room, n); err != nil {
			return err
		}
	}
	f.room, f.cost = room, f.cost+n
	return nil
}

// widen makes room for n more bytes in f.
func (c *conn) widen(f *frame, n int) error {
	before := cap(f.b)
	if err := c.charge(f, int64(n)); err != nil {
		return err
	}
	f.b = slices.Grow(f.b, n)
	return c.charge(f, int64(max(0, cap(f.b)-before-n))) // sizes are rounded up
}

// fit moves a small message out of a large buffer, because it may wait for its turn for long.
func (c *conn) fit(f *frame) {
	if c.sess == nil || cap(f.b) <= 2*len(f.b)+4096 {
		return
	}
	large := f.b
	f.b = slices.Clone(large)
	if over := int64(cap(large) - cap(f.b)); f.room != nil {
		f.room.free(over)
		f.cost -= over
	}
	if cap(large) <= keptFrame {
		c.srv.frames.Put(&frame{b: large})
	}
}

// crowd waits until n bytes are in use. It shuts the connection if that takes longer than a request may.
func (c *conn) crowd(room *frameRoom, n int64) error {
	tick := time.NewTicker(roomWait)
	defer tick.Stop()
	limit := time.After(c.srv.cfg.StepTimeout)
	for {
		select {
		case <-tick.C:
			if room.hold(n) {
				return nil
			}
		case <-c.quit:
			return errShut
		case <-limit:
			c.srv.met.failed(wire.Capacity)
			_ = c.shut(wire.CloseCapacity, noRoom)
			return errCrowded
		}
	}
}

// decodedBytes returns about how much memory the values of a decoded message take besides its frame.
func decodedBytes(v any) int64 {
	const entry, boxed = 16, 16 // of an interface, and of what it points to
	switch v := v.(type) {
	case wire.Map:
		sum := int64(cap(v)) * (entry + entry)
		for i := range v {
			sum += decodedBytes(v[i].Value)
		}
		return sum
	case []any:
		sum := int64(cap(v)) * entry
		for i := range v {
			sum += decodedBytes(v[i])
		}
		return sum
	case wire.Array:
		return 128
	case string:
		return boxed + int64(len(v))
	case []byte:
		return 2 * boxed // mostly a view
	case nil, bool:
		return 0
	}
	return boxed
}

// replyRoom is the memory of a lane's replies. It is released when the lane has ended and its replies are not kept any
// more.
type replyRoom struct {
	each     int // bytes of a buffer that are reserved for good
	reserved int64
	ended    bool // the lane's goroutine has ended, or the abandoned call that outlived it
	dropped  bool // the session does not keep its replies
}

// replies returns how many buffers of replies there are: for those that are kept, the one being written, and one that
// an abandoned call still writes to.
func (l *lane) replies() int { return len(l.kept.slots) + 1 }

// requests returns how many requests there are: those that are not answered, and the one being read.
func (l *lane) requests() int { return l.s.srv.cfg.MaxInflight + 1 }

// reserve reserves the memory of replies and requests of a handle that has just been opened. w has the reply to open.
func (l *lane) reserve(hd handle.Served) error {
	s := l.s
	each := hd.ReplyBytes()
	replies, frames := int64(each)*int64(l.replies()), int64(hd.RequestBytes())*int64(l.requests())
	b := s.srv.budget
	try := func() bool {
		if !b.Reserve(budget.Replies, replies) {
			return false
		}
		if !s.room.grow(frames) {
			b.Release(budget.Replies, replies)
			return false
		}
		return true
	}
	if !try() && !(s.forget() && try()) {
		return hd.Refuse(replies + frames)
	}
	s.mu.Lock()
	l.room = replyRoom{each: each, reserved: replies, ended: l.room.ended, dropped: l.room.dropped}
	s.mu.Unlock()
	l.frames = frames
	return nil
}

// fits makes sure that the reply in the slot being written has its memory. It returns an error if there is none: only
// replies to snapshot, render, call and open can be larger than what was reserved.
func (l *lane) fits(w *wire.Writer) error {
	if w.Cap() <= max(l.room.each, leastReply) {
		return nil
	}
	n := int64(w.Cap() - l.room.each)
	if !l.s.srv.budget.Reserve(budget.Replies, n) {
		return &wire.Error{
			Code: wire.Capacity, Retry: true, Msg: "there is no memory left for the reply; nothing was done",
			Got: budget.Size(int64(w.Len())), Want: "fewer environments at once; or try again when others have left",
		}
	}
	l.kept.slots[l.kept.at].extra = n
	return nil
}

// open opens what op asks for. If there is no memory for it, the replies of closed handles make room.
func (l *lane) open(ctx context.Context, op string, o *handle.Opening, w *wire.Writer) (handle.Served, error) {
	s := l.s
	hd, err := s.srv.make(ctx, op, o, w)
	var e *wire.Error
	if errors.As(err, &e) && e.Code == wire.Capacity && e.Retry && s.forget() {
		w.Reset()
		return s.srv.make(ctx, op, o, w)
	}
	return hd, err
}

// make opens environments, or simulations of a factory that has the ability (the feature says so).
func (s *Server) make(ctx context.Context, op string, o *handle.Opening, w *wire.Writer) (handle.Served, error) {
	limits := s.cfg.handleLimits()
	if op == wire.OpSimulate {
		return s.factory.(handle.Simulations).Simulate(ctx, limits, o, w)
	}
	hd, err := handle.Open(ctx, s.factory, limits, o, w)
	if err != nil {
		return nil, err
	}
	return hd, nil
}

// writer returns the empty buffer of the next reply. The caller holds the turn.
func (l *lane) writer() *wire.Writer {
	k := &l.kept.slots[l.kept.at]
	if k.lent || k.extra > 0 {
		l.s.srv.budget.Release(budget.Replies, k.extra)
		k.lent, k.extra, k.w = false, 0, nil
	}
	return l.kept.writer(l.s.enc)
}

// spare empties the buffer of the reply being written for an error. A buffer that has grown too large is dropped.
func (l *lane) spare(w *wire.Writer) {
	k := &l.kept.slots[l.kept.at]
	l.s.srv.budget.Release(budget.Replies, k.extra)
	k.extra = 0
	w.Trim(max(l.room.each, leastReply))
}

// unreserve undoes reserve, because the client is told that the open failed.
func (l *lane) unreserve() {
	l.s.room.shrink(l.frames)
	l.frames = 0
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.srv.budget.Release(budget.Replies, l.room.reserved)
	l.room.each, l.room.reserved = 0, 0
}

// end notes that nothing writes to the lane's replies any more. It releases the memory of its requests, and of its
// replies what they do not use.
func (l *lane) end() {
	l.s.room.shrink(l.frames)
	l.frames = 0
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.room.ended = true
	used := int64(0)
	for _, k := range l.kept.slots {
		if k.w != nil {
			used += int64(min(k.w.Cap(), l.room.each))
		}
	}
	if over := l.room.reserved - used; over > 0 {
		l.room.reserved = used
		l.s.srv.budget.Release(budget.Replies, over)
	}
	l.settleRoom()
}

// drop notes that the lane's replies are not kept any more. The caller holds the session's lock.
func (l *lane) drop() {
	l.room.dropped = true
	l.settleRoom()
}

// settleRoom releases the memory of the replies if it is not needed. The caller holds the session's lock.
func (l *lane) settleRoom() {
	if !l.room.ended || !l.room.dropped {
		return
	}
	n := l.room.reserved
	l.room.reserved = 0
	for i := range l.kept.slots {
		n += l.kept.slots[i].extra
		l.kept.slots[i] = slot{}
	}
	l.s.srv.budget.Release(budget.Replies, n)
}

// forget drops the kept replies of closed handles, and reports whether there were any. Only a resume could still ask
// for them, so they give way when their client needs the memory for another handle.
func (s *session) forget() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	some := len(s.tombs) > 0
	for _, l := range s.tombs {
		l.drop()
	}
	s.tombs = nil
	return some
}
