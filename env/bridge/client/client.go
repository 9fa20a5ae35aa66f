package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/env"
	"clustergym/env/bridge/wire"
)

// Client is one session with a server. It is safe for concurrent use; what it opens is not.
type Client struct {
	cfg Config
	url string
	tls *tls.Config
	log *slog.Logger

	wake chan struct{}   // there is something to write
	life context.Context // until Close
	end  context.CancelFunc
	done chan struct{} // closed when all goroutines have ended
	once sync.Once

	mu       sync.Mutex
	pending  []*call           // without an answer, in the order of their ids
	unsent   int               // pending[unsent:] have not been written on the present connection
	id       uint32            // of the last request
	acked    map[uint32]uint32 // by handle: the id of its last reply
	over     error             // why no call can succeed any more
	closing  bool
	draining bool
	free     [][]byte // buffers of replies
	orphans  []*handle

	// What the server said in its welcome. They change with a new connection only.
	session, secret string
	limits          limits
}

// limits are those of the welcome that concern a client.
type limits struct {
	frameIn, inflight int
	resume            time.Duration
}

// call is one request and its reply. Fields after done belong to the Client's lock until done has been received from.
type call struct {
	h     uint32 // 0 = none
	op    string
	frame []byte // from the request's writer
	done  chan struct{}

	id      uint32
	writing bool // the frame is in use
	sent    bool
	reply   wire.Map
	buf     []byte // what reply is a view of
	err     error
}

// Dial begins a session.
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

// Draining tells that the server is about to end and opens nothing more.
func (c *Client) Draining() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

// Close ends the session with all that is open in it, and waits for what the Client has started. Closing twice is
// harmless.
func (c *Client) Close() error {
	c.once.Do(func() {
		c.mu.Lock()
		over := c.over != nil
		c.closing = true
		c.mu.Unlock()
		if !over {
			// A farewell lets the server free the session now. It is no matter if it does not arrive.
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

// post gives cl a number and queues it.
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

// take is the next call to write, nil if there is none. The caller says wrote when its frame is free again.
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

// withdraw takes back a call that has not been sent; false if it has.
func (c *Client) withdraw(cl *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl.sent {
		return false
	}
	i := slices.Index(c.pending, cl)
	if i < 0 {
		return false // its reply is there, or the session is over
	}
	c.pending = slices.Delete(c.pending, i, i+1)
	return true
}

// deliver hands a reply to whom it belongs; false if it belongs to nobody. buf is what m is a view of.
func (c *Client) deliver(re uint32, m wire.Map, buf []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.pending, func(cl *call) bool { return cl.id == re })
	if i < 0 {
		return false // sent again after a resume
	}
	cl := c.pending[i]
	c.pending = slices.Delete(c.pending, i, i+1)
	if i < c.unsent {
		c.unsent--
	}
	c.acked[cl.h] = max(c.acked[cl.h], re) // handle 0: what belongs to none
	cl.reply, cl.buf = m, buf
	cl.done <- struct{}{}
	return true
}

// fail ends the session: every call fails with cause from now on.
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

// buffer is an empty buffer for a reply.
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

// release gives a buffer back.
func (c *Client) release(b []byte) {
	const enough = 8 // as many as are in use at a time, and no more
	if b == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.free) < enough {
		c.free = append(c.free, b)
	}
}

// forget drops what is known of a handle that is closed.
func (c *Client) forget(h uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.acked, h)
}

// closeCode is the code with which the server closed, 0 if it did not.
func closeCode(err error) int {
	var c *websocket.CloseError
	if errors.As(err, &c) {
		return c.Code
	}
	return 0
}

// orphan takes note of an open that was given up on its way: what it opens must be closed again.
func (c *Client) orphan(h *handle) {
	if h.kept == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orphans = append(c.orphans, h)
}

// adopt closes what orphans have opened meanwhile.
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
