package server

import (
	"math"
	"slices"

	"clustergym/bridge/wire"
)

// needs returns the feature that an operation needs.
func needs(op string) features {
	switch op {
	case wire.OpSend, wire.OpRecv:
		return featAsync
	case wire.OpSnapshot, wire.OpRestore:
		return featSnapshot
	case wire.OpRender:
		return featRender
	case wire.OpSimulate, wire.OpDecide:
		return featSchedule
	}
	return 0
}

// ofHandle lists the operations that name a handle.
var ofHandle = []string{
	wire.OpStep, wire.OpReset, wire.OpSend, wire.OpRecv, wire.OpMasks, wire.OpCall, wire.OpRender, wire.OpSnapshot,
	wire.OpRestore, wire.OpDecide, wire.OpClose,
}

// opens reports whether an operation gives what it makes a number of its own, by which later requests call it.
func opens(op string) bool { return op == wire.OpOpen || op == wire.OpSimulate }

// lacks returns the error of an operation whose feature was not granted, nil if it was.
func (s *session) lacks(op string) *wire.Error {
	missing := needs(op) &^ s.feat
	if missing == 0 {
		return nil
	}
	return wire.Errorf(wire.Unsupported, "%s needs feature %q, which was not agreed on in hello", op, missing.names()[0])
}

// take decodes a message of connection c, and queues it for its lane or answers it. It owns f from then on. If it
// returns a lane, the reader must execute the request there (lane.run). An error ends the reader.
func (s *session) take(c *conn, f *frame) (*lane, request, error) {
	m, e := c.dec.Decode(f.b)
	if e != nil {
		c.bad++
		s.srv.release(f)
		s.answer(c, 0, e, false)
		if c.bad == maxBad {
			return nil, request{}, c.shut(wire.CloseProtocol, "three unreadable messages in a row")
		}
		return nil, request{}, nil
	}
	c.bad = 0
	if err := c.charge(f, decodedBytes(m)); err != nil {
		s.srv.release(f)
		return nil, request{}, err
	}
	id, e := m.Int("id", 0, 1, math.MaxUint32)
	if e == nil && id == 0 {
		e = &wire.Error{Code: wire.BadRequest, Msg: "field id", Got: "nothing",
			Want: "a number that grows with every request"}
	}
	if e != nil {
		s.answer(c, 0, e, false)
		s.srv.release(f)
		return nil, request{}, nil
	}
	r := request{id: uint32(id), m: m, f: f}
	l, err := s.request(c, &r)
	return l, r, err
}

// request does the work of take for a message with an id.
func (s *session) request(c *conn, r *request) (*lane, error) {
	s.mu.Lock()
	if s.conn != c {
		s.mu.Unlock()
		s.srv.release(r.f)
		return nil, errShut
	}
	if r.id <= s.last {
		s.repeated(c, *r)
		return nil, nil
	}
	s.last = r.id
	var e *wire.Error
	if r.op, e = r.m.Str("op", ""); e == nil {
		switch {
		case s.bye != 0:
			e = wire.Errorf(wire.BadRequest, "a request after bye")
		case r.op == "":
			e = &wire.Error{Code: wire.BadRequest, Msg: "field op", Got: "nothing", Want: "the name of an operation"}
		case r.op == wire.OpHello:
			e = wire.Errorf(wire.BadRequest, "this session has begun: hello comes only once")
		case r.op == wire.OpPing:
			s.ping(c, *r)
			return nil, nil
		case r.op == wire.OpBye:
			s.bye = r.id
			part := s.leaving()
			s.mu.Unlock()
			s.srv.release(r.f)
			if part {
				s.part(c)
			}
			return nil, nil
		}
	}
	var l *lane
	if e == nil && opens(r.op) {
		if e = s.lacks(r.op); e == nil {
			l, e = s.newLane()
		}
	} else {
		l, e = s.lane(r, e)
	}
	if l != nil && len(l.waiting) == s.srv.cfg.MaxInflight {
		e = wire.Errorf(wire.Busy, "handle %d has %d unanswered requests, and takes no more", l.h, len(l.waiting))
		l = nil
	}
	if l != nil {
		mine := l.claim(r)
		if !mine {
			l.push(*r)
		}
		s.mu.Unlock()
		if mine {
			return l, nil
		}
		return nil, nil
	}
	if e != nil && e.Code == wire.Busy {
		s.busy(r.id)
	}
	s.mu.Unlock()
	if e != nil {
		s.answer(c, r.id, e, e.Code != wire.Busy)
	} else { // closing a closed handle again
		c.w.Reset()
		c.w.Reply(r.id, wire.OpClose, 0)
		s.send(c, r.id, c.w)
	}
	s.srv.release(r.f)
	return nil, nil
}

// lane returns the lane of a request, and the error that answers it in its turn. Without a lane the error answers it at
// once; no lane and no error mean that the handle was closed before.
func (s *session) lane(r *request, e *wire.Error) (*lane, *wire.Error) {
	if e == nil && !slices.Contains(ofHandle, r.op) {
		e = wire.Errorf(wire.UnknownOp, "there is no operation %.40q", r.op)
	}
	h, wrong := r.m.Int("h", 0, 1, math.MaxUint32)
	l := s.lanes[uint32(h)]
	switch {
	case e != nil:
	case wrong != nil:
		e = wrong
	case h == 0:
		e = &wire.Error{Code: wire.BadRequest, Msg: "field h", Got: "nothing", Want: "the number of a handle"}
	case l == nil && r.op == wire.OpClose && uint32(h) <= s.handles:
		return nil, nil
	case l == nil:
		e = wire.Errorf(wire.BadHandle, "handle %d is not open", h)
	default:
		e = s.lacks(r.op)
	}
	r.refused = e
	return l, e
}

// ping answers a ping. It unlocks the session.
func (s *session) ping(c *conn, r request) {
	queue := s.pending
	s.mu.Unlock()
	c.w.Reset()
	c.w.Answer(r.id, wire.OpPing, wire.MapOf("t", r.m.Get("t"), "qlen", queue))
	if most := s.srv.cfg.MaxFrameOut; c.w.Len() > most {
		s.answer(c, r.id, wire.Errorf(wire.TooLarge, "a reply of %d bytes, above frame_out, %d", c.w.Len(), most), true)
	} else {
		s.send(c, r.id, c.w)
	}
	c.w.Trim(keptFrame)
	s.srv.release(r.f)
}

// repeated answers a request whose id was used already. It unlocks the session.
func (s *session) repeated(c *conn, r request) {
	var b []byte
	busy := false
	if r.id <= s.floor {
		for _, l := range s.lanes {
			if slices.Contains(l.waiting, r.id) {
				s.mu.Unlock()
				s.srv.release(r.f)
				return // the earlier request is still waiting, and its reply answers both
			}
		}
		b = s.find(r.id)
		busy = slices.Contains(s.busied, r.id)
	}
	s.mu.Unlock()
	s.srv.release(r.f)
	switch {
	case b != nil:
		c.write(b)
	case busy:
		s.answer(c, r.id,
			wire.Errorf(wire.Busy, "this request was refused before the connection was lost: send it with a new id"), false)
	default:
		s.answer(c, r.id, &wire.Error{
			Code: wire.BadRequest, Msg: "field id", Got: "a number that is not above all before it, and whose reply is not kept",
			Want: "one that grows with every request",
		}, false)
	}
}

// busy notes that request id had no effect.
func (s *session) busy(id uint32) {
	const most = 64
	if len(s.busied) == most {
		s.busied = slices.Delete(s.busied, 0, 1)
	}
	s.busied = append(s.busied, id)
}

// answer sends an error reply that belongs to no lane, and keeps it if keep is set.
func (s *session) answer(c *conn, id uint32, e *wire.Error, keep bool) {
	s.srv.met.failed(e.Code)
	if e.Code == wire.Busy {
		e.Retry = true
	}
	c.w.Reset()
	e.Reply(c.w, id)
	if keep {
		s.send(c, id, c.w)
	} else {
		c.write(c.w.Bytes())
	}
}

// send sends a reply that belongs to no lane, and keeps a copy.
func (s *session) send(c *conn, id uint32, w *wire.Writer) {
	s.mu.Lock()
	s.keepLoose(id, w.Bytes())
	s.mu.Unlock()
	c.write(w.Bytes())
}

// leaving reports whether it is time to say bye, with part. The caller holds the session's lock.
func (s *session) leaving() bool {
	if s.bye == 0 || s.pending > 0 || s.parted {
		return false
	}
	s.parted = true
	return true
}

// part sends the reply to bye and closes the connection.
func (s *session) part(c *conn) {
	w := wire.NewWriter(s.enc)
	s.mu.Lock()
	w.Reply(s.bye, wire.OpBye, 0)
	s.mu.Unlock()
	c.write(w.Bytes())
	_ = c.shut(wire.CloseBye, parting)
}
