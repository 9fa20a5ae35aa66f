package server

import (
	"time"

	"clustergym/bridge/wire"
)

// A server that is full makes room for a new session as long as one is parked. What a session would lose decides who
// goes: one without a handle loses nothing, so that empty hellos, however many, push out no session whose client is
// about to come back to its environments.

// emptyGrace is how long a session without a handle may have its connection in any case: its client has just said
// hello, and opens something next.
const emptyGrace = 50 * time.Millisecond

// needless is the reason of a close frame for a session that has nothing to lose.
const needless = "all sessions are taken, and this one has no handle: connect again in a while"

// worth says in which order sessions make room.
type worth uint8

const (
	parkedEmpty    worth = iota // it waits for its client, and has no handle
	connectedEmpty              // it has a connection and no handle
	parkedFull                  // it waits for its client, which has environments
	connectedFull               // it makes no room
)

// worth returns what a session is worth, and since when. The caller holds its lock.
func (s *session) worth() (worth, time.Duration) {
	empty := len(s.lanes) == 0 && s.opening == 0
	switch parked := s.parked.Load(); {
	case parked > 0 && empty:
		return parkedEmpty, time.Duration(parked)
	case parked > 0:
		return parkedFull, time.Duration(parked)
	case empty:
		return connectedEmpty, s.begun
	default:
		return connectedFull, 0
	}
}

// evict makes room for a session: it ends the one that is worth least, of several the oldest. It reports false if no
// session is parked.
func (s *Server) evict() bool {
	for {
		var first *session
		var least worth
		var since time.Duration
		parked := false
		for _, n := range s.all() {
			n.mu.Lock()
			w, at := n.worth()
			n.mu.Unlock()
			parked = parked || w == parkedEmpty || w == parkedFull
			if w < connectedFull && (first == nil || w < least || w == least && at < since) {
				first, least, since = n, w, at
			}
		}
		if !parked {
			return false
		}
		if wait := since + emptyGrace - s.moment(); least == connectedEmpty && wait > 0 {
			time.Sleep(wait)
		}
		if first.giveWay(least) {
			return true
		}
	}
}

// giveWay ends the session if it is still worth as much, and reports whether it did.
func (s *session) giveWay(as worth) bool {
	var c *conn
	if !s.endIf(func() bool {
		c = s.conn
		w, _ := s.worth()
		return w == as && (c == nil || w == connectedEmpty)
	}) {
		return false
	}
	if c != nil {
		_ = c.shut(wire.CloseCapacity, needless)
	}
	s.log.Info("session ended", "cause", "its place was needed")
	return true
}
