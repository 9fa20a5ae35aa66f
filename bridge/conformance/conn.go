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
	d := websocket.Dialer{Subprotocols: []string{sub}, TLSClientConfig: s.TLS, ReadBufferSize: 32 << 10, WriteBufferSize: 32 << 10}
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
func (s *suite) dial(more ...any) (*conn, error) { return s.dialIn(wire.Ext, more...) }

func (s *suite) dialIn(enc wire.Encoding, more ...any) (*conn, error) {
	c, _, err := s.upgrade(enc, s.Token)
	if err != nil {
		return nil, err
	}
	return c, c.greet(hello(enc, more...))
}

// greet sends hello and reads the welcome.
func (c *conn) greet(h wire.Map) error {
	if err := c.write(h); err != nil {
		return err
	}
	reply, err := c.next()
	if err != nil {
		return fmt.Errorf("after hello: %w", err)
	}
	if op, _ := reply.Str("op", ""); op != wire.OpWelcome {
		return fmt.Errorf("hello was answered with %v", reply)
	}
	c.id, c.welcome = 1, reply
	return nil
}

// encode returns msg as a frame.
func (c *conn) encode(msg wire.Map) []byte {
	w := wire.NewWriter(c.enc)
	w.Value(msg)
	return w.Bytes()
}

// write sends msg unchanged.
func (c *conn) write(msg wire.Map) error { return c.writeFrame(c.encode(msg)) }

func (c *conn) writeFrame(frame []byte) error {
	kind := websocket.BinaryMessage
	if c.enc == wire.JSON {
		kind = websocket.TextMessage
	}
	return c.writeAs(kind, frame)
}

func (c *conn) writeAs(kind int, frame []byte) error {
	if err := c.ws.SetWriteDeadline(time.Now().Add(c.wait)); err != nil {
		return err
	}
	return c.ws.WriteMessage(kind, frame)
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
func (c *conn) post(op string, fields ...any) (int64, error) {
	c.id++
	return c.id, c.write(merge(m("op", op, "id", c.id), m(fields...)))
}

// answer returns the next message, which must be the reply to request id. An error reply becomes a *wire.Error.
func (c *conn) answer(op string, id int64) (wire.Map, error) {
	for {
		reply, err := c.next()
		if err != nil {
			return nil, fmt.Errorf("waiting for the answer to %s: %w", op, err)
		}
		re, e := reply.Int("re", -1, 0, 1<<32-1)
		if e != nil || re < 0 {
			return nil, fmt.Errorf("a message without re: %v", reply)
		}
		got, _ := reply.Str("op", "")
		if re == 0 && (got == wire.OpNotice || got == wire.OpDrain) {
			continue
		}
		if re != id {
			return nil, fmt.Errorf("waiting for the answer to %s %d came a reply to %d: %v", op, id, re, reply)
		}
		if got == wire.OpError {
			return nil, wire.ErrorOf(reply)
		}
		if got != op {
			return nil, fmt.Errorf("%s was answered with %s", op, got)
		}
		return reply, nil
	}
}

// ask sends a request and returns its reply.
func (c *conn) ask(op string, fields ...any) (wire.Map, error) {
	id, err := c.post(op, fields...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	reply, err := c.answer(op, id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return reply, nil
}

// refuse sends a request, whose reply must be an error with one of the codes.
func (c *conn) refuse(codes []wire.Code, op string, fields ...any) (*wire.Error, error) {
	reply, err := c.ask(op, fields...)
	var e *wire.Error
	if !errors.As(err, &e) {
		if err == nil {
			err = fmt.Errorf("%s %s was accepted: %v", op, compare.Brief(fields), reply)
		}
		return nil, err
	}
	if !slices.Contains(codes, e.Code) {
		return nil, fmt.Errorf("%s %s: error %q, want %v", op, compare.Brief(fields), e, codes)
	}
	if e.Msg == "" {
		return nil, fmt.Errorf("%s %s: the error of code %s says nothing", op, compare.Brief(fields), e.Code)
	}
	return e, nil
}

func only(codes ...wire.Code) []wire.Code { return codes }

// closed waits for the end of the connection, which must have one of the codes and a valid reason.
func (c *conn) closed(codes ...int) (reason string, err error) {
	for {
		_, err := c.frame()
		if err == nil {
			continue // a message that was sent before the end
		}
		var e *websocket.CloseError
		if !errors.As(err, &e) {
			return "", fmt.Errorf("waiting for the end with code %v: %w", codes, err)
		}
		if !slices.Contains(codes, e.Code) {
			return "", fmt.Errorf("closed with %d %q, want %v", e.Code, e.Text, codes)
		}
		if len(e.Text) > 123 {
			return "", fmt.Errorf("closed with a reason of %d bytes, want at most 123", len(e.Text))
		}
		if (e.Code == 1001 || e.Code >= 4400 && e.Code < 4500) && e.Text == "" {
			return "", fmt.Errorf("closed with %d and no reason, want what to do", e.Code)
		}
		// The server has finished with the connection only when TCP ends too.
		if err := c.ws.SetReadDeadline(time.Now().Add(c.wait)); err != nil {
			return "", err
		}
		if _, err := io.Copy(io.Discard, c.ws.NetConn()); errors.Is(err, os.ErrDeadlineExceeded) {
			return "", fmt.Errorf("closed with %d, and the connection still stands after %v", e.Code, c.wait)
		}
		return e.Text, nil
	}
}

// drop ends the connection as a crash of the client would: the kernel resets it.
func (c *conn) drop() error {
	c.left = true
	if tcp, ok := c.ws.NetConn().(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			return err
		}
	}
	return c.ws.NetConn().Close()
}

// leave ends the session, so that it does not count while the next claims are checked.
func (c *conn) leave() {
	if c.left {
		return
	}
	c.left = true
	if c.welcome != nil {
		if _, err := c.post(wire.OpBye); err == nil {
			for { // until the server closes
				if _, err := c.frame(); err != nil {
					break
				}
			}
		}
	}
	if err := c.ws.Close(); err != nil {
		return // the server has closed it
	}
}

// isClosed reports whether err is the end of a connection with this code.
func isClosed(err error, code int) bool {
	var e *websocket.CloseError
	return errors.As(err, &e) && e.Code == code
}
