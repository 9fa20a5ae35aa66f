package server

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"clustergym/bridge/wire"
)

// One goroutine at a time reads a connection: the reader. It may execute a request itself (lane.claim), but pings,
// close frames and other handles' requests must not wait for that. So when the request takes longer than patient, a
// timer's goroutine becomes the reader. The former reader finishes its request, as a lane's goroutine would, and ends.
// So a message waits about patient at most before it is read, and short requests need no second goroutine.

// patient is how long a connection stays unread while its reader executes a request.
const patient = time.Millisecond

// reading says which goroutine is the reader. Its lock passes the reader's fields of conn from one reader to the next.
type reading struct {
	mu   sync.Mutex
	n    uint64 // counts the readers
	busy bool   // the reader executes a request
	// timer runs; it keeps running after a request, because an idle expiry costs less than arming it every time
	armed bool
	timer *time.Timer
}

// serve answers hello and then reads requests. It returns when the connection and everything that it started have
// ended, or when another goroutine has become the reader.
func (c *conn) serve() {
	go func() {
		defer close(c.watched)
		c.watch()
	}()
	if err := c.begin(); err != nil {
		c.finish(err)
		return
	}
	c.listen()
}

// listen reads messages. The reader calls it. It returns when the connection has ended, or when another goroutine has
// become the reader.
func (c *conn) listen() {
	for {
		l, r, err := c.take()
		if err != nil {
			c.finish(err)
			return
		}
		if l == nil {
			continue
		}
		me := c.away()
		l.run(r)
		if !c.back(me) {
			c.srv.wg.Done() // relieve has counted this goroutine
			return
		}
	}
}

// away notes that the reader executes the request that it has just read. It returns the argument for back.
func (c *conn) away() uint64 {
	t := &c.reading
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = true
	if !t.armed {
		t.armed = true
		t.timer.Reset(patient)
	}
	return t.n
}

// back notes that the request is done, and reports whether the caller is still the reader.
func (c *conn) back(me uint64) bool {
	t := &c.reading
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n != me {
		return false
	}
	t.busy = false
	return true
}

// relieve makes the timer's goroutine the reader if the present reader has been busy for longer than patient.
func (c *conn) relieve() {
	t := &c.reading
	t.mu.Lock()
	t.armed = false
	if !t.busy {
		t.mu.Unlock()
		return // the next request arms the timer
	}
	// heard is the time of the request, since nothing has been read after it.
	if left := time.Duration(c.heard.Load()) + patient - c.srv.moment(); left > 0 {
		t.armed = true
		t.timer.Reset(left)
		t.mu.Unlock()
		return
	}
	t.n++
	t.busy = false
	// From here on the connection's count in wg belongs to this goroutine. The former reader gets a count of its own.
	c.srv.wg.Add(1)
	t.mu.Unlock()
	c.listen()
}

// begin reads hello and answers it.
func (c *conn) begin() (err error) {
	defer c.survive(&err)
	f, err := c.read(helloFrame)
	if err != nil {
		return err
	}
	if c.sess, err = c.hello(f.b); err != nil {
		return err
	}
	c.srv.release(f)
	return nil
}

// take reads a message and passes it to the session. It returns what session.take returns.
func (c *conn) take() (l *lane, r request, err error) {
	defer c.survive(&err)
	f, err := c.read(c.srv.cfg.MaxFrameIn)
	if err != nil {
		return nil, request{}, err
	}
	return c.sess.take(c, f)
}

// survive turns a panic into an error. It is deferred where messages are read: none may end a server that others use.
func (c *conn) survive(err *error) {
	if p := recover(); p != nil {
		c.own.Error("panic", "op", "reading a message", "value", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = c.shut(wire.CloseInternal, "the server failed; its log says how")
	}
}

// finish ends the connection. The last reader calls it.
func (c *conn) finish(err error) {
	if c.sess != nil {
		c.sess.drop(c, clean(err), errors.Is(err, errShut) && c.takenOver())
	}
	c.place.Depart()
	close(c.over)
	<-c.watched
	c.leave(err)
	c.place.Vacate()
	c.srv.leave(c)
	c.srv.dismiss()
}

// takenOver reports whether the connection was shut because another one resumed its session.
func (c *conn) takenOver() bool {
	select {
	case <-c.quit:
		return c.code == wire.CloseTakenOver
	default:
		return false
	}
}

// await waits until the connection's last reader has ended, and reports whether that happened within limit.
func (c *conn) await(limit time.Duration) bool {
	select {
	case <-c.over:
		return true
	case <-time.After(limit):
		return false
	}
}
