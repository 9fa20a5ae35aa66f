package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

// unread reads the next message, which must be the error for an unreadable frame.
func (c *conn) unread() error {
	reply, err := c.next()
	if err != nil {
		return err
	}
	if op, _ := reply.Str("op", ""); op != wire.OpError {
		return fmt.Errorf("it was answered with %s", compare.Brief(reply))
	}
	if e := wire.ErrorOf(reply); e.Code != wire.BadFrame {
		return fmt.Errorf("error %v, want %s", e, wire.BadFrame)
	}
	if re, ok := compare.Number(reply.Get("re")); !ok || re != 0 {
		return fmt.Errorf("re is %v, want 0", reply.Get("re"))
	}
	return nil
}

// alive sends a ping, which must be answered.
func (c *conn) alive() error {
	_, err := c.ask(wire.OpPing, "t", 1)
	return err
}

func (s *suite) unreadableFramesAreCounted() error {
	for _, enc := range []wire.Encoding{wire.Ext, wire.JSON} {
		c, err := s.dialIn(enc)
		if err != nil {
			return err
		}
		bad := []byte{0xc1}
		if enc == wire.JSON {
			bad = []byte(`{"op":`)
		}
		for range 2 { // two in a row are tolerated, again and again
			for range 2 {
				if err := first(c.writeFrame(bad), c.unread()); err != nil {
					return fmt.Errorf("%v: %w", enc, err)
				}
			}
			if err := c.alive(); err != nil {
				return fmt.Errorf("%v: after two frames that cannot be read: %w", enc, err)
			}
		}
		for range 3 {
			if err := c.writeFrame(bad); err != nil {
				return fmt.Errorf("%v: %w", enc, err)
			}
		}
		if _, err := c.closed(1002); err != nil {
			return fmt.Errorf("%v: three frames in a row that cannot be read: %w", enc, err)
		}
	}
	return nil
}

// ping2 returns the beginning of a ping whose value of t is still missing.
func (c *conn) ping2() []byte {
	c.id++
	b := []byte{0x83, 0xa2, 'o', 'p', 0xa4, 'p', 'i', 'n', 'g', 0xa2, 'i', 'd', 0xce}
	b = binary.BigEndian.AppendUint32(b, uint32(c.id))
	return append(b, 0xa1, 't')
}

func (s *suite) lyingLengthsAreRefused() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	array := func(header ...byte) []byte { return append([]byte{0xc7, byte(len(header)), 78}, header...) }
	for _, x := range []struct {
		what string
		t    []byte
	}{
		{"a list of four thousand million entries", []byte{0xdd, 0xff, 0xff, 0xff, 0xff}},
		{"a map of four thousand million entries", []byte{0xdf, 0xff, 0xff, 0xff, 0xff}},
		{"a blob of four thousand million bytes", []byte{0xc6, 0xff, 0xff, 0xff, 0xff, 0}},
		{"a string of two thousand million bytes", []byte{0xdb, 0x7f, 0xff, 0xff, 0xff, 'x'}},
		{"an extension of four thousand million bytes", []byte{0xc9, 0xff, 0xff, 0xff, 0xff, 78, 1, 1, 0, 0}},
		{"lists within lists within lists …", slices.Repeat([]byte{0x91}, 20000)},
		{"a key that is a number", []byte{0x81, 1, 2}},
		{"a key that stands twice", []byte{0x82, 0xa1, 'a', 1, 0xa1, 'a', 2}},
		{"another extension", []byte{0xd4, 5, 0}},
		{"a string that is not UTF-8", []byte{0xa2, 0xff, 0xfe}},
		{"more after the message", []byte{1, 1}},
		{"nothing where a value should be", nil},
		{"an array with no header", array(1)},
		{"an array of an unknown type", array(99, 1, 0, 0, 1, 0, 0, 0, 0)},
		{"an array of nine dimensions", array(append([]byte{1, 9, 0, 0}, make([]byte, 36)...)...)},
		{"an array with flags", array(1, 1, 1, 0, 1, 0, 0, 0, 0)},
		{"an array whose data is too short", array(10, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0)},
		{"an array whose data is too long", array(1, 1, 0, 0, 1, 0, 0, 0, 0, 0)},
		{"an array whose size overflows", array(1, 4, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)},
	} {
		if err := first(c.writeFrame(append(c.ping2(), x.t...)), c.unread()); err != nil {
			return fmt.Errorf("%s: %w", x.what, err)
		}
		if err := c.alive(); err != nil {
			return fmt.Errorf("after %s: %w", x.what, err)
		}
	}
	// Frames that are not maps.
	for _, frame := range [][]byte{{}, {0xc0}, {0x93, 1, 2, 3}, {0xa2, 'o', 'p'}} {
		if err := first(c.writeFrame(frame), c.unread(), c.alive()); err != nil {
			return fmt.Errorf("the frame %x: %w", frame, err)
		}
	}
	return nil
}

func (s *suite) oversizeFramesClose() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	most := uint64(c.limit("frame_in"))
	if most > 256<<20 {
		return skip(fmt.Sprintf("messages of %d bytes are too large to try", most))
	}
	// The frame is written by hand, so that it arrives in pieces. The server may end the connection at any of them.
	head := binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, most+1)
	if err := c.ws.SetWriteDeadline(time.Now().Add(c.wait)); err != nil {
		return err
	}
	raw := c.ws.NetConn()
	if _, err := raw.Write(append(head, 0, 0, 0, 0)); err != nil { // a websocket mask of zeros
		return err
	}
	piece := make([]byte, 64<<10)
	for left := most + 1; left > 0; {
		n, err := raw.Write(piece[:min(left, uint64(len(piece)))])
		if err != nil {
			break
		}
		left -= uint64(n)
	}
	_, err = c.closed(1009)
	return err
}

func (s *suite) idsIncrease() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	if _, err := c.ask(wire.OpPing, "t", 1); err != nil {
		return err
	}
	at := func(id int64) error { // a request with this id must be refused, with this id in the reply
		if err := c.write(m("op", "ping", "id", id, "t", 1)); err != nil {
			return err
		}
		_, err := c.answer(wire.OpPing, id)
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != wire.BadRequest {
			return fmt.Errorf("id %d after %d: %v, want %s", id, c.id, err, wire.BadRequest)
		}
		return nil
	}
	if err := first(at(c.id), at(1), at(c.id-1)); err != nil {
		return err
	}
	c.id += 100 // gaps are allowed
	if err := first(c.alive(), at(c.id-1), at(c.id), c.alive()); err != nil {
		return err
	}
	for _, bad := range []wire.Map{
		m("op", "ping"), m("op", "ping", "id", 0), m("op", "ping", "id", -1), m("op", "ping", "id", int64(1)<<32),
		m("op", "ping", "id", "7"), m("op", "ping", "id", 1e6+0.5), m("op", "ping", "id", nil), m("id", c.id+50), m("op", 3, "id", c.id+51),
	} {
		if err := c.write(bad); err != nil {
			return err
		}
		reply, err := c.next()
		if err != nil {
			return fmt.Errorf("%v: %w", bad, err)
		}
		if op, _ := reply.Str("op", ""); op != wire.OpError {
			return fmt.Errorf("%v was answered with %s", bad, compare.Brief(reply))
		}
		if e := wire.ErrorOf(reply); e.Code != wire.BadRequest && e.Code != wire.BadFrame && e.Code != wire.UnknownOp {
			return fmt.Errorf("%v: error %v, want %s", bad, e, wire.BadRequest)
		}
		c.id += 100
		if err := c.alive(); err != nil {
			return fmt.Errorf("after %v: %w", bad, err)
		}
	}
	return nil
}

func (s *suite) answersComeOnceInOrder() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	var handles []*player
	for range 3 {
		p, err := s.openOn(c, 3)
		if err != nil {
			return err
		}
		handles = append(handles, p)
		if _, err := p.ask(wire.OpReset, "seed", 5); err != nil {
			return err
		}
	}
	window, err := c.window()
	if err != nil {
		return err
	}
	for range 5 {
		of := map[int64]int{} // request: handle
		var open [3][]int64
		for range window {
			for i, p := range handles {
				id, err := c.post(wire.OpStep, "h", p.h, "a", p.actions(p.random(s.draw)))
				if err != nil {
					return err
				}
				of[id], open[i] = i, append(open[i], id)
			}
		}
		for len(of) > 0 {
			reply, err := c.next()
			if err != nil {
				return fmt.Errorf("%d requests have no answer: %w", len(of), err)
			}
			re, e := reply.Int("re", 0, 0, 1<<32-1)
			i, asked := of[re]
			if e != nil || !asked {
				return fmt.Errorf("an answer to nothing, or a second one: %s", compare.Brief(reply))
			}
			if op, _ := reply.Str("op", ""); op != wire.OpStep {
				return fmt.Errorf("step %d of %d at once was answered with %s", re, window, compare.Brief(reply))
			}
			if open[i][0] != re {
				return fmt.Errorf("request %d of a handle was answered before request %d", re, open[i][0])
			}
			open[i] = open[i][1:]
			delete(of, re)
		}
		if err := c.alive(); err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) theWindowIsBounded() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	p, err := s.openOn(c, 8)
	if err != nil {
		return err
	}
	twin, err := s.openOn(c, 8)
	if err != nil {
		return err
	}
	if err := first(p.reset(3), twin.reset(3)); err != nil {
		return err
	}
	a := make([]int, 8*len(p.sizes))
	window, err := c.window()
	if err != nil {
		return err
	}
	many := 16 * window
	firstID := c.id + 1
	for range many {
		if _, err := c.post(wire.OpStep, "h", p.h, "a", p.actions(a)); err != nil {
			return err
		}
	}
	answered, done, last := map[int64]bool{}, 0, int64(0)
	for range many {
		reply, err := c.next()
		if err != nil {
			return fmt.Errorf("after %d of %d answers: %w", len(answered), many, err)
		}
		re, e := reply.Int("re", 0, firstID, firstID+int64(many)-1)
		if e != nil || answered[re] {
			return fmt.Errorf("an answer to nothing, or a second one: %s", compare.Brief(reply))
		}
		answered[re] = true
		if op, _ := reply.Str("op", ""); op == wire.OpError {
			if e := wire.ErrorOf(reply); e.Code != wire.Busy || !e.Retry {
				return fmt.Errorf("error %v (retry %v), want %s to be tried again", e, e.Retry, wire.Busy)
			}
			continue
		}
		if re < last {
			return fmt.Errorf("request %d was answered after request %d", re, last)
		}
		last = re
		done++
	}
	for range done {
		if _, err := twin.ask(wire.OpStep, "a", twin.actions(a)); err != nil {
			return err
		}
	}
	// A busy step had no effect: both handles have taken the same number of steps.
	x, err := p.ask(wire.OpStep, "a", p.actions(a))
	if err != nil {
		return err
	}
	y, err := twin.ask(wire.OpStep, "a", twin.actions(a))
	if err != nil {
		return err
	}
	if err := compare.Same(x, y); err != nil {
		return fmt.Errorf("%d steps were done and %d were busy, and the state differs from %d steps': %w", done, many-done, done, err)
	}
	return nil
}

func (s *suite) unknownOperations() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	p, err := s.openOn(c, 1)
	if err != nil {
		return err
	}
	for _, op := range []string{"dance", "Step", "welcome", "error"} {
		if _, err := c.refuse(only(wire.UnknownOp), op, "h", p.h); err != nil {
			return err
		}
	}
	if _, err := c.refuse(only(wire.UnknownOp, wire.BadRequest), "", "h", p.h); err != nil {
		return err
	}
	if _, err := c.refuse(only(wire.UnknownOp), "dance"); err != nil {
		return err
	}
	// hello is not an operation of a session.
	if _, err := c.refuse(only(wire.UnknownOp, wire.BadRequest), wire.OpHello); err != nil {
		return err
	}
	echo, err := c.ask(wire.OpPing, "t", 12.25)
	if err != nil {
		return err
	}
	if t, _ := compare.Number(echo.Get("t")); t != 12.25 {
		return fmt.Errorf("ping with t 12.25 gives t %v", echo.Get("t"))
	}
	if _, ok := compare.Number(echo.Get("qlen")); !ok {
		return fmt.Errorf("ping gives qlen %v, want a number", echo.Get("qlen"))
	}
	return nil
}
