package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// Client is one session with a server. It is safe for concurrent use; the Envs and Vecs that it opens are not.
type Client struct {
	cfg Config
	url string
	tls *tls.Config
	log *slog.Logger

	wake chan struct{}   // receives when there is something to write
	life context.Context // until Close
	end  context.CancelFunc
	done chan struct{} // closed when all goroutines have ended
	once sync.Once

	strays atomic.Int32 // hellos that were given up and may still reach the server

	mu       sync.Mutex
	pending  []*call           // unanswered calls, in the order of their ids
	unsent   int               // pending[unsent:] have not been written on the present connection
	id       uint32            // of the last request
	acked    map[uint32]uint32 // by handle: the id of its last reply
	over     error             // why every call fails from now on
	closing  bool
	draining bool
	free     [][]byte // buffers of replies
	orphans  []*handle

	// From the server's welcome. They change only with a new connection.
	session, secret string
	limits          limits
}

// limits holds the limits of the welcome that a client has to keep.
type limits struct {
	frameIn, inflight int
	resume            time.Duration
}

// call is one request and its reply. The Client's lock protects the fields after done until done has been received
// from.
type call struct {
	h     uint32 // 0 = none
	op    string
	frame []byte // copied from the handle's writer
	done  chan struct{}

	id      uint32
	writing bool // the frame is in use
	sent    bool
	reply   wire.Map
	buf     []byte // reply is a view of it
	err     error
}

// Dial connects to a server and begins a session. It returns faults of cfg all at once, and an error if the server
// cannot be reached within ctx and Config.DialTimeout or refuses the session.
func Dial(ctx context.Context, cfg Config, opts ...Option) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	c := &Client{
		cfg:   cfg.withDefaults(),
		log:   slog.New(slog.DiscardHandler),
		wake:  make(chan struct{}, 1),
		done:  make(chan struct{}),
		acked: map[uint32]uint32{},
		id:    1, // hello
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.url, _ = cfg.address() // checked by Validate
	for _, o := range opts {
		o(c)
	}
	conn, err := c.attach(ctx)
	if err != nil {
		c.end()
		return nil, fmt.Errorf("client: %s: %w", c.url, err)
	}
	go c.run(conn)
	return c, nil
}

// Draining reports whether the server has announced its end. Such a server opens no more environments.
func (c *Client) Draining() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

// Close ends the session, closes everything opened in it, and waits for the Client's goroutines. Closing twice is
// harmless. The error is always nil.
func (c *Client) Close() error {
	c.once.Do(func() {
		c.mu.Lock()
		over := c.over != nil
		c.closing = true
		c.mu.Unlock()
		if !over {
			// The farewell lets the server free the session now. If it is lost, the server notices the closed connection.
			ctx, cancel := context.WithTimeout(context.Background(), min(c.cfg.Timeout, 2*time.Second))
			h := c.newHandle(0)
			h.begin(wire.OpBye, 0)
			if err := h.roundTrip(ctx); err != nil {
				c.log.Debug("no answer to the farewell", "error", err)
			}
			cancel()
		}
		c.end()
	})
	<-c.done
	return nil
}

// post gives cl an id and queues it.
func (c *Client) post(cl *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing && cl.op != wire.OpBye {
		return env.ErrClosed
	}
	if c.over != nil {
		return c.over
	}
	if len(cl.frame) > c.limits.frameIn {
		return fmt.Errorf("client: %s of %d bytes, want at most %d: %w", cl.op, len(cl.frame), c.limits.frameIn, errTooLarge)
	}
	c.id++
	cl.id = c.id
	number(cl.frame, cl.op, cl.id)
	cl.sent, cl.err = false, nil
	c.pending = append(c.pending, cl)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

var errTooLarge = &wire.Error{Code: wire.TooLarge, Msg: "more than the server takes in one message"}

// take returns the next call to write, nil if there is none. The caller must call wrote when it no longer needs the
// call's frame.
func (c *Client) take() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unsent == len(c.pending) {
		return nil
	}
	cl := c.pending[c.unsent]
	c.unsent++
	cl.sent, cl.writing = true, true
	return cl
}

func (c *Client) wrote(cl *call) {
	c.mu.Lock()
	cl.writing = false
	c.mu.Unlock()
}

// withdraw removes a call that has not been sent. It returns false if the call has been sent.
func (c *Client) withdraw(cl *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl.sent {
		return false
	}
	i := slices.Index(c.pending, cl)
	if i < 0 {
		return false // its reply has come, or the session is over
	}
	c.pending = slices.Delete(c.pending, i, i+1)
	return true
}

// rewind makes all unanswered calls be written again, on a new connection.
func (c *Client) rewind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsent = 0
}

// deliver gives the reply m to the call with id re. It returns false if no call waits for it. m is a view of buf.
func (c *Client) deliver(re uint32, m wire.Map, buf []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.pending, func(cl *call) bool { return cl.id == re })
	if i < 0 {
		return false // a reply that the server sent twice because of a resume
	}
	cl := c.pending[i]
	c.pending = slices.Delete(c.pending, i, i+1)
	if i < c.unsent {
		c.unsent--
	}
	c.acked[cl.h] = max(c.acked[cl.h], re) // handle 0: requests that belong to no handle
	cl.reply, cl.buf = m, buf
	cl.done <- struct{}{}
	return true
}

// fail ends the session: pending and later calls fail with cause.
func (c *Client) fail(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = cause
	for _, cl := range c.pending {
		cl.err = cause
		cl.done <- struct{}{}
	}
	c.pending, c.unsent = nil, 0
}

// allowed returns the limits of the current connection.
func (c *Client) allowed() limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits
}

// buffer returns an empty buffer for a reply.
func (c *Client) buffer() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		b := c.free[n-1]
		c.free = c.free[:n-1]
		return b[:0]
	}
	return make([]byte, 0, 4096)
}

// release returns a buffer for reuse.
func (c *Client) release(b []byte) {
	const enough = 8 // about as many as are in use at a time
	if b == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.free) < enough {
		c.free = append(c.free, b)
	}
}

// forget drops the state of a closed handle.
func (c *Client) forget(h uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.acked, h)
}

// closeCode returns the code with which the server closed the connection, 0 if err is something else.
func closeCode(err error) int {
	var c *websocket.CloseError
	if errors.As(err, &c) {
		return c.Code
	}
	return 0
}

// orphan remembers an open that was cancelled after its request had been sent: the handle that it opens must be closed.
func (c *Client) orphan(h *handle) {
	if h.kept == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orphans = append(c.orphans, h)
}

// adopt closes the handles that orphans have opened since.
func (c *Client) adopt(ctx context.Context) {
	c.mu.Lock()
	all := c.orphans
	c.orphans = nil
	c.mu.Unlock()
	for _, h := range all {
		select {
		case <-h.kept.done:
		default:
			c.orphan(h)
			continue
		}
		if h.take(h.kept) != nil {
			continue
		}
		id, e := h.reply.reply.Int("h", 0, 1, 1<<32-1)
		h.release()
		if e != nil || id == 0 {
			continue
		}
		opened := c.newHandle(uint32(id))
		opened.begin(wire.OpClose, 0)
		if opened.roundTrip(ctx) == nil {
			opened.release()
		}
	}
}
