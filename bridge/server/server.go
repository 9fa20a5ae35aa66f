package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/budget"
	"clustergym/bridge/handle"
	"clustergym/internal/door"
	"clustergym/internal/logging"
	"clustergym/internal/shortage"
)

// Server serves the environments of one Factory. Its methods are safe for concurrent use.
type Server struct {
	cfg     Config
	factory Factory
	log     *slog.Logger
	key     *handle.Keys // sign snapshots
	met     *metrics
	up      websocket.Upgrader
	start   time.Time // the zero of moment
	door    *door.Door
	frames  sync.Pool // holds *frame
	probe   handle.Probe

	steppers atomic.Int32   // steps under way
	budget   *budget.Budget // of memory

	secrets   atomic.Pointer[secrets]
	throttles [warnings]logging.Throttle

	serving  atomic.Bool
	draining atomic.Bool
	drain    chan struct{} // closed when a client with role admin asks to drain
	askOnce  sync.Once

	mu       sync.Mutex
	sessions map[string]*session
	conns    map[*conn]struct{}
	closed   bool          // no connection is accepted any more
	changed  chan struct{} // holds one token when sessions or conns became fewer
	wg       sync.WaitGroup
}

// New returns a server that is not yet serving. It returns an error for faults of cfg and for files that cannot be
// read.
func New(cfg Config, f Factory, logger *slog.Logger) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, factory: f, log: slog.New(logging.Bounded(logger.Handler())), start: time.Now(),
		key:   handle.NewKeys(snapshotKey(cfg.Tokens)),
		drain: make(chan struct{}), changed: make(chan struct{}, 1),
		sessions: map[string]*session{}, conns: map[*conn]struct{}{},
	}
	first, err := loadSecrets(&cfg)
	if err != nil {
		return nil, err
	}
	s.secrets.Store(first)
	s.door = door.New(door.Config{
		Places: placesFor(cfg.MaxSessions, shortage.MayOpen()), Dropped: s.dropped, Refused: s.notAccepted,
	})
	if cfg.Memory == 0 {
		s.cfg.Memory = budget.Default()
	}
	s.budget = budget.New(s.cfg.Memory)
	if f, ok := f.(Budgeted); ok {
		f.UseBudget(s.budget)
	}
	s.met = newMetrics(s)
	s.up = websocket.Upgrader{
		HandshakeTimeout: headerTimeout,
		Subprotocols:     subprotocols,
		CheckOrigin:      func(*http.Request) bool { return true }, // originAllowed has checked it
	}
	s.frames.New = func() any { return new(frame) }
	return s, nil
}

// Memory returns the bytes of the server's budget.
func (s *Server) Memory() int64 { return s.budget.Total() }

// moment returns the time since the server was made. As an integer it can be kept in atomics.
func (s *Server) moment() time.Duration { return time.Since(s.start) }

// errServing is the error of a second call of Serve.
var errServing = errors.New("server: Serve was called before")

// Serve accepts clients on l until ctx is done or a client with role admin asks to drain. Then it drains: it tells the
// clients, lets sessions go on until they leave or DrainTimeout is over, and closes the rest. It closes l, waits for
// all goroutines that it started, and returns nil. If an environment's call does not return although its context has
// ended, Serve waits for it another DrainTimeout or 5 s, whichever is longer, and then returns an error.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer l.Close() //nolint:errcheck // the HTTP server has closed it already, if it ran
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
		TLSConfig:         s.listenTLS(),
		// Websockets need HTTP/1.1.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ErrorLog:     log.New(httpLog{s}, "", 0),
	}
	files := shortage.MayOpen()
	s.door.Guard(hs)
	defer s.door.Close()
	behind := s.door.Listen(l)
	failed := make(chan error, 1)
	go func() {
		if hs.TLSConfig != nil {
			failed <- hs.ServeTLS(behind, "", "")
		} else {
			failed <- hs.Serve(behind)
		}
	}()
	s.log.Info("serving", "addr", l.Addr().String(), "tls", hs.TLSConfig != nil, "tokens", len(s.cfg.Tokens))
	if need := s.cfg.MaxSessions + 2*s.door.Places() + files/8; need > files {
		s.log.Warn("the limit of open files is low: raise it (ulimit -n) or allow fewer sessions", "files", files, "want",
			need, "max_sessions", s.cfg.MaxSessions)
	}
	defer s.rest()
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
	s.probe.Close()
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if hs.Shutdown(last) != nil {
		_ = hs.Close() // a plain request hangs
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

// mayListen refuses an address beyond this machine without tokens and client certificates.
func (s *Server) mayListen(addr net.Addr) error {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() || len(s.cfg.Tokens) > 0 || s.cfg.ClientCA != "" || s.cfg.Insecure {
		return nil
	}
	return fmt.Errorf("server: %s can be reached from other machines: give a token file or a client CA, or say insecure",
		addr)
}
