package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/internal/rng"
)

// attach connects and exchanges hello and welcome. The first call begins a session, later ones resume it.
func (c *Client) attach(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.DialTimeout,
		fmt.Errorf("no connection within %v", c.cfg.DialTimeout))
	defer cancel()
	// Cancelling must end every wait up to the welcome, but the dialer heeds only the deadline. No proxy is ever asked: it
	// would see the token.
	stop := func() bool { return true }
	d := websocket.Dialer{
		NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			stop = context.AfterFunc(ctx, func() { _ = conn.Close() }) // it may be closed already
			return &listener{Conn: conn, begun: time.Now()}, nil
		},
		TLSClientConfig: c.tls,
		Subprotocols:    []string{wire.SubMsgpack},
		ReadBufferSize:  64 << 10,
		WriteBufferSize: 64 << 10,
	}
	head := http.Header{}
	if c.cfg.Token != "" {
		head.Set("Authorization", "Bearer "+c.cfg.Token)
	}
	conn, resp, err := d.DialContext(ctx, c.url, head)
	defer func() { stop() }()
	if err != nil {
		if resp != nil {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // gorilla keeps the beginning; an error leaves it short
			err = fmt.Errorf("%w: HTTP %s: %.200q", err, resp.Status, body)
			if resp.StatusCode/100 == 4 {
				err = &refusal{err.Error()}
			}
			return nil, err
		}
		return nil, causeOf(ctx, err)
	}
	if conn.Subprotocol() != wire.SubMsgpack {
		closeConn(conn)
		return nil, &refusal{fmt.Sprintf("the server speaks %q, want %q", conn.Subprotocol(), wire.SubMsgpack)}
	}
	if err = c.greet(conn); !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if !final(err) {
			c.strays.Add(1)
		}
		closeConn(conn)
		return nil, causeOf(ctx, err)
	}
	return conn, nil
}

// causeOf returns why ctx, which has a deadline, has ended, or err if it has not.
func causeOf(ctx context.Context, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		<-ctx.Done() // the connection's deadline is that of ctx
	}
	if ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// closeConn closes a connection that is of no more use.
func closeConn(conn *websocket.Conn) { _ = conn.Close() } // it may be closed already

// greet sends hello and reads the welcome.
func (c *Client) greet(conn *websocket.Conn) error {
	conn.SetReadLimit(c.cfg.MaxFrame)
	if err := conn.SetWriteDeadline(time.Now().Add(c.cfg.DialTimeout)); err != nil {
		return err
	}
	if err := conn.WriteMessage(websocket.BinaryMessage, c.hello()); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(c.cfg.DialTimeout)); err != nil {
		return err
	}
	_, frame, err := conn.ReadMessage()
	if err != nil {
		return fmt.Errorf("no welcome: %w", err)
	}
	m, e := wire.Decode(frame, wire.Ext, wire.DefaultLimits())
	if e != nil {
		return fmt.Errorf("no welcome: %w", e)
	}
	if op, _ := m.Str("op", ""); op == wire.OpError {
		return &refusal{wire.ErrorOf(m).Error()}
	} else if op != wire.OpWelcome {
		return &refusal{fmt.Sprintf("the server's first message is %.40q, want welcome", op)}
	}
	return c.welcome(m)
}

func (c *Client) hello() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := wire.NewWriter(wire.Ext)
	m := wire.MapOf(
		"proto", []int{wire.Proto, wire.Proto},
		"client", map[string]any{"name": "clustergym", "version": "1", "lang": runtime.Version()},
		"enc", []string{wire.Ext.String()}, "feat", []string{"async", "resume", "snapshot", "render"},
	)
	if c.session != "" {
		last := wire.Map{}
		for _, h := range slices.Sorted(maps.Keys(c.acked)) {
			last.Add(strconv.FormatUint(uint64(h), 10), c.acked[h])
		}
		m.Add("resume", wire.MapOf("session", c.session, "token", c.secret, "last", last))
	}
	w.Request(1, wire.OpHello, len(m))
	w.Entries(m)
	return w.Bytes()
}

func (c *Client) welcome(m wire.Map) error {
	f := wire.Fields{Map: m}
	session, secret, lim := f.Str("session", ""), f.Str("resume", ""), f.Sub("limits")
	proto, enc, feat := f.Int("proto", wire.Proto, 0, 1<<31), f.Str("enc", wire.Ext.String()), f.Strs("feat", nil)
	if f.Err != nil {
		return &refusal{"a welcome that cannot be read: " + f.Err.Error()}
	}
	if proto != wire.Proto || enc != wire.Ext.String() {
		return &refusal{fmt.Sprintf("the server chose version %d and encoding %.20q, want %d and %v", proto, enc, wire.Proto,
			wire.Ext)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.secret = session, secret
	c.limits.frameIn = int(number64(lim, "frame_in", 16<<20))
	c.limits.inflight = int(number64(lim, "inflight", 4))
	c.limits.resume = time.Duration(number64(lim, "resume_s", 0) * float64(time.Second))
	if !slices.Contains(feat, "resume") || secret == "" {
		c.limits.resume = 0
	}
	return nil
}

// number64 returns the positive number at key, def if there is none.
func number64(m wire.Map, key string, def float64) float64 {
	v := def
	switch x := m.Get(key).(type) {
	case int64:
		v = float64(x)
	case float64:
		v = x
	}
	if !(v >= 0) {
		return def
	}
	return v
}

// listener notes when bytes came last.
type listener struct {
	net.Conn
	begun time.Time
	heard atomic.Int64 // since begun
}

func (l *listener) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.heard.Store(int64(time.Since(l.begun)))
	}
	return n, err
}

// silence returns for how long nothing has come over conn, which attach made.
func silence(conn *websocket.Conn) time.Duration {
	c := conn.NetConn()
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	l := c.(*listener)
	return time.Since(l.begun) - time.Duration(l.heard.Load())
}

// run serves the session until it ends, connection after connection.
func (c *Client) run(conn *websocket.Conn) {
	defer close(c.done)
	for {
		next, err := c.serve(conn)
		closeConn(conn)
		if c.life.Err() != nil {
			if next != nil {
				closeConn(next)
			}
			c.fail(env.ErrClosed)
			return
		}
		if next != nil {
			c.log.Info("session moved from a silent connection", "url", c.url)
			conn = next
			continue
		}
		if !final(err) {
			c.log.Warn("connection lost", "url", c.url, "error", err)
			conn, err = c.reattach(err)
		}
		if err != nil {
			if c.life.Err() != nil {
				err = env.ErrClosed
			} else {
				err = fmt.Errorf("%w: %w", ErrLost, err)
			}
			c.fail(err)
			return
		}
		c.log.Info("session resumed", "url", c.url)
	}
}

// reattach connects again, with growing pauses, for as long as the server keeps the session.
func (c *Client) reattach(lost error) (*websocket.Conn, error) {
	window := c.window()
	if window <= 0 {
		return nil, fmt.Errorf("%w (it cannot be resumed)", lost)
	}
	ctx, cancel := context.WithTimeout(c.life, window)
	defer cancel()
	// Random pauses keep the clients of one server from returning all at once.
	jitter := rng.Stream(uint64(time.Now().UnixNano()), "client/backoff")
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		conn, err := c.attach(ctx)
		if err == nil {
			return conn, nil
		}
		if final(err) {
			return nil, fmt.Errorf("%w; resuming it: %w", lost, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; not resumed within %v: %w", lost, window, err)
		case <-time.After(pause/2 + time.Duration(jitter.Int64N(int64(pause)))):
		}
	}
}

// window returns how long a lost session can be resumed.
func (c *Client) window() time.Duration {
	return min(c.allowed().resume, c.cfg.Resume)
}

// serve writes posted calls and reads replies until the connection ends, and returns why it ended, or the connection to
// which the session has moved.
func (c *Client) serve(conn *websocket.Conn) (next *websocket.Conn, err error) {
	c.rewind()
	// A server that reads nothing must not keep Close.
	stop := context.AfterFunc(c.life, func() { time.AfterFunc(closeWait, func() { closeConn(conn) }) })
	defer stop()
	s := &serving{conn: conn, read: make(chan error, 1)}
	go func() { s.read <- c.read(conn) }()
	err = c.write(s)
	if s.moving != nil {
		// The server may have closed this connection because it accepts the other one.
		m := <-s.moving
		s.moving = nil
		next = m.conn
	}
	if !s.ended {
		closeConn(conn)
		if r := <-s.read; err == nil || closeCode(r) != 0 {
			err = r // the server's close code says more than the failed write
		}
	}
	if closeCode(err) == wire.CloseTakenOver && (s.tried || c.strayed()) {
		// The server accepted another connection of this client after the client had given it up.
		err = fmt.Errorf("the session moved too late: %v", err) //nolint:errorlint // this close ends no session
	}
	return next, err
}

// strayed reports whether a hello that was given up here may have taken the session over, and counts that hello out:
// each can do so once.
func (c *Client) strayed() bool {
	if c.strays.Load() == 0 {
		return false
	}
	c.strays.Add(-1)
	return true
}

// serving is the state of one connection.
type serving struct {
	conn   *websocket.Conn
	read   chan error // receives why the reader ended
	ended  bool       // read has been received from
	moving chan moved // not nil while the session tries to move
	tried  bool       // it has tried before
}

// moved is the outcome of a try to move.
type moved struct {
	conn *websocket.Conn
	err  error
}

// write is the connection's only writer of messages. It returns when writing fails, when the Client is closed, when the
// reader has ended, for which it waits, or when the session can move.
func (c *Client) write(s *serving) error {
	ping := time.NewTicker(c.cfg.KeepAlive)
	defer ping.Stop()
	for {
		if cl := c.take(); cl != nil {
			err := s.conn.SetWriteDeadline(time.Now().Add(writeWait))
			if err == nil {
				err = s.conn.WriteMessage(websocket.BinaryMessage, cl.frame)
			}
			c.wrote(cl)
			if err != nil {
				return err
			}
			continue
		}
		select {
		case <-c.wake:
		case <-ping.C:
			if err := s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWait)); err != nil {
				return err
			}
			if s.moving == nil && silence(s.conn) >= 3*c.cfg.KeepAlive && c.window() > 0 {
				s.moving, s.tried = c.move(), true
			}
		case m := <-s.moving:
			s.moving = nil
			switch {
			case m.err == nil:
				s.moving = make(chan moved, 1)
				s.moving <- m
				return errMoved
			case final(m.err):
				return m.err
			}
		case err := <-s.read:
			s.ended = true
			return err
		case <-c.life.Done():
			msg := websocket.FormatCloseMessage(wire.CloseBye, "")
			return s.conn.WriteControl(websocket.CloseMessage, msg, time.Now().Add(closeWait))
		}
	}
}

var errMoved = errors.New("the session has moved to another connection")

// move tries to resume the session over another connection while the present one is silent. Its server may be busy, and
// silence alone never ends a session; or the path may be dead.
func (c *Client) move() chan moved {
	done := make(chan moved, 1)
	go func() {
		conn, err := c.attach(c.life)
		done <- moved{conn, err}
	}()
	return done
}

// closeWait bounds the farewell of a connection.
const closeWait = time.Second

// writeWait bounds one write: a server that accepts nothing for this long is taken for lost.
const writeWait = 30 * time.Second

// read delivers replies to their calls until the connection ends.
func (c *Client) read(conn *websocket.Conn) error {
	if err := conn.SetReadDeadline(time.Time{}); err != nil { // calls have deadlines; a connection may be silent
		return err
	}
	lim := wire.DefaultLimits()
	lim.String = int(c.cfg.MaxFrame) // rendered text can be long
	dec := wire.NewDecoder(wire.Ext, lim)
	for {
		_, r, err := conn.NextReader()
		if err != nil {
			return err
		}
		buf, err := readAll(r, c.buffer())
		if err != nil {
			return err
		}
		m, e := dec.Decode(buf)
		if e != nil {
			return &refusal{"a message from the server that cannot be read: " + e.Error()}
		}
		re, e := m.Int("re", -1, 0, 1<<32-1)
		if e != nil || re < 0 {
			return &refusal{"a message from the server that is no reply"}
		}
		if re == 0 {
			if err := c.event(m); err != nil {
				return err
			}
		}
		if re == 0 || !c.deliver(uint32(re), m, buf) {
			c.release(buf)
		}
	}
}

// event handles a message that answers no request.
func (c *Client) event(m wire.Map) error {
	op, _ := m.Str("op", "")
	msg, _ := m.Str("msg", "")
	switch op {
	case wire.OpError: // the server could not read one of our requests, whose caller would wait for ever
		return &refusal{"the server could not read a request: " + wire.ErrorOf(m).Error()}
	case wire.OpDrain:
		c.mu.Lock()
		c.draining = true
		c.mu.Unlock()
	}
	c.log.Warn("server says", "op", op, "msg", msg)
	return nil
}

// readAll appends all of r to buf.
func readAll(r io.Reader, buf []byte) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, max(len(buf), 4096))
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}
