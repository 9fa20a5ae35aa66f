package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/env/bridge/wire"
)

const (
	helloFrame  = 64 << 10         // bytes of the first message
	maxBad      = 3                // unreadable messages in a row
	linger      = time.Second      // for a client to read why it is closed
	lingerBytes = 64 << 20         // of what it still sends meanwhile
	maxReason   = 123              // bytes of the text of a close frame
	keptFrame   = 1 << 20          // buffers above it are not used again
	controlWait = 30 * time.Second // for a pong; the write of a ping waits as long
)

// frame is the buffer of a received message.
type frame struct{ b []byte }

// conn is one websocket. Its methods may be called by any goroutine, but for those of the reader: serve, read.
type conn struct {
	srv  *Server
	ws   *websocket.Conn
	raw  net.Conn
	kind int  // of its messages: text or binary
	role Role // by the token on the upgrade, 0 = none was shown
	log  *slog.Logger

	// The reader's.
	enc wire.Encoding
	dec *wire.Decoder
	w   *wire.Writer
	bad int // unreadable messages in a row

	wmu    sync.Mutex // held while a message is written
	broken bool       // wmu: nothing can be written any more

	heard   atomic.Int64 // the moment of the last bytes received
	greeted atomic.Bool  // hello has been answered

	shutOnce sync.Once
	code     int // why it was shut, valid once quit is closed
	reason   string
	quit     chan struct{} // closed by shut
	over     chan struct{} // closed when the reader has ended
}

func newConn(s *Server, ws *websocket.Conn, role Role) *conn {
	c := &conn{
		srv: s, ws: ws, raw: ws.NetConn(), kind: websocket.BinaryMessage, role: role,
		log: s.log.With("client", ws.RemoteAddr().String()), enc: wire.Ext,
		quit: make(chan struct{}), over: make(chan struct{}),
	}
	if ws.Subprotocol() == wire.SubJSON {
		c.kind, c.enc = websocket.TextMessage, wire.JSON
	}
	c.dec = wire.NewDecoder(c.enc, s.cfg.limits())
	c.heard.Store(int64(s.moment()))
	ws.SetPingHandler(func(data string) error {
		c.heard.Store(int64(s.moment()))
		err := ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(controlWait))
		if errors.Is(err, websocket.ErrCloseSent) {
			return nil
		}
		return err
	})
	ws.SetPongHandler(func(string) error {
		c.heard.Store(int64(s.moment()))
		return nil
	})
	return c
}

// serve reads the connection until it ends. Everything that it started has ended then.
func (c *conn) serve() {
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.watch()
	}()
	err := c.talk()
	close(c.over)
	<-watched
	c.leave(err)
}

// errShut ends the reader after shut.
var errShut = errors.New("server: the connection was shut")

// talk is the dialogue: hello, then requests. Its error says how the connection ended.
func (c *conn) talk() error {
	f, err := c.read(helloFrame)
	if err != nil {
		return err
	}
	sess, err := c.hello(f.b)
	c.srv.release(f)
	if err != nil {
		return err
	}
	for {
		if f, err = c.read(c.srv.cfg.MaxFrameIn); err == nil {
			err = sess.take(c, f)
		}
		if err != nil {
			sess.drop(c, clean(err))
			return err
		}
	}
}

// clean says whether a connection ended in a way after which its session is not kept.
func clean(err error) bool {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		switch closed.Code {
		case wire.CloseBye, wire.CloseProtocol, wire.CloseWrongType, wire.CloseTooLarge:
			return true
		}
		return false
	}
	return errors.Is(err, errShut) || breach(err)
}

// breach says whether err is of a client that does not keep to RFC 6455; it has been told.
func breach(err error) bool {
	var closed *websocket.CloseError
	return !errors.As(err, &closed) && strings.HasPrefix(err.Error(), "websocket: ")
}

// cause is err, or errShut where the connection was shut and err is only how the reader noticed.
func (c *conn) cause(err error) error {
	select {
	case <-c.quit:
		return errShut
	default:
		return err
	}
}

// read is the next message, of at most limit bytes.
func (c *conn) read(limit int) (*frame, error) {
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return nil, c.cause(err)
	}
	if kind != c.kind {
		want := "text"
		if c.kind == websocket.BinaryMessage {
			want = "binary"
		}
		return nil, c.shut(wire.CloseWrongType, "this session speaks in "+want+" messages")
	}
	f := c.srv.frames.Get().(*frame)
	b := f.b[:0]
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, max(len(b), 4096)) // never much more than has come
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if len(b) > limit {
			return nil, c.shut(wire.CloseTooLarge, fmt.Sprintf("a message of more than %d bytes", limit))
		}
		c.heard.Store(int64(c.srv.moment()))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, c.cause(err)
		}
	}
	f.b = b
	c.srv.met.bytesIn.Add(uint64(len(b)))
	return f, nil
}

// release takes the buffer of a message back that nobody looks at any more.
func (s *Server) release(f *frame) {
	if f != nil && cap(f.b) <= keptFrame {
		s.frames.Put(f)
	}
}

// write sends one message. What goes wrong ends the connection, and is the reader's to find.
func (c *conn) write(b []byte) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	c.writeLocked(b)
}

func (c *conn) writeLocked(b []byte) {
	if c.broken {
		return
	}
	_ = c.ws.SetWriteDeadline(time.Now().Add(c.srv.cfg.WriteTimeout)) // always nil
	err := c.ws.WriteMessage(c.kind, b)
	if err == nil {
		c.srv.met.bytesOut.Add(uint64(len(b)))
		return
	}
	c.broken = true
	if !errors.Is(err, websocket.ErrCloseSent) {
		c.log.Debug("a client does not take its messages", "error", err)
		_ = c.raw.Close() // the reader notices
	}
}

// shut ends the connection with a code and a text that says what to do. It does not wait; the first call counts.
func (c *conn) shut(code int, reason string) error {
	c.shutOnce.Do(func() {
		c.code, c.reason = code, strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
		close(c.quit)
	})
	return errShut
}

// watch sends pings, shuts the connection where the client is late or silent, and says farewell.
func (c *conn) watch() {
	cfg := &c.srv.cfg
	begun := c.srv.moment()
	ping := begun + cfg.PingInterval
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.over:
			select {
			case <-c.quit: // the reader itself has shut it
				c.farewell()
			default:
			}
			return
		case <-c.quit:
			c.farewell()
			return
		case <-timer.C:
		}
		now := c.srv.moment()
		idle := time.Duration(c.heard.Load()) + cfg.IdleTimeout
		next := idle
		if !c.greeted.Load() {
			late := begun + cfg.HelloTimeout
			next = min(next, late)
			if now >= late {
				_ = c.shut(wire.CloseHelloTimeout, fmt.Sprintf("send hello within %v of connecting", cfg.HelloTimeout))
				continue
			}
		}
		if now >= idle {
			c.srv.met.reaped.Add(1)
			_ = c.shut(wire.CloseExpired, fmt.Sprintf("nothing received for %v: connect again, and ping while idle", cfg.IdleTimeout))
			continue
		}
		if cfg.PingInterval > 0 {
			if now >= ping {
				// A ping that cannot be sent is no reason to end: the write of a reply will find out.
				_ = c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(controlWait))
				ping = c.srv.moment() + cfg.PingInterval
			}
			next = min(next, ping)
		}
		timer.Reset(next - c.srv.moment())
	}
}

// farewell sends the close frame and wakes the reader, and whoever is blocked in a write.
func (c *conn) farewell() {
	text := websocket.FormatCloseMessage(c.code, c.reason)
	_ = c.ws.WriteControl(websocket.CloseMessage, text, time.Now().Add(linger)) // a client that is gone misses nothing
	now := time.Now()
	_ = c.raw.SetWriteDeadline(now)
	_ = c.raw.SetReadDeadline(now)
}

// leave closes the socket. Where the server ended the dialogue, what the client is still sending is read for a moment:
// closing at once would make its system throw the close frame away, unread.
func (c *conn) leave(err error) {
	if errors.Is(err, errShut) || breach(err) {
		if half, ok := c.raw.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		_ = c.raw.SetReadDeadline(time.Now().Add(linger))
		_, _ = io.CopyN(io.Discard, c.raw, lingerBytes)
	}
	_ = c.ws.Close()
	c.log.Debug("connection ended", "cause", err)
}
