package server

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"clustergym/env/bridge/wire"
)

// A connection is read by one goroutine at a time, which may execute a request itself (lane.claim). Pings, close frames
// and other handles' requests must not wait for that: when it takes longer than patient, the goroutine of a timer
// relieves the reader and reads on. Who was relieved finishes its request, as a lane's goroutine would, and ends.
// So a message waits at most for about patient until it is looked at, and what is brief needs no second goroutine.

// patient is how long a connection is left unread for the sake of one request.
const patient = time.Millisecond

// reading says who reads a connection. What belongs to the reader changes hands under its lock.
type reading struct {
	mu    sync.Mutex
	n     uint64 // counts readers
	busy  bool   // the reader executes a request
	armed bool   // timer runs: it is left to, for arming it with every request costs more than looking in vain
	timer *time.Timer
}

// serve is the dialogue: hello, then requests. It returns when the connection has ended and everything that it started
// has, or when another goroutine reads on.
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

// listen takes messages. It is called by the reader, and returns when nothing is to be read any more, or by another.
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
			c.srv.wg.Done() // relieve has counted it
			return
		}
	}
}

// away says that the reader goes to execute the request that it has just read. It returns what back wants.
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

// back says that the request is executed, and is whether the caller is the reader still.
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

// relieve is called by the timer.
func (c *conn) relieve() {
	t := &c.reading
	t.mu.Lock()
	t.armed = false
	if !t.busy {
		t.mu.Unlock()
		return // the next request arms the timer
	}
	// Nothing is heard while nobody reads: that was when the request came.
	if left := time.Duration(c.heard.Load()) + patient - c.srv.moment(); left > 0 {
		t.armed = true
		t.timer.Reset(left)
		t.mu.Unlock()
		return
	}
	t.n++
	t.busy = false
	// The count of the connection is this goroutine's from here on, the former reader gets one of its own.
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

// take reads a message and gives it to the session. It returns what session.take does.
func (c *conn) take() (l *lane, r request, err error) {
	defer c.survive(&err)
	f, err := c.read(c.srv.cfg.MaxFrameIn)
	if err != nil {
		return nil, request{}, err
	}
	return c.sess.take(c, f)
}

// survive is deferred where messages are read: none may end a server that others use.
func (c *conn) survive(err *error) {
	if p := recover(); p != nil {
		c.own.Error("panic", "op", "reading a message", "value", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = c.shut(wire.CloseInternal, "the server failed; its log says how")
	}
}

// finish is the reader's last act.
func (c *conn) finish(err error) {
	if c.sess != nil {
		c.sess.drop(c, clean(err), errors.Is(err, errShut) && c.takenOver())
	}
	close(c.over)
	<-c.watched
	c.leave(err)
	c.srv.leave(c)
	c.srv.dismiss()
}

// takenOver says whether the connection was shut because another one asked for its session.
func (c *conn) takenOver() bool {
	select {
	case <-c.quit:
		return c.code == wire.CloseTakenOver
	default:
		return false
	}
}

// await waits until nobody reads the connection any more, and says whether that came in time.
func (c *conn) await(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.over:
		return true
	case <-timer.C:
		return false
	}
}
