package server

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"clustergym/env/bridge/wire"
)

// session is what a client has at the server: its handles, and what it needs to come back. Its methods may be called
// by any goroutine.
type session struct {
	srv       *Server
	id, token string // the token is what a resume must show
	enc       wire.Encoding
	feat      features
	role      Role
	log       *slog.Logger
	ctx       context.Context // ends with the session
	cancel    context.CancelFunc
	parked    atomic.Int64 // the moment in which the connection was lost, 0 = there is one

	mu      sync.Mutex
	conn    *conn // nil while parked
	ended   bool
	timer   *time.Timer // ends a parked session
	last    uint32      // the highest request id so far
	floor   uint32      // requests up to it were sent before the last resume and may be repeated
	lanes   map[uint32]*lane
	handles uint32  // ever opened: the number of the last one
	opening int     // unanswered requests to open
	pending int     // unanswered requests of all lanes
	bye     uint32  // the request to leave, once everything is answered; 0 = none
	loose   []reply // kept replies without a lane, oldest first
	tombs   []*lane // closed lanes whose replies are kept, oldest first
	parted  bool
	busied  []uint32 // requests refused as busy: they had no effect
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// begin makes a session with connection c and welcomes it; nil where there is no room, or the server drains.
func (s *Server) begin(c *conn, g *greeting) *session {
	n := &session{
		srv: s, id: randomHex(8), token: randomHex(16), enc: c.enc, feat: g.feat, role: g.role, conn: c,
		lanes: map[uint32]*lane{},
	}
	n.log = s.log.With("session", n.id)
	// Nothing may be written before the welcome.
	c.wmu.Lock()
	defer c.wmu.Unlock()
	for {
		s.mu.Lock()
		if s.draining.Load() {
			s.mu.Unlock()
			return nil
		}
		if len(s.sessions) < s.cfg.MaxSessions {
			n.ctx, n.cancel = context.WithCancel(context.Background())
			s.sessions[n.id] = n
			s.mu.Unlock()
			break
		}
		s.mu.Unlock()
		if !s.evict() {
			return nil
		}
	}
	c.w = wire.NewWriter(n.enc)
	c.writeLocked(n.welcome(c.w))
	return n
}

// evict ends the session that has been without a connection for longest, and says whether there was one.
func (s *Server) evict() bool {
	for {
		var oldest *session
		since := int64(math.MaxInt64)
		s.mu.Lock()
		for _, n := range s.sessions {
			if p := n.parked.Load(); p > 0 && p < since {
				oldest, since = n, p
			}
		}
		s.mu.Unlock()
		if oldest == nil {
			return false
		}
		if oldest.end(true) {
			oldest.log.Info("session ended", "cause", "its place was needed")
			return true
		}
	}
}

// resume gives connection c the session that it asks for, welcomes it and sends what its client has not received.
// Where that cannot be, it shuts the connection.
func (s *Server) resume(c *conn, g *greeting) (*session, error) {
	s.mu.Lock()
	n := s.sessions[g.resume.session]
	s.mu.Unlock()
	token := ""
	if n != nil && n.feat&featResume != 0 && g.role == n.role {
		token = n.token
	}
	if subtle.ConstantTimeCompare([]byte(token), []byte(g.resume.token)) != 1 || token == "" {
		return nil, c.shut(wire.CloseExpired, expired)
	}
	if !slices.Contains(g.offered, n.enc.String()) || !c.choose([]string{n.enc.String()}) {
		return nil, c.shut(wire.CloseNoVersion, "this session speaks "+n.enc.String()+": ask for that encoding, and for the subprotocol it had")
	}
	c.w = wire.NewWriter(n.enc)
	// Nothing may be written before the welcome, and no lane's reply before its older ones.
	c.wmu.Lock()
	defer c.wmu.Unlock()
	n.mu.Lock()
	if n.ended || n.bye != 0 {
		n.mu.Unlock()
		return nil, c.shut(wire.CloseExpired, expired)
	}
	former := n.conn
	n.conn = c
	n.floor = n.last
	if n.timer != nil {
		n.timer.Stop()
		n.timer = nil
	}
	n.parked.Store(0)
	replies := n.unacknowledged(g.resume.last)
	n.mu.Unlock()
	if former != nil {
		_ = former.shut(wire.CloseTakenOver, taken)
	}
	c.writeLocked(n.welcome(c.w))
	for _, r := range replies {
		c.writeLocked(r.b)
	}
	s.met.resumes.Add(1)
	return n, nil
}

// drop is called when connection c has ended: the session waits for its client, or ends.
func (s *session) drop(c *conn, clean bool) {
	s.mu.Lock()
	if s.conn != c || s.ended {
		s.mu.Unlock()
		return // another connection took it over
	}
	window := s.srv.cfg.ResumeWindow
	if clean || s.feat&featResume == 0 || s.bye != 0 || s.srv.draining.Load() {
		s.mu.Unlock()
		if s.end(false) {
			s.log.Info("session ended", "cause", "its connection ended")
		}
		return
	}
	s.conn = nil
	s.parked.Store(max(1, int64(s.srv.moment())))
	s.timer = time.AfterFunc(window, func() {
		if s.end(true) {
			s.log.Info("session ended", "cause", "nobody resumed it", "after", window)
		}
	})
	s.mu.Unlock()
	s.log.Info("session parked", "for", window)
	if s.srv.draining.Load() { // it may not have seen this session
		s.end(true)
	}
}

// end ends the session: only a parked one where parked is set. Lanes end by themselves, once their calls are back. It
// says whether the session ended by this.
func (s *session) end(parked bool) bool {
	s.mu.Lock()
	if s.ended || parked && s.conn != nil {
		s.mu.Unlock()
		return false
	}
	s.ended = true
	s.conn = nil
	if s.timer != nil {
		s.timer.Stop()
	}
	for _, l := range s.lanes {
		l.shut()
	}
	s.lanes, s.tombs, s.loose = nil, nil, nil
	s.mu.Unlock()
	s.cancel()
	s.srv.mu.Lock()
	delete(s.srv.sessions, s.id)
	s.srv.mu.Unlock()
	s.srv.fewer()
	return true
}

// event sends a message that answers nothing.
func (s *session) event(op string, fill func(w *wire.Writer) []byte) {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		c.write(fill(wire.NewWriter(s.enc)))
	}
}

// needs is the feature that an operation belongs to.
func needs(op string) features {
	switch op {
	case wire.OpSend, wire.OpRecv:
		return featAsync
	case wire.OpSnapshot, wire.OpRestore:
		return featSnapshot
	case wire.OpRender:
		return featRender
	}
	return 0
}

// ofHandle are the operations that name a handle.
var ofHandle = []string{
	wire.OpStep, wire.OpReset, wire.OpSend, wire.OpRecv, wire.OpMasks, wire.OpCall, wire.OpRender, wire.OpSnapshot,
	wire.OpRestore, wire.OpClose,
}

// take looks at a message of connection c, gives it to its lane or answers it. It takes f over. An error ends the
// reader.
func (s *session) take(c *conn, f *frame) error {
	m, e := c.dec.Decode(f.b)
	if e != nil {
		c.bad++
		s.answer(c, 0, e, false)
		if c.bad == maxBad {
			return c.shut(wire.CloseProtocol, "three unreadable messages in a row")
		}
		return nil
	}
	c.bad = 0
	id, e := m.Int("id", 0, 1, math.MaxUint32)
	if e == nil && id == 0 {
		e = &wire.Error{Code: wire.BadRequest, Msg: "field id", Got: "nothing", Want: "a number that grows with every request"}
	}
	if e != nil {
		s.answer(c, 0, e, false)
		return nil
	}
	return s.request(c, request{id: uint32(id), m: m, f: f})
}

// request is take for a message with an id.
func (s *session) request(c *conn, r request) error {
	s.mu.Lock()
	if s.conn != c {
		s.mu.Unlock()
		return errShut
	}
	if r.id <= s.last {
		s.repeated(c, r)
		return nil
	}
	s.last = r.id
	var e *wire.Error
	if r.op, e = r.m.Str("op", ""); e == nil {
		switch {
		case s.bye != 0:
			e = wire.Errorf(wire.BadRequest, "a request after bye")
		case r.op == "":
			e = &wire.Error{Code: wire.BadRequest, Msg: "field op", Got: "nothing", Want: "the name of an operation"}
		case r.op == wire.OpHello:
			e = wire.Errorf(wire.BadRequest, "this session has begun: hello comes only once")
		case r.op == wire.OpPing:
			s.ping(c, r)
			return nil
		case r.op == wire.OpBye:
			s.bye = r.id
			part := s.leaving()
			s.mu.Unlock()
			if part {
				s.part(c)
			}
			return nil
		}
	}
	var l *lane
	if e == nil && r.op == wire.OpOpen {
		l, e = s.newLane()
	} else {
		l, e = s.lane(&r, e)
	}
	if l != nil && len(l.waiting) == s.srv.cfg.MaxInflight {
		e = wire.Errorf(wire.Busy, "handle %d has %d unanswered requests, and takes no more", l.h, len(l.waiting))
		l = nil
	}
	if l != nil {
		l.push(r)
		s.mu.Unlock()
		return nil
	}
	if e != nil && e.Code == wire.Busy {
		s.busy(r.id)
	}
	s.mu.Unlock()
	if e != nil {
		s.answer(c, r.id, e, e.Code != wire.Busy)
	} else { // closing what is closed
		c.w.Reset()
		c.w.Reply(r.id, wire.OpClose, 0)
		s.send(c, r.id, c.w)
	}
	s.srv.release(r.f)
	return nil
}

// lane is the lane that a request goes to; what is wrong with the request is then answered in its turn. Without a
// lane it is answered at once, by the error; no error then means that the handle was closed before.
func (s *session) lane(r *request, e *wire.Error) (*lane, *wire.Error) {
	if e == nil && !slices.Contains(ofHandle, r.op) {
		e = wire.Errorf(wire.UnknownOp, "there is no operation %.40q", r.op)
	}
	h, wrong := r.m.Int("h", 0, 1, math.MaxUint32)
	l := s.lanes[uint32(h)]
	switch {
	case e != nil:
	case wrong != nil:
		e = wrong
	case h == 0:
		e = &wire.Error{Code: wire.BadRequest, Msg: "field h", Got: "nothing", Want: "the number of a handle"}
	case l == nil && r.op == wire.OpClose && uint32(h) <= s.handles:
		return nil, nil
	case l == nil:
		e = wire.Errorf(wire.BadHandle, "handle %d is not open", h)
	case needs(r.op)&^s.feat != 0:
		e = wire.Errorf(wire.Unsupported, "%s needs feature %q, which was not agreed on in hello", r.op, needs(r.op).names()[0])
	}
	r.refused = e
	return l, e
}

// ping answers a ping. It unlocks the session.
func (s *session) ping(c *conn, r request) {
	queue := s.pending
	s.mu.Unlock()
	c.w.Reset()
	c.w.Reply(r.id, wire.OpPing, 2)
	c.w.Key("t")
	c.w.Value(r.m.Get("t"))
	c.w.Key("qlen")
	c.w.Int(int64(queue))
	s.send(c, r.id, c.w)
	s.srv.release(r.f)
}

// repeated answers a request whose id was used before. It unlocks the session.
func (s *session) repeated(c *conn, r request) {
	var b []byte
	busy := false
	if r.id <= s.floor {
		for _, l := range s.lanes {
			if slices.Contains(l.waiting, r.id) {
				s.mu.Unlock()
				return // it is answered when its turn comes
			}
		}
		b = s.find(r.id)
		busy = slices.Contains(s.busied, r.id)
	}
	s.mu.Unlock()
	s.srv.release(r.f)
	switch {
	case b != nil:
		c.write(b)
	case busy:
		s.answer(c, r.id, wire.Errorf(wire.Busy, "this request was refused before the connection was lost: send it with a new id"), false)
	default:
		s.answer(c, r.id, &wire.Error{
			Code: wire.BadRequest, Msg: "field id", Got: "a number that is not above all before it, and whose reply is not kept",
			Want: "one that grows with every request",
		}, false)
	}
}

// busy remembers that request id had no effect.
func (s *session) busy(id uint32) {
	const most = 64
	if len(s.busied) == most {
		s.busied = slices.Delete(s.busied, 0, 1)
	}
	s.busied = append(s.busied, id)
}

// answer sends an error reply that belongs to no lane, and keeps it if asked.
func (s *session) answer(c *conn, id uint32, e *wire.Error, keep bool) {
	s.srv.met.failed(e.Code)
	if e.Code == wire.Busy {
		e.Retry = true
	}
	c.w.Reset()
	e.Reply(c.w, id)
	if keep {
		s.send(c, id, c.w)
	} else {
		c.write(c.w.Bytes())
	}
}

// send keeps a reply that belongs to no lane, and sends it.
func (s *session) send(c *conn, id uint32, w *wire.Writer) {
	s.mu.Lock()
	s.keepLoose(id, w.Bytes())
	s.mu.Unlock()
	c.write(w.Bytes())
}

// leaving says whether it is time to say bye. The caller holds the lock and then calls part.
func (s *session) leaving() bool {
	if s.bye == 0 || s.pending > 0 || s.parted {
		return false
	}
	s.parted = true
	return true
}

// part says bye.
func (s *session) part(c *conn) {
	w := wire.NewWriter(s.enc)
	s.mu.Lock()
	w.Reply(s.bye, wire.OpBye, 0)
	s.mu.Unlock()
	c.write(w.Bytes())
	_ = c.shut(wire.CloseBye, parting)
}
