package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Server serves the environments of one Factory. Its methods are safe for concurrent use.
type Server struct {
	cfg     Config
	factory Factory
	log     *slog.Logger
	tls     *tls.Config // nil = none
	tokens  []digest
	key     []byte // signs snapshots
	met     *metrics
	up      websocket.Upgrader
	start   time.Time // the zero of moment
	frames  sync.Pool // of *frame
	probe   probe

	steppers atomic.Int32 // steps under way

	serving  atomic.Bool
	draining atomic.Bool
	drain    chan struct{} // closed when a client with role admin asks to drain
	askOnce  sync.Once

	mu       sync.Mutex
	sessions map[string]*session
	conns    map[*conn]struct{}
	admitted int           // connections, those included that are not yet among conns
	closed   bool          // no connection is taken any more
	changed  chan struct{} // holds one token when sessions or conns became fewer
	wg       sync.WaitGroup
}

// New returns a server that is not yet serving. Faults of the configuration and files that cannot be read are its
// errors.
func New(cfg Config, f Factory, log *slog.Logger) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, factory: f, log: log, start: time.Now(), key: make([]byte, 32),
		drain: make(chan struct{}), changed: make(chan struct{}, 1),
		sessions: map[string]*session{}, conns: map[*conn]struct{}{},
	}
	if _, err := rand.Read(s.key); err != nil {
		return nil, fmt.Errorf("server: no random bytes for a key: %w", err)
	}
	var err error
	if s.tls, err = loadTLS(&cfg); err != nil {
		return nil, err
	}
	s.tokens = digests(cfg.Tokens)
	s.met = newMetrics(s)
	s.up = websocket.Upgrader{
		HandshakeTimeout: headerTimeout,
		Subprotocols:     subprotocols,
		CheckOrigin:      func(*http.Request) bool { return true }, // looked at before
	}
	s.frames.New = func() any { return new(frame) }
	return s, nil
}

// moment is the time since the server was made, as what is compared and kept in atomics.
func (s *Server) moment() time.Duration { return time.Since(s.start) }

// errServing is for a second call of Serve.
var errServing = errors.New("server: Serve was called before")

// Serve accepts clients on l until ctx is done or a client with role admin asks to drain. Then it drains: clients are
// told, sessions may go on until they leave or DrainTimeout is over, and the rest is closed. It closes l and waits for
// everything it started. nil is the normal end. An environment whose call does not come back, even when its context
// has ended, is left behind after another DrainTimeout at most, and reported as an error.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer l.Close() //nolint:errcheck // the HTTP server has closed it, unless it never ran
	if !s.serving.CompareAndSwap(false, true) {
		return errServing
	}
	if err := s.mayListen(l.Addr()); err != nil {
		return err
	}
	hs := &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		TLSConfig:         s.tls,
		// Websockets need HTTP/1.1.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ErrorLog:     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() {
		if s.tls != nil {
			failed <- hs.ServeTLS(l, "", "")
		} else {
			failed <- hs.Serve(l)
		}
	}()
	s.log.Info("serving", "addr", l.Addr().String(), "tls", s.tls != nil, "tokens", len(s.tokens))
	accepting := true
	var failure error
	select {
	case <-ctx.Done():
		s.log.Info("draining", "timeout", s.cfg.DrainTimeout)
		s.drainSessions()
	case <-s.drain:
		s.log.Info("draining, as a client asked", "timeout", s.cfg.DrainTimeout)
		s.drainSessions()
	case failure = <-failed:
		accepting = false
		s.draining.Store(true)
	}
	left := s.finish()
	s.probe.close()
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if hs.Shutdown(last) != nil {
		_ = hs.Close() // a plain request that hangs
	}
	if accepting {
		failure = <-failed
	}
	if errors.Is(failure, http.ErrServerClosed) {
		failure = nil
	}
	if failure != nil {
		failure = fmt.Errorf("server: accepting clients: %w", failure)
	}
	return errors.Join(failure, left)
}

// mayListen refuses an address beyond this machine that nothing guards.
func (s *Server) mayListen(addr net.Addr) error {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() || len(s.tokens) > 0 || s.cfg.ClientCA != "" || s.cfg.Insecure {
		return nil
	}
	return fmt.Errorf("server: %s can be reached from other machines: give a token file or a client CA, or say insecure", addr)
}
