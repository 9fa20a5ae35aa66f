package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
	"clustergym/internal/door"
)

const (
	helloFrame  = 64 << 10         // bytes of the first message
	maxBad      = 3                // unreadable messages in a row
	linger      = time.Second      // time that a client has to read why it is closed
	lingerBytes = 64 << 20         // how much it may still send meanwhile
	maxReason   = 123              // bytes of the text of a close frame
	keptFrame   = 64 << 10         // larger buffers are not reused
	controlWait = 30 * time.Second // time limit of writing a ping or a pong, as of a message
)

// frame is the buffer of a received message.
type frame struct {
	b    []byte
	room *frameRoom // where its memory is counted, nil = nowhere
	cost int64
}

// conn is one websocket. Any goroutine may call its methods, except those of the reader (reader.go).
type conn struct {
	srv  *Server
	ws   *websocket.Conn
	raw  net.Conn
	kind int  // of its messages: text or binary
	role Role // by the token on the upgrade, 0 = none was shown
	log  *slog.Logger

	place *door.Place // nil without one

	// Owned by the reader.
	enc    wire.Encoding
	dec    *wire.Decoder
	w      *wire.Writer
	sess   *session     // nil until hello is answered
	bad    int          // unreadable messages in a row
	parted bool         // the client closed it before the server did
	own    *slog.Logger // log, plus the session once there is one

	reading reading // says which goroutine is the reader

	wmu    sync.Mutex // held while a message is written
	broken bool       // under wmu: writing has failed, and no more is written

	heard    atomic.Int64 // when the last bytes were received
	greeted  atomic.Bool  // hello has been answered
	expelled atomic.Bool  // its place was needed: there is no time for a farewell

	shutOnce sync.Once
	code     int // why the server shut it; valid once quit is closed
	reason   string
	quit     chan struct{} // closed by shut
	over     chan struct{} // closed when reading has ended
	watched  chan struct{} // closed when watch has ended
}

func newConn(s *Server, ws *websocket.Conn, role Role, p *door.Place) *conn {
	c := &conn{
		srv: s, ws: ws, raw: ws.NetConn(), kind: websocket.BinaryMessage, role: role, place: p,
		log: s.log.With("client", ws.RemoteAddr().String()), enc: wire.Ext,
		quit: make(chan struct{}), over: make(chan struct{}), watched: make(chan struct{}),
	}
	if ws.Subprotocol() == wire.SubJSON {
		c.kind, c.enc = websocket.TextMessage, wire.JSON
	}
	c.own = c.log
	c.dec = wire.NewDecoder(c.enc, s.cfg.limits())
	c.heard.Store(int64(s.moment()))
	c.reading.timer = time.AfterFunc(math.MaxInt64, c.relieve)
	c.reading.timer.Stop()
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
	ws.SetCloseHandler(func(code int, _ string) error {
		select {
		case <-c.quit: // the client answers the server's close frame
		default:
			c.parted = true
		}
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(linger))
		return nil
	})
	return c
}

// errShut ends the reader after shut.
var errShut = errors.New("server: the connection was shut")

// clean reports whether a connection ended in a way that also ends its session, unless it was taken over.
func clean(err error) bool {
	if errors.Is(err, errCrowded) {
		return false
	}
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

// breach reports whether err is a client's breach of RFC 6455, which gorilla/websocket has already answered.
func breach(err error) bool {
	var closed *websocket.CloseError
	var network net.Error // a pong that could not be sent in time, whose text has the same prefix
	return !errors.As(err, &closed) && !errors.As(err, &network) && strings.HasPrefix(err.Error(), "websocket: ")
}

// cause returns err, or errShut if the server shut the connection and err is only how the reader noticed.
func (c *conn) cause(err error) error {
	if c.parted || breach(err) {
		return err // a later shut changes nothing
	}
	select {
	case <-c.quit:
		return errShut
	default:
		return err
	}
}

// read returns the next message, of at most limit bytes.
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
	if err := c.fill(f, r, limit); err != nil {
		c.srv.release(f)
		return nil, err
	}
	c.srv.met.bytesIn.Add(uint64(len(f.b)))
	return f, nil
}

// fill reads a message of at most limit bytes into f.
func (c *conn) fill(f *frame, r io.Reader, limit int) error {
	f.b = f.b[:0]
	if err := c.charge(f, int64(cap(f.b))); err != nil {
		return err
	}
	for {
		if len(f.b) == cap(f.b) {
			if err := c.widen(f, max(len(f.b), 4096)); err != nil { // at most twice what has been received
				return err
			}
		}
		n, err := r.Read(f.b[len(f.b):cap(f.b)])
		f.b = f.b[:len(f.b)+n]
		if len(f.b) > limit {
			return c.shut(wire.CloseTooLarge, fmt.Sprintf("a message of more than %d bytes", limit))
		}
		c.heard.Store(int64(c.srv.moment()))
		if errors.Is(err, io.EOF) {
			c.fit(f)
			return nil
		}
		if err != nil {
			return c.cause(err)
		}
	}
}

// release returns a message's buffer for reuse. Views of it must not be used afterwards.
func (s *Server) release(f *frame) {
	if f == nil {
		return
	}
	if f.room != nil {
		f.room.free(f.cost)
		f.room, f.cost = nil, 0
	}
	if cap(f.b) <= keptFrame {
		s.frames.Put(f)
	}
}

// write sends one message. A failure closes the connection, which the reader notices.
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

// shut ends the connection with a code and a text that says what to do. It does not wait. Only the first call counts.
func (c *conn) shut(code int, reason string) error {
	c.shutOnce.Do(func() {
		c.code, c.reason = code, strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
		// Writes under way must not delay the close frame.
		_ = c.raw.SetWriteDeadline(time.Now().Add(linger))
		close(c.quit)
	})
	return errShut
}

// watch sends pings, shuts the connection if the client is late or silent, and sends the close frame.
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
			case <-c.quit: // the reader shut it
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
			_ = c.shut(wire.CloseExpired,
				fmt.Sprintf("nothing received for %v: connect again, and ping while idle", cfg.IdleTimeout))
			continue
		}
		if cfg.PingInterval > 0 {
			if now >= ping {
				// Whether a pong comes does not matter. If the client reads so little that the ping cannot be written, the
				// next message will show it.
				_ = c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(controlWait))
				ping = c.srv.moment() + cfg.PingInterval
			}
			next = min(next, ping)
		}
		timer.Reset(next - c.srv.moment())
	}
}

// farewell sends the close frame and wakes the goroutines that are blocked in reading and writing.
func (c *conn) farewell() {
	text := websocket.FormatCloseMessage(c.code, c.reason)
	_ = c.ws.WriteControl(websocket.CloseMessage, text, time.Now().Add(linger)) // it fails only if the client is gone
	now := time.Now()
	_ = c.raw.SetWriteDeadline(now)
	_ = c.raw.SetReadDeadline(now)
}

// leave closes the socket. If the server ended the connection, leave first reads for a moment what the client is still
// sending: closing at once would make the client's system discard the close frame unread.
func (c *conn) leave(err error) {
	if (errors.Is(err, errShut) || breach(err)) && !c.expelled.Load() {
		if half, ok := c.raw.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		_ = c.raw.SetReadDeadline(time.Now().Add(linger))
		_, _ = io.CopyN(io.Discard, c.raw, lingerBytes)
	}
	_ = c.ws.Close()
	c.own.Debug("connection ended", "cause", err)
}
