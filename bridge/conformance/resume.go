package conformance

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

// resumable begins a session that can be resumed.
func (s *suite) resumable() *conn {
	c := s.dial()
	c.grants("resume")
	if c.limit("resume_s") == 0 {
		skipf("the server keeps no lost session")
	}
	return c
}

// again connects and resumes the session of c. last has, by handle, the id of the last reply received.
func (s *suite) again(c *conn, last map[int64]int64) *conn {
	var seen wire.Map
	for _, h := range slices.Sorted(maps.Keys(last)) {
		seen = append(seen, wire.Pair{Key: fmt.Sprint(h), Value: last[h]})
	}
	d := s.connect(c.enc, s.Token)
	d.greet(hello(c.enc,
		"resume", m("session", c.welcome.Get("session"), "token", c.welcome.Get("resume"), "last", seen)))
	d.id = c.id
	return d
}

func (s *suite) lostSessionsResume() {
	c := s.resumable()
	p := s.openOn(c, 2)
	twin := s.start(2)
	p.reset(70)
	twin.reset(70)
	for k := range 4 {
		s.part("after %d resumes", k)
		stepAlike(p, twin, p.random(s.draw))
		p.drop()
		d := s.again(p.conn, map[int64]int64{p.h: p.id})
		for _, key := range []string{"session", "resume"} {
			if d.welcome.Get(key) != p.welcome.Get(key) {
				failf("%s is %v after the resume, was %v", key, d.welcome.Get(key), p.welcome.Get(key))
			}
		}
		d.alive() // nothing was sent again before the answer
		p.conn = d
	}
}

func (s *suite) stepsHappenOnce() {
	c := s.resumable()
	p := s.openOn(c, 2)
	twin := s.start(2)
	p.reset(71)
	twin.reset(71)
	for k := range 6 {
		s.part("round %d", k)
		had := p.id
		a := p.random(s.draw)
		id := p.post(wire.OpStep, "h", p.h, "a", p.actions(a))
		// The reply is on its way or has arrived, and is never read.
		time.Sleep(time.Duration(k) * 2 * time.Millisecond)
		p.drop()
		y := twin.step(a)
		d := s.again(p.conn, map[int64]int64{p.h: had})
		p.conn = d
		// The client cannot know whether the request arrived, and sends it again with the same id.
		d.write(m("op", wire.OpStep, "id", id, "h", p.h, "a", p.actions(a)))
		ping := d.post(wire.OpPing, "t", 1)
		answers := 0
		for done := false; !done; {
			s.part("after the resume, with %d answers to the step", answers)
			reply := need(d.next())
			switch re, _ := compare.Number(reply.Get("re")); re {
			case float64(ping):
				done = answers > 0
				if !done {
					ping = -1 // it may overtake the step
				}
			case float64(id):
				answers++
				must(compare.Same(reply, y.reply))
				done = ping < 0
			default:
				failf("%s came", compare.Brief(reply))
			}
		}
		// A second answer, sent because of the resume, may come after the ping's.
		p.drain(id)
	}
	s.part("the step after")
	stepAlike(p, twin, p.random(s.draw))
}

// drain reads further answers to request id until a ping is answered.
func (c *conn) drain(id int64) {
	ping := c.post(wire.OpPing, "t", 1)
	for {
		reply := need(c.next())
		switch re, _ := compare.Number(reply.Get("re")); re {
		case float64(ping):
			return
		case float64(id):
		default:
			failf("waiting for a ping came %s", compare.Brief(reply))
		}
	}
}

func (s *suite) secondAttachTakesOver() {
	c := s.resumable()
	p := s.openOn(c, 1)
	p.reset(1)
	last := map[int64]int64{p.h: c.id}
	s.part("the first connection")
	d := s.again(c, last)
	c.closed(4409)
	s.part("the second connection")
	p.conn = s.again(d, last)
	d.closed(4409)
	c.left, d.left = true, true
	s.part("the third connection")
	p.step(make([]int, len(p.sizes)))
}

func (s *suite) goneSessionsStayGone() {
	c := s.resumable()
	var reasons []string
	gone := func(what string, session, token any) {
		s.part("%s", what)
		d := s.connect(wire.Ext, s.Token)
		d.write(hello(wire.Ext, "resume", m("session", session, "token", token, "last", m())))
		reasons = append(reasons, d.closed(4410))
	}
	session, token := c.welcome.Get("session"), c.welcome.Get("resume")
	gone("a session that never was", "no-such-session", token)
	gone("a wrong token", session, "no-such-token")
	gone("an empty token", session, "")
	s.part("a wrong token disturbs the session")
	c.alive()
	c.ask(wire.OpBye)
	c.closed(1000)
	c.left = true
	gone("a session after bye", session, token)
	c = s.resumable()
	c.writeAs(1, []byte("text"))
	c.closed(1003)
	c.left = true
	gone("a session that was closed with 1003", c.welcome.Get("session"), c.welcome.Get("resume"))
	// A session that never asked for the feature.
	c = s.dial("feat", []string{})
	session = c.welcome.Get("session")
	c.drop()
	gone("a session without the feature", session, "x")
	s.part("the reasons of all")
	for _, r := range reasons[1:] {
		if r != reasons[0] {
			failf("sessions that are unknown and tokens that are wrong are told apart: %q, %q", reasons[0], r)
		}
	}
}
