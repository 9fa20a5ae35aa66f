package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

// resumable begins a session that can be resumed.
func (s *suite) resumable() (*conn, error) {
	c, err := s.dial()
	if err != nil {
		return nil, err
	}
	if !c.has("resume") || c.limit("resume_s") == 0 {
		return nil, skip("the server does not grant resume")
	}
	return c, nil
}

// again connects and resumes the session of c. last has, by handle, the id of the last reply received.
func (s *suite) again(c *conn, last map[int64]int64) (*conn, error) {
	var seen wire.Map
	for _, h := range slices.Sorted(maps.Keys(last)) {
		seen = append(seen, wire.Pair{Key: fmt.Sprint(h), Value: last[h]})
	}
	d, _, err := s.upgrade(c.enc, s.Token)
	if err != nil {
		return nil, err
	}
	err = d.greet(hello(c.enc, "resume", m("session", c.welcome.Get("session"), "token", c.welcome.Get("resume"), "last", seen)))
	if err != nil {
		return nil, err
	}
	d.id = c.id
	return d, nil
}

func (s *suite) lostSessionsResume() error {
	c, err := s.resumable()
	if err != nil {
		return err
	}
	p, err := s.openOn(c, 2)
	if err != nil {
		return err
	}
	twin, err := s.start(2)
	if err != nil {
		return err
	}
	if err := first(p.reset(70), twin.reset(70)); err != nil {
		return err
	}
	for k := range 4 {
		a := p.random(s.draw)
		x, err := p.step(a)
		if err != nil {
			return err
		}
		y, err := twin.step(a)
		if err != nil {
			return err
		}
		if err := compare.Same(x.reply, y.reply); err != nil {
			return fmt.Errorf("after %d resumes: %w", k, err)
		}
		if err := p.drop(); err != nil {
			return err
		}
		d, err := s.again(p.conn, map[int64]int64{p.h: p.id})
		if err != nil {
			return err
		}
		for _, key := range []string{"session", "resume"} {
			if d.welcome.Get(key) != p.welcome.Get(key) {
				return fmt.Errorf("%s is %v after the resume, was %v", key, d.welcome.Get(key), p.welcome.Get(key))
			}
		}
		if err := d.alive(); err != nil { // nothing was sent again before the answer
			return err
		}
		p.conn = d
	}
	return nil
}

func (s *suite) stepsHappenOnce() error {
	c, err := s.resumable()
	if err != nil {
		return err
	}
	p, err := s.openOn(c, 2)
	if err != nil {
		return err
	}
	twin, err := s.start(2)
	if err != nil {
		return err
	}
	if err := first(p.reset(71), twin.reset(71)); err != nil {
		return err
	}
	for k := range 6 {
		had := p.id
		a := p.random(s.draw)
		id, err := p.post(wire.OpStep, "h", p.h, "a", p.actions(a))
		if err != nil {
			return err
		}
		// The reply is on its way or has arrived, and is never read.
		time.Sleep(time.Duration(k) * 2 * time.Millisecond)
		if err := p.drop(); err != nil {
			return err
		}
		y, err := twin.step(a)
		if err != nil {
			return err
		}
		d, err := s.again(p.conn, map[int64]int64{p.h: had})
		if err != nil {
			return err
		}
		p.conn = d
		// The client cannot know whether the request arrived, and sends it again with the same id.
		if err := d.write(m("op", wire.OpStep, "id", id, "h", p.h, "a", p.actions(a))); err != nil {
			return err
		}
		ping, err := d.post(wire.OpPing, "t", 1)
		if err != nil {
			return err
		}
		answers := 0
		for done := false; !done; {
			reply, err := d.next()
			if err != nil {
				return fmt.Errorf("after the resume, with %d answers to the step: %w", answers, err)
			}
			switch re, _ := compare.Number(reply.Get("re")); re {
			case float64(ping):
				done = answers > 0
				if !done {
					ping = -1 // it may overtake the step
				}
			case float64(id):
				answers++
				if err := compare.Same(reply, y.reply); err != nil {
					return fmt.Errorf("answer %d to the step: %w", answers, err)
				}
				done = ping < 0
			default:
				return fmt.Errorf("after the resume came %s", compare.Brief(reply))
			}
		}
		// A second answer, sent because of the resume, may come after the ping's.
		if err := p.drain(id); err != nil {
			return err
		}
	}
	a := p.random(s.draw)
	x, err := p.step(a)
	if err != nil {
		return err
	}
	y, err := twin.step(a)
	if err != nil {
		return err
	}
	if err := compare.Same(x.reply, y.reply); err != nil {
		return fmt.Errorf("the step after: %w", err)
	}
	return nil
}

// drain reads further answers to request id until a ping is answered.
func (c *conn) drain(id int64) error {
	ping, err := c.post(wire.OpPing, "t", 1)
	if err != nil {
		return err
	}
	for {
		reply, err := c.next()
		if err != nil {
			return err
		}
		switch re, _ := compare.Number(reply.Get("re")); re {
		case float64(ping):
			return nil
		case float64(id):
		default:
			return fmt.Errorf("waiting for a ping came %s", compare.Brief(reply))
		}
	}
}

func (s *suite) secondAttachTakesOver() error {
	c, err := s.resumable()
	if err != nil {
		return err
	}
	p, err := s.openOn(c, 1)
	if err != nil {
		return err
	}
	if err := p.reset(1); err != nil {
		return err
	}
	last := map[int64]int64{p.h: c.id}
	d, err := s.again(c, last)
	if err != nil {
		return err
	}
	if _, err := c.closed(4409); err != nil {
		return fmt.Errorf("the first connection: %w", err)
	}
	e, err := s.again(d, last)
	if err != nil {
		return err
	}
	if _, err := d.closed(4409); err != nil {
		return fmt.Errorf("the second connection: %w", err)
	}
	c.left, d.left = true, true
	p.conn = e
	_, err = p.step(make([]int, len(p.sizes)))
	return err
}

func (s *suite) goneSessionsStayGone() error {
	c, err := s.resumable()
	if err != nil {
		return err
	}
	var reasons []string
	gone := func(what string, session, token any) error {
		d, _, err := s.upgrade(wire.Ext, s.Token)
		if err != nil {
			return err
		}
		if err := d.write(hello(wire.Ext, "resume", m("session", session, "token", token, "last", m()))); err != nil {
			return err
		}
		reason, err := d.closed(4410)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		reasons = append(reasons, reason)
		return nil
	}
	session, token := c.welcome.Get("session"), c.welcome.Get("resume")
	if err := first(
		gone("a session that never was", "no-such-session", token),
		gone("a wrong token", session, "no-such-token"),
		gone("an empty token", session, ""),
	); err != nil {
		return err
	}
	if err := c.alive(); err != nil {
		return fmt.Errorf("a wrong token disturbs the session: %w", err)
	}
	if _, err := c.ask(wire.OpBye); err != nil {
		return err
	}
	if _, err := c.closed(1000); err != nil {
		return err
	}
	c.left = true
	if err := gone("a session after bye", session, token); err != nil {
		return err
	}
	if c, err = s.resumable(); err != nil {
		return err
	}
	if err := c.writeAs(1, []byte("text")); err != nil {
		return err
	}
	if _, err := c.closed(1003); err != nil {
		return err
	}
	c.left = true
	if err := gone("a session that was closed with 1003", c.welcome.Get("session"), c.welcome.Get("resume")); err != nil {
		return err
	}
	// A session that never asked for the feature.
	if c, err = s.dial("feat", []string{}); err != nil {
		return err
	}
	session = c.welcome.Get("session")
	if err := c.drop(); err != nil {
		return err
	}
	if err := gone("a session without the feature", session, "x"); err != nil {
		return err
	}
	for _, r := range reasons[1:] {
		if r != reasons[0] {
			return errors.New("sessions that are unknown and tokens that are wrong are told apart")
		}
	}
	return nil
}
