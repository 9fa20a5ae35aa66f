// Package door keeps strangers from taking all that a listener's process has. Every listener of this program is behind
// a Door: pages, metrics, the bridge and the rendezvous of ranks.
//
// A Door counts the connections that belong to no session: they have sent no request yet, wait between plain requests,
// have not said hello, or are being closed. Their number is limited, so that strangers cannot use up the descriptors
// and the memory of the process. A Door never refuses a new connection for lack of room. It closes the oldest one
// instead, since a well-behaved client stays without a session only for a moment; of several addresses, the one with
// the most connections makes room. A client that has shown a token or a certificate no longer counts as a stranger, and
// competes for a place only with others like it.
//
// A Door also holds a few descriptors in reserve. They go to connections when the system has no other, and to files
// that the process itself must open.
package door

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"clustergym/internal/shortage"
)

// Timeouts of HTTP servers that have none of their own.
const (
	headerTimeout = 5 * time.Second  // for the headers of a request
	idleTimeout   = 30 * time.Second // between two requests of a connection
	headerBytes   = 16 << 10
)

// Config says how many connections there may be, and takes notes.
type Config struct {
	// Places is how many connections without a session there may be of strangers, and as many of clients that have shown a
	// token; 0 = Places().
	Places int
	// Dropped, if set, takes the address of each connection that had to make room. upgraded is true for a Guest.
	Dropped func(from net.Addr, upgraded bool)
	// Refused, if set, is called with each error of Accept after which the listener continues.
	Refused func(err error)
}

// Places returns how many places a listener has in a process that does other work: an eighth of the files that it may
// open, so that two listeners leave half of them to the work.
func Places() int { return placesOf(shortage.MayOpen()) }

func placesOf(files int) int { return min(max(files/8, fewest), most) }

// The bounds of Places.
const (
	fewest = 8
	most   = 256
)

// Door guards a listener. Its methods are safe for concurrent use.
type Door struct {
	conns   *connTable
	reserve *shortage.Reserve
	refused func(err error)

	mu     sync.Mutex
	quiet  time.Time // until then no connection is accepted: the process needs descriptors
	rested func()    // undoes shortage.Relieves
}

// New returns a Door. Close ends it.
func New(cfg Config) *Door {
	if cfg.Places == 0 {
		cfg.Places = Places()
	}
	if cfg.Dropped == nil {
		cfg.Dropped = func(net.Addr, bool) {}
	}
	if cfg.Refused == nil {
		cfg.Refused = func(error) {}
	}
	d := &Door{reserve: shortage.NewReserve(shortage.Reserved(shortage.MayOpen())), refused: cfg.Refused}
	d.conns = newConnTable(cfg.Places, cfg.Dropped, d.reserve.Fill)
	return d
}

// Places returns how many connections there may be of each kind.
func (d *Door) Places() int { return d.conns.limit }

// Waiting returns how many connections without a session there are.
func (d *Door) Waiting() int {
	d.conns.mu.Lock()
	defer d.conns.mu.Unlock()
	return len(d.conns.places[stranger]) + len(d.conns.places[known])
}

// Listen returns l behind the door: its Accept outlasts a lack of file descriptors or memory. When the system cannot
// give it a connection, it closes a descriptor of the reserve, or else the oldest stranger. So a listener can always
// take a few new connections: it must answer probes, and a client may want to resume.
func (d *Door) Listen(l net.Listener) net.Listener {
	d.reserve.Fill()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rested == nil {
		d.rested = shortage.Relieves(d.relieve)
	}
	return &listener{l, d}
}

// Guard makes the connections of an HTTP server pass the door, and sets the timeouts that the server has not. The
// caller serves on what Listen returns.
func (d *Door) Guard(s *http.Server) {
	s.ConnContext, s.ConnState = d.conns.enter, d.conns.state
	if s.ReadHeaderTimeout == 0 {
		s.ReadHeaderTimeout = headerTimeout
	}
	if s.IdleTimeout == 0 {
		s.IdleTimeout = idleTimeout
	}
	if s.MaxHeaderBytes == 0 {
		s.MaxHeaderBytes = headerBytes
	}
}

// Enter gives a connection of another protocol than HTTP a place. It is called in the goroutine that accepts
// connections, and makes room first. The caller settles the place when the connection has a session, and vacates it
// when it ends.
func (d *Door) Enter(c net.Conn) *Place { return d.conns.place(c, false) }

// Spare reports whether there are descriptors for another session. If not, strangers lose theirs. The reserve is not
// for sessions, which keep what they get.
func (d *Door) Spare() bool {
	for !d.reserve.Fill() {
		if !d.conns.shed(1) {
			return false
		}
	}
	return true
}

// Close gives the reserve back. The listener stays open.
func (d *Door) Close() {
	d.mu.Lock()
	rested := d.rested
	d.rested = nil
	d.mu.Unlock()
	if rested != nil {
		rested()
	}
	d.reserve.Close()
}

// hush is how long no connection is accepted after the process has asked for descriptors. Without it, connections that
// wait would take what the process gets.
const hush = 100 * time.Millisecond

// relieve gives descriptors to files of the process.
func (d *Door) relieve() {
	d.mu.Lock()
	d.quiet = time.Now().Add(hush)
	d.mu.Unlock()
	if !d.reserve.Give() {
		d.conns.shed(1)
		return
	}
	for d.reserve.Give() {
	}
}

// listener is a listener behind a door.
type listener struct {
	net.Listener
	d *Door
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	d := l.d
	var pause shortage.Pause
	for {
		d.mu.Lock()
		quiet := time.Until(d.quiet)
		d.mu.Unlock()
		if quiet > 0 {
			time.Sleep(quiet)
		}
		c, err := l.Listener.Accept()
		if err == nil || !shortage.Passing(err) {
			return c, err
		}
		d.refused(err)
		// Linux allocates a descriptor before it looks for a connection. So the youngest connection stays: perhaps no
		// other is waiting.
		if shortage.OfFiles(err) && (d.reserve.Give() || d.conns.shed(2)) {
			continue
		}
		time.Sleep(pause.Next())
	}
}

// Serve serves h behind the door on l until ctx ends, then closes l and lets requests end for up to two seconds. It
// returns an error if the listener fails.
func (d *Door) Serve(ctx context.Context, h *http.Server, l net.Listener) error {
	d.Guard(h)
	defer d.Close()
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(d.Listen(l)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	quick, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer stop()
	if err := h.Shutdown(quick); err != nil {
		_ = h.Close() // connections that do not end
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
