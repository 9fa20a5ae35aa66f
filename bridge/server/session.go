package server

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
)

// session is a client's state on the server: its handles, and what a resume needs. Any goroutine may call its methods.
type session struct {
	srv       *Server
	id, token string // a resume must show the token
	begun     time.Duration
	enc       wire.Encoding
	feat      features
	role      Role
	log       *slog.Logger
	ctx       context.Context // ends with the session
	cancel    context.CancelFunc
	parked    atomic.Int64 // when the connection was lost, 0 = there is one

	mu      sync.Mutex
	conn    *conn // nil while parked
	ended   bool
	timer   *time.Timer // ends a parked session
	last    uint32      // the highest request id so far
	floor   uint32      // requests up to this id were sent before the last resume and may be repeated
	lanes   map[uint32]*lane
	handles uint32 // handles ever opened: the number of the last one
	opening int    // unanswered requests to open
	pending int    // unanswered requests of all lanes
	bye     uint32 // the id of the bye that is answered after everything else; 0 = none
	room    frameRoom
	loose   []reply // kept replies without a lane, oldest first
	tombs   []*lane // closed lanes whose replies are kept, oldest first
	parted  bool
	busied  []uint32 // ids of requests refused as busy, which had no effect
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// begin makes a session with connection c and welcomes it. It returns nil if there is no room, or the server drains.
func (s *Server) begin(c *conn, g *greeting) *session {
	n := &session{
		srv: s, id: randomHex(8), token: randomHex(16), begun: s.moment(), enc: c.enc, feat: g.feat, role: g.role, conn: c,
		lanes: map[uint32]*lane{},
	}
	n.log = s.log.With("session", n.id)
	if !s.door.Spare() {
		return nil
	}
	n.room.budget = s.budget
	n.room.own.Store(sessionFrames)
	// The welcome must be the first message.
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

// resume gives connection c the session that it asks for, welcomes it, and sends the replies that its client has not
// received. If that is impossible, it shuts the connection.
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
		return nil, c.shut(wire.CloseNoVersion,
			"this session speaks "+n.enc.String()+": ask for that encoding, and for the subprotocol it had")
	}
	c.w = wire.NewWriter(n.enc)
	// The welcome must be the first message, and no reply of a lane may come before its older ones.
	c.wmu.Lock()
	defer c.wmu.Unlock()
	n.mu.Lock()
	// An old connection gives up the session first. It may just be ending in a way that ends the session too, and its
	// client may have seen the close frame before the server has finished with that connection.
	for former := n.conn; former != nil; former = n.conn {
		n.mu.Unlock()
		_ = former.shut(wire.CloseTakenOver, taken)
		gone := former.await(overWait)
		n.mu.Lock()
		if n.conn == former {
			if !gone {
				n.log.Warn("a connection that was taken over has not ended", "after", overWait)
			}
			break
		}
	}
	if n.ended || n.bye != 0 {
		n.mu.Unlock()
		return nil, c.shut(wire.CloseExpired, expired)
	}
	n.conn = c
	n.floor = n.last
	if n.timer != nil {
		n.timer.Stop()
		n.timer = nil
	}
	n.parked.Store(0)
	replies := n.unacknowledged(g.resume.last)
	n.mu.Unlock()
	c.writeLocked(n.welcome(c.w))
	for _, r := range replies {
		c.writeLocked(r.b)
	}
	s.met.resumes.Add(1)
	return n, nil
}

// overWait bounds the wait for a connection that is taken over: twice linger for what it may be writing, and some more.
const overWait = 5 * time.Second

// drop is called when connection c has ended. The session is parked, or ends, or is about to get the connection that
// took it over.
func (s *session) drop(c *conn, clean, taken bool) {
	s.mu.Lock()
	if s.conn != c || s.ended || taken {
		s.mu.Unlock()
		return
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
	if s.srv.draining.Load() { // drainSessions may have run before this session was parked
		s.end(true)
	}
}

// end ends the session, with parked only if it is parked, and reports whether it did. Lanes end by themselves when
// their calls return.
func (s *session) end(parked bool) bool {
	return s.endIf(func() bool { return !parked || s.conn == nil })
}

// endIf ends the session if may, which is called with the session's lock held, allows it.
func (s *session) endIf(may func() bool) bool {
	s.mu.Lock()
	if s.ended || !may() {
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
		l.drop()
	}
	for _, l := range s.tombs {
		l.drop()
	}
	for _, r := range s.loose {
		s.srv.budget.Release(budget.Replies, int64(len(r.b)))
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

// event sends a message that answers no request.
func (s *session) event(op string, m wire.Map) {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		w := wire.NewWriter(s.enc)
		w.Answer(0, op, m)
		c.write(w.Bytes())
	}
}
