package server

import (
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// short is a listener whose system has no descriptors some of the time.
type short struct {
	net.Listener
	failures atomic.Int32 // still to come
	err      error
}

func (s *short) Accept() (net.Conn, error) {
	if s.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", s.err)}
	}
	return s.Listener.Accept()
}

// A shortage of the system ends nothing: the server accepts again as soon as it can, and says so.
func TestAcceptingGoesOnAfterAShortage(t *testing.T) {
	t.Parallel()
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		t.Run(err.Error(), func(t *testing.T) {
			t.Parallel()
			s := &short{err: err}
			s.failures.Store(8)
			h := serveOn(t, quick(), func(l net.Listener) net.Listener { s.Listener = l; return s })
			p := h.client()
			p.must("ping")
			if got := h.metric("clustergym_accept_errors_total", ""); got != "8" {
				t.Errorf("%s errors, want 8", got)
			}
			h.stop()
			h.wait()
			if text := h.log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, err.Error()) {
				t.Errorf("log:\n%s", text)
			}
		})
	}
}

// A listener that is broken for good ends the server, with its error.
func TestABrokenListenerEndsTheServer(t *testing.T) {
	t.Parallel()
	s, err := New(quick(), walks{&hooks{}}, discard())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), nopListener{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}); err == nil ||
		!strings.Contains(err.Error(), "no more connections") {
		t.Errorf("Serve: %v", err)
	}
}
