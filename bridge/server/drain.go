package server

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"clustergym/bridge/wire"
)

// drainSessions tells every client that the server is ending, waits at most DrainTimeout for them to leave, and closes
// the rest.
func (s *Server) drainSessions() {
	s.draining.Store(true)
	limit := s.cfg.DrainTimeout
	sessions := s.all()
	told := make(chan struct{})
	go func() {
		defer close(told)
		for _, n := range sessions {
			if n.end(true) {
				continue // parked: a draining server accepts no connection that could resume it
			}
			n.event(wire.OpDrain, wire.MapOf("msg", "the server is ending: finish and leave", "timeout_s", limit.Seconds()))
		}
	}()
	left := s.waitFor(limit, func() int { return len(s.sessions) })
	if left > 0 {
		s.log.Warn("sessions did not leave in time and are closed", "sessions", left, "timeout", limit)
	}
	s.closeConns()
	<-told // returns even if a client does not read, since all connections are closed now
}

// waitFor waits until left returns 0 or the time is over, and returns the last value of left. It holds the server's
// lock while it calls left.
func (s *Server) waitFor(limit time.Duration, left func() int) int {
	over := time.After(limit)
	for {
		s.mu.Lock()
		n := left()
		s.mu.Unlock()
		if n == 0 {
			return 0
		}
		select {
		case <-s.changed:
		case <-over:
			return n
		}
	}
}

// all returns the sessions.
func (s *Server) all() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.sessions))
}

// closeConns shuts all connections and makes the server accept no more.
func (s *Server) closeConns() {
	s.mu.Lock()
	s.closed = true
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.shut(wire.CloseDraining, drained)
	}
}

// finish ends what is left after draining and waits for all goroutines. It waits only for a limited time, since an
// environment's call may never return.
func (s *Server) finish() error {
	s.closeConns()
	// Connections end their sessions. Parked sessions have none, so they are ended here.
	for _, n := range s.all() {
		n.end(true)
	}
	all := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(all)
	}()
	limit := max(s.cfg.DrainTimeout, leastWait)
	select {
	case <-all:
		return nil
	case <-time.After(limit):
		err := fmt.Errorf("server: %d environments were left behind: a call has not come back %v after its context ended",
			s.met.envs.Load(), limit)
		s.log.Error("not everything has ended", "error", err)
		return err
	}
}

// leastWait is enough for what ends by itself: sending close frames, closing environments.
const leastWait = 5 * time.Second
