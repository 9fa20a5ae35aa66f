package server

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// accepting is a listener that survives a lack of file descriptors or memory. When the system cannot give it a connection,
// it closes a descriptor that the server holds in reserve, or else the oldest connection without a session. So the server
// can always take a few new connections: it must answer probes, and a client may want to resume.
type accepting struct {
	net.Listener
	srv *Server
}

// passing are errors of accept that concern one connection or a shortage, and not the listener.
var passing = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}

const (
	leastPause = time.Millisecond
	mostPause  = 250 * time.Millisecond
)

// Accept implements net.Listener.
func (a *accepting) Accept() (net.Conn, error) {
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		c, err := a.Listener.Accept()
		if err == nil || !slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) }) {
			return c, err
		}
		a.srv.met.refused.Add(1)
		a.srv.warn(warnAccept, "error", err, "files", mayOpen())
		// Linux asks for a descriptor before it looks for a connection. So the youngest stranger stays: perhaps nobody
		// else is waiting.
		if errors.Is(err, syscall.EMFILE) && (a.srv.reserve.give() || a.srv.hall.shed(2)) {
			continue
		}
		time.Sleep(pause)
	}
}

// reserve holds open files, to be closed when descriptors are short.
type reserve struct {
	mu     sync.Mutex
	size   int
	files  []*os.File
	closed bool
}

// reserved returns how many descriptors are held in reserve by a process that may open so many files.
func reserved(files int) int {
	if files == unlimited {
		return 0
	}
	return max(4, min(files/64, 16))
}

// fill opens what is missing, and reports whether nothing is missing any more.
func (r *reserve) fill() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed && len(r.files) < r.size {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return false
		}
		r.files = append(r.files, f)
	}
	return true
}

// spare reports whether there are descriptors for another session. If not, strangers lose theirs. The reserve is not for
// sessions, which keep what they get.
func (s *Server) spare() bool {
	for !s.reserve.fill() {
		if !s.hall.shed(1) {
			return false
		}
	}
	return true
}

// give closes one, and reports whether there was one.
func (r *reserve) give() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.files)
	if n == 0 {
		return false
	}
	_ = r.files[n-1].Close() // it was only held
	r.files = r.files[:n-1]
	return true
}

func (r *reserve) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for r.give() {
	}
}
