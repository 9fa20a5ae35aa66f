package conformance

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

// unread reads the next message, which must be the error for an unreadable frame.
func (c *conn) unread() {
	reply := need(c.next())
	if op, _ := reply.Str("op", ""); op != wire.OpError {
		failf("it was answered with %s", compare.Brief(reply))
	}
	if e := wire.ErrorOf(reply); e.Code != wire.BadFrame {
		failf("error %v, want %s", e, wire.BadFrame)
	}
	if re, ok := compare.Number(reply.Get("re")); !ok || re != 0 {
		failf("re is %v, want 0", reply.Get("re"))
	}
}

// alive sends a ping, which must be answered.
func (c *conn) alive() { c.ask(wire.OpPing, "t", 1) }

func (s *suite) unreadableFramesAreCounted() {
	for _, enc := range []wire.Encoding{wire.Ext, wire.JSON} {
		c := s.dialIn(enc)
		bad := []byte{0xc1}
		if enc == wire.JSON {
			bad = []byte(`{"op":`)
		}
		for range 2 { // two in a row are tolerated, again and again
			s.part("%v: two frames that cannot be read", enc)
			for range 2 {
				c.writeFrame(bad)
				c.unread()
			}
			c.alive()
		}
		s.part("%v: three frames in a row that cannot be read", enc)
		for range 3 {
			c.writeFrame(bad)
		}
		c.closed(1002)
	}
}

// ping2 returns the beginning of a ping whose value of t is still missing.
func (c *conn) ping2() []byte {
	c.id++
	b := []byte{0x83, 0xa2, 'o', 'p', 0xa4, 'p', 'i', 'n', 'g', 0xa2, 'i', 'd', 0xce}
	b = binary.BigEndian.AppendUint32(b, uint32(c.id))
	return append(b, 0xa1, 't')
}

func (s *suite) lyingLengthsAreRefused() {
	c := s.dial()
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
		{"an array whose size overflows",
			array(slices.Concat([]byte{1, 4, 0, 0}, bytes.Repeat([]byte{0xff}, 16), make([]byte, 4))...)},
	} {
		s.part("%s", x.what)
		c.writeFrame(append(c.ping2(), x.t...))
		c.unread()
		c.alive()
	}
	// Frames that are not maps.
	for _, frame := range [][]byte{{}, {0xc0}, {0x93, 1, 2, 3}, {0xa2, 'o', 'p'}} {
		s.part("the frame %x", frame)
		c.writeFrame(frame)
		c.unread()
		c.alive()
	}
}

func (s *suite) oversizeFramesClose() {
	c := s.dial()
	most := uint64(c.limit("frame_in"))
	if most > 256<<20 {
		skipf("messages of %d bytes are too large to try", most)
	}
	// The frame is written by hand, so that it arrives in pieces. The server may end the connection at any of them.
	head := binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, most+1)
	must(c.ws.SetWriteDeadline(time.Now().Add(c.wait)))
	raw := c.ws.NetConn()
	_, err := raw.Write(append(head, 0, 0, 0, 0)) // a websocket mask of zeros
	must(err)
	piece := make([]byte, 64<<10)
	for left := most + 1; left > 0; {
		n, err := raw.Write(piece[:min(left, uint64(len(piece)))])
		if err != nil {
			break
		}
		left -= uint64(n)
	}
	c.closed(1009)
}

func (s *suite) idsIncrease() {
	c := s.dial()
	c.alive()
	at := func(id int64) { // a request with this id must be refused, with this id in the reply
		c.write(m("op", "ping", "id", id, "t", 1))
		if _, e := c.answer(wire.OpPing, id); e == nil || e.Code != wire.BadRequest {
			failf("id %d after %d: %v, want %s", id, c.id, e, wire.BadRequest)
		}
	}
	at(c.id)
	at(1)
	at(c.id - 1)
	c.id += 100 // gaps are allowed
	c.alive()
	at(c.id - 1)
	at(c.id)
	c.alive()
	for _, bad := range []wire.Map{
		m("op", "ping"), m("op", "ping", "id", 0), m("op", "ping", "id", -1), m("op", "ping", "id", int64(1)<<32),
		m("op", "ping", "id", "7"), m("op", "ping", "id", 1e6+0.5), m("op", "ping", "id", nil), m("id", c.id+50),
		m("op", 3, "id", c.id+51),
	} {
		s.part("%v", bad)
		c.write(bad)
		reply := need(c.next())
		if op, _ := reply.Str("op", ""); op != wire.OpError {
			failf("it was answered with %s", compare.Brief(reply))
		}
		if e := wire.ErrorOf(reply); e.Code != wire.BadRequest && e.Code != wire.BadFrame && e.Code != wire.UnknownOp {
			failf("error %v, want %s", e, wire.BadRequest)
		}
		c.id += 100
		c.alive()
	}
}

func (s *suite) answersComeOnceInOrder() {
	c := s.dial()
	var handles []*player
	for range 3 {
		p := s.openOn(c, 3)
		handles = append(handles, p)
		p.reset(5)
	}
	window := c.window()
	for range 5 {
		of := map[int64]int{} // request: handle
		var open [3][]int64
		for range window {
			for i, p := range handles {
				id := c.post(wire.OpStep, "h", p.h, "a", p.actions(p.random(s.draw)))
				of[id], open[i] = i, append(open[i], id)
			}
		}
		for len(of) > 0 {
			reply, err := c.next()
			if err != nil {
				failf("%d requests have no answer: %w", len(of), err)
			}
			re, e := reply.Int("re", 0, 0, 1<<32-1)
			i, asked := of[re]
			if e != nil || !asked {
				failf("an answer to nothing, or a second one: %s", compare.Brief(reply))
			}
			if op, _ := reply.Str("op", ""); op != wire.OpStep {
				failf("step %d of %d at once was answered with %s", re, window, compare.Brief(reply))
			}
			if open[i][0] != re {
				failf("request %d of a handle was answered before request %d", re, open[i][0])
			}
			open[i] = open[i][1:]
			delete(of, re)
		}
		c.alive()
	}
}

func (s *suite) theWindowIsBounded() {
	c := s.dial()
	p, twin := s.openOn(c, 8), s.openOn(c, 8)
	p.reset(3)
	twin.reset(3)
	a := make([]int, 8*len(p.sizes))
	window := c.window()
	many := 16 * window
	firstID := c.id + 1
	for range many {
		c.post(wire.OpStep, "h", p.h, "a", p.actions(a))
	}
	answered, done, last := map[int64]bool{}, 0, int64(0)
	for range many {
		reply, err := c.next()
		if err != nil {
			failf("after %d of %d answers: %w", len(answered), many, err)
		}
		re, e := reply.Int("re", 0, firstID, firstID+int64(many)-1)
		if e != nil || answered[re] {
			failf("an answer to nothing, or a second one: %s", compare.Brief(reply))
		}
		answered[re] = true
		if op, _ := reply.Str("op", ""); op == wire.OpError {
			if e := wire.ErrorOf(reply); e.Code != wire.Busy || !e.Retry {
				failf("error %v (retry %v), want %s to be tried again", e, e.Retry, wire.Busy)
			}
			continue
		}
		if re < last {
			failf("request %d was answered after request %d", re, last)
		}
		last = re
		done++
	}
	for range done {
		twin.ask(wire.OpStep, "a", twin.actions(a))
	}
	// A busy step had no effect: both handles have taken the same number of steps.
	s.part("%d steps were done and %d were busy, compared with the state after %d steps", done, many-done, done)
	stepAlike(p, twin, a)
}

func (s *suite) unknownOperations() {
	c := s.dial()
	p := s.openOn(c, 1)
	for _, op := range []string{"dance", "Step", "welcome", "error"} {
		c.refuse(only(wire.UnknownOp), op, "h", p.h)
	}
	c.refuse(only(wire.UnknownOp, wire.BadRequest), "", "h", p.h)
	c.refuse(only(wire.UnknownOp), "dance")
	// hello is not an operation of a session.
	c.refuse(only(wire.UnknownOp, wire.BadRequest), wire.OpHello)
	echo := c.ask(wire.OpPing, "t", 12.25)
	if t, _ := compare.Number(echo.Get("t")); t != 12.25 {
		failf("ping with t 12.25 gives t %v", echo.Get("t"))
	}
	if _, ok := compare.Number(echo.Get("qlen")); !ok {
		failf("ping gives qlen %v, want a number", echo.Get("qlen"))
	}
}
