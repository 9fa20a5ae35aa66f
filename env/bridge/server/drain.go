package server

import (
	"fmt"
	"time"

	"clustergym/env/bridge/wire"
)

// drainSessions tells every client that the server is ending and waits until they have left, or until DrainTimeout is
// over, and then closes the rest.
func (s *Server) drainSessions() {
	s.draining.Store(true)
	limit := s.cfg.DrainTimeout
	s.mu.Lock()
	sessions := make([]*session, 0, len(s.sessions))
	for _, n := range s.sessions {
		sessions = append(sessions, n)
	}
	s.mu.Unlock()
	told := make(chan struct{})
	go func() {
		defer close(told)
		for _, n := range sessions {
			if n.end(true) {
				continue // parked: no connection would be taken that could resume it
			}
			n.event(wire.OpDrain, func(w *wire.Writer) []byte {
				w.Reply(0, wire.OpDrain, 2)
				w.Key("msg")
				w.Str("the server is ending: finish and leave")
				w.Key("timeout_s")
				w.Float(limit.Seconds())
				return w.Bytes()
			})
		}
	}()
	left := s.waitFor(limit, func() int { return len(s.sessions) })
	if left > 0 {
		s.log.Warn("sessions did not leave in time and are closed", "sessions", left, "timeout", limit)
	}
	s.closeConns()
	<-told // a client that takes nothing is closed by now
}

// waitFor waits until left, called under the lock, is 0, or the time is over, and returns what it was last.
func (s *Server) waitFor(limit time.Duration, left func() int) int {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		s.mu.Lock()
		n := left()
		s.mu.Unlock()
		if n == 0 {
			return 0
		}
		select {
		case <-s.changed:
		case <-timer.C:
			return n
		}
	}
}

// closeConns shuts what is still connected, and takes no more connections.
func (s *Server) closeConns() {
	s.mu.Lock()
	s.closed = true
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.shut(wire.CloseDraining, drained)
	}
}

// finish ends what is left after draining and waits for all goroutines; for environments that do not come back only
// for a while.
func (s *Server) finish() error {
	s.closeConns()
	s.mu.Lock()
	sessions := make([]*session, 0, len(s.sessions))
	for _, n := range s.sessions {
		sessions = append(sessions, n)
	}
	s.mu.Unlock()
	// The connections end their sessions; parked ones have none.
	for _, n := range sessions {
		n.end(true)
	}
	all := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(all)
	}()
	limit := max(s.cfg.DrainTimeout, leastWait)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-all:
		return nil
	case <-timer.C:
		err := fmt.Errorf("server: %d environments were left behind: a call has not come back %v after its context ended", s.met.envs.Load(), limit)
		s.log.Error("not everything has ended", "error", err)
		return err
	}
}

// leastWait is for what ends by itself within moments: farewells, closing environments.
const leastWait = 5 * time.Second
