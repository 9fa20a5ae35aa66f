package server

import (
	"net"
	"strings"

	"clustergym/internal/shortage"
)

// warning is a kind of warning that strangers can cause, and which is therefore limited to a few lines a second.
type warning int

const (
	warnAccept warning = iota
	warnDropped
	warnToken
	warnOrigin
	warnTLS
	warnings
)

var warningText = [warnings]string{
	warnAccept:  "a connection cannot be accepted",
	warnDropped: "too many connections without a session: the oldest is closed",
	warnToken:   "a missing or wrong token",
	warnOrigin:  "a web page of a foreign origin",
	warnTLS:     "a TLS handshake failed",
}

func (s *Server) warn(w warning, args ...any) { s.throttles[w].Warn(s.log, warningText[w], args...) }

// dropped tells that a connection had to make room.
func (s *Server) dropped(from net.Addr, upgraded bool) {
	s.met.dropped.Add(1)
	s.warn(warnDropped, "client", from.String(), "upgraded", upgraded, "places", s.door.Places())
}

// notAccepted tells that a connection could not be accepted.
func (s *Server) notAccepted(err error) {
	s.met.refused.Add(1)
	s.warn(warnAccept, "error", err, "files", shortage.MayOpen())
}

// httpLog takes the lines of the HTTP server, which has no levels.
type httpLog struct{ s *Server }

// Write implements io.Writer.
func (l httpLog) Write(p []byte) (int, error) {
	line := strings.TrimSpace(string(p))
	switch {
	case strings.HasPrefix(line, "http: TLS handshake error"):
		l.s.warn(warnTLS, "error", strings.TrimPrefix(line, "http: TLS handshake error "))
	case strings.HasPrefix(line, "http: panic"):
		what, stack, _ := strings.Cut(line, "\n")
		l.s.log.Error("panic", "op", "a plain request", "value", what, "stack", stack)
	default:
		l.s.log.Debug(line)
	}
	return len(p), nil
}

// rest tells at the server's end how many warnings were not logged.
func (s *Server) rest() {
	for w := range warnings {
		s.throttles[w].Rest(s.log, warningText[w])
	}
}
