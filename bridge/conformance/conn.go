package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

// conn is one connection, used in raw frames.
type conn struct {
	ws      *websocket.Conn
	enc     wire.Encoding
	wait    time.Duration
	id      int64 // of the last request
	welcome wire.Map
	left    bool
}

// mostFrame bounds a message from the server, in bytes: four times the default of its limit frame_out. A server that
// sends more would otherwise take the checker's memory.
const mostFrame = 256 << 20

// upgrade opens a websocket without saying hello.
func (s *suite) upgrade(enc wire.Encoding, token string) (*conn, *http.Response, error) {
	sub := wire.SubMsgpack
	if enc == wire.JSON {
		sub = wire.SubJSON
	}
	d := websocket.Dialer{Subprotocols: []string{sub}, TLSClientConfig: s.TLS, ReadBufferSize: 32 << 10,
		WriteBufferSize: 32 << 10}
	d.NetDialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			// gorilla/websocket heeds a context's deadline while it waits for the upgrade, and not its cancellation.
			context.AfterFunc(s.ctx, func() { _ = raw.Close() }) // reads and writes fail from then on
		}
		return raw, err
	}
	head := http.Header{}
	if token != "" {
		head.Set("Authorization", "Bearer "+token)
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.Wait)
	defer cancel()
	ws, resp, err := d.DialContext(ctx, "ws"+strings.TrimPrefix(s.base.String(), "http")+"/v1/ws", head)
	if err != nil {
		return nil, resp, fmt.Errorf("connecting: %w", err)
	}
	ws.SetReadLimit(mostFrame)
	c := &conn{ws: ws, enc: enc, wait: s.Wait}
	s.conns = append(s.conns, c)
	if got := ws.Subprotocol(); got != sub {
		return nil, resp, fmt.Errorf("the server chose subprotocol %q of %q", got, sub)
	}
	return c, resp, nil
}

// connect is upgrade for servers that must accept the token.
func (s *suite) connect(enc wire.Encoding, token string) *conn {
	c, _, err := s.upgrade(enc, token)
	must(err)
	return c
}

// hello returns a valid first message, with the entries of more replaced or added.
func hello(enc wire.Encoding, more ...any) wire.Map {
	h := m("op", "hello", "id", 1, "proto", []int{1, 1}, "client", m("name", "conformance", "version", "1", "lang", "go"),
		"enc", []string{enc.String()}, "feat", allFeatures)
	return merge(h, m(more...))
}

// merge returns a with the entries of b replaced or added.
func merge(a, b wire.Map) wire.Map {
	out := slices.Clone(a)
	for _, p := range b {
		if i := slices.IndexFunc(out, func(q wire.Pair) bool { return q.Key == p.Key }); i >= 0 {
			out[i] = p
		} else {
			out = append(out, p)
		}
	}
	return out
}

// dial begins a session in encoding ext.
func (s *suite) dial(more ...any) *conn { return s.dialIn(wire.Ext, more...) }

func (s *suite) dialIn(enc wire.Encoding, more ...any) *conn {
	c := s.connect(enc, s.Token)
	c.greet(hello(enc, more...))
	return c
}

// greet sends hello and reads the welcome.
func (c *conn) greet(h wire.Map) {
	c.write(h)
	reply, err := c.next()
	if err != nil {
		failf("after hello: %w", err)
	}
	if op, _ := reply.Str("op", ""); op != wire.OpWelcome {
		failf("hello was answered with %v", reply)
	}
	c.id, c.welcome = 1, reply
}

// encode returns msg as a frame.
func (c *conn) encode(msg wire.Map) []byte {
	w := wire.NewWriter(c.enc)
	w.Value(msg)
	return w.Bytes()
}

// write sends msg unchanged.
func (c *conn) write(msg wire.Map) { c.writeFrame(c.encode(msg)) }

func (c *conn) writeFrame(frame []byte) {
	kind := websocket.BinaryMessage
	if c.enc == wire.JSON {
		kind = websocket.TextMessage
	}
	c.writeAs(kind, frame)
}

func (c *conn) writeAs(kind int, frame []byte) {
	must(c.ws.SetWriteDeadline(time.Now().Add(c.wait)))
	must(c.ws.WriteMessage(kind, frame))
}

// frame returns the next frame.
func (c *conn) frame() ([]byte, error) {
	if err := c.ws.SetReadDeadline(time.Now().Add(c.wait)); err != nil {
		return nil, err
	}
	kind, b, err := c.ws.ReadMessage()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("nothing came within %v", c.wait)
	}
	if err != nil {
		return nil, err
	}
	if text := kind == websocket.TextMessage; text != (c.enc == wire.JSON) {
		return nil, fmt.Errorf("a message of websocket type %d in encoding %v", kind, c.enc)
	}
	return b, nil
}

// next returns the next message.
func (c *conn) next() (wire.Map, error) {
	b, err := c.frame()
	if err != nil {
		return nil, err
	}
	lim := wire.DefaultLimits()
	lim.String = 64 << 20 // a server's strings are bounded only by the frame
	msg, e := wire.Decode(b, c.enc, lim)
	if e != nil {
		return nil, fmt.Errorf("a frame that cannot be read: %w", e)
	}
	return msg, nil
}

// post sends a request and returns its id.
func (c *conn) post(op string, fields ...any) int64 {
	c.id++
	c.write(merge(m("op", op, "id", c.id), m(fields...)))
	return c.id
}

// answer returns the next message, which must be the reply to request id, or the error that it is.
func (c *conn) answer(op string, id int64) (wire.Map, *wire.Error) {
	for {
		reply, err := c.next()
		if err != nil {
			failf("waiting for the answer to %s: %w", op, err)
		}
		re, e := reply.Int("re", -1, 0, 1<<32-1)
		if e != nil || re < 0 {
			failf("a message without re: %v", reply)
		}
		got, _ := reply.Str("op", "")
		if re == 0 && (got == wire.OpNotice || got == wire.OpDrain) {
			continue
		}
		if re != id {
			failf("waiting for the answer to %s %d came a reply to %d: %v", op, id, re, reply)
		}
		if got == wire.OpError {
			return nil, wire.ErrorOf(reply)
		}
		if got != op {
			failf("%s was answered with %s", op, got)
		}
		return reply, nil
	}
}

// ask sends a request and returns its reply.
func (c *conn) ask(op string, fields ...any) wire.Map {
	reply, e := c.answer(op, c.post(op, fields...))
	if e != nil {
		failf("%s: %w", op, e)
	}
	return reply
}

// refuse sends a request, whose reply must be an error with one of the codes. It returns the error as a value: a claim
// need
// not look at it.
func (c *conn) refuse(codes []wire.Code, op string, fields ...any) wire.Error {
	reply, e := c.answer(op, c.post(op, fields...))
	switch {
	case e == nil:
		failf("%s %s was accepted: %v", op, compare.Brief(fields), reply)
	case !slices.Contains(codes, e.Code):
		failf("%s %s: error %q, want %v", op, compare.Brief(fields), e, codes)
	case e.Msg == "":
		failf("%s %s: the error of code %s says nothing", op, compare.Brief(fields), e.Code)
	}
	return *e
}

func only(codes ...wire.Code) []wire.Code { return codes }

// closed waits for the end of the connection, which must have the code and a valid reason.
func (c *conn) closed(code int) (reason string) {
	_, err := c.frame()
	for err == nil { // a message that was sent before the end
		_, err = c.frame()
	}
	var e *websocket.CloseError
	switch {
	case !errors.As(err, &e):
		failf("waiting for the end with code %d: %w", code, err)
	case e.Code != code:
		failf("closed with %d %q, want %d", e.Code, e.Text, code)
	case len(e.Text) > 123:
		failf("closed with a reason of %d bytes, want at most 123", len(e.Text))
	case (e.Code == 1001 || e.Code >= 4400 && e.Code < 4500) && e.Text == "":
		failf("closed with %d and no reason, want what to do", e.Code)
	}
	// The server has finished with the connection only when TCP ends too.
	must(c.ws.SetReadDeadline(time.Now().Add(c.wait)))
	if _, err := io.Copy(io.Discard, c.ws.NetConn()); errors.Is(err, os.ErrDeadlineExceeded) {
		failf("closed with %d, and the connection still stands after %v", e.Code, c.wait)
	}
	return e.Text
}

// drop ends the connection as a crash of the client would: the kernel resets it.
func (c *conn) drop() {
	c.left = true
	if tcp, ok := c.ws.NetConn().(*net.TCPConn); ok {
		must(tcp.SetLinger(0))
	}
	must(c.ws.NetConn().Close())
}

// leave ends the session, so that it does not count while the next claims are checked.
func (c *conn) leave() {
	if c.left {
		return
	}
	c.left = true
	if c.welcome != nil && attempt(func() { c.post(wire.OpBye) }) == nil {
		for { // until the server closes
			if _, err := c.frame(); err != nil {
				break
			}
		}
	}
	_ = c.ws.Close() // the server has closed it
}

// isClosed reports whether err is the end of a connection with this code.
func isClosed(err error, code int) bool {
	var e *websocket.CloseError
	return errors.As(err, &e) && e.Code == code
}
