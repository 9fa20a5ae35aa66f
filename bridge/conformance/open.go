package conformance

import (
	"math"
	"strings"
	"time"

	"clustergym/bridge/wire"
)

func (s *suite) openChecksItsFields() {
	c := s.dial()
	c.refuse(only(wire.UnknownEnv), wire.OpOpen, "env", "no such environment")
	c.refuse(only(wire.BadKwargs), wire.OpOpen, "env", s.Env, "kwargs", m("no such kwarg", 1))
	for _, x := range []struct {
		key string
		v   any
	}{
		{"env", 7}, {"env", nil}, {"n", 0}, {"n", -1}, {"n", 1.5}, {"n", "two"}, {"n", math.NaN()}, {"kwargs", []any{1}},
		{"autoreset", "sometimes"}, {"autoreset", 1}, {"obs", "pixels"}, {"mask", "info"}, {"mask", []string{"elsewhere"}},
		{"invalid", "shrug"}, {"info", "everything"}, {"info", []string{"no such info"}}, {"recv", "some"}, {"batch", 0},
		{"render_mode", 3},
	} {
		fields := merge(m("env", s.Env, "n", 2), m(x.key, x.v))
		if x.key == "batch" {
			fields = append(fields, m("recv", "any")...)
		}
		e := c.refuse(only(wire.BadRequest), wire.OpOpen, list(fields)...)
		if !strings.Contains(e.Error(), x.key) {
			failf("open with %s %v: the error does not name the field: %v", x.key, x.v, &e)
		}
	}
	c.alive()
}

func (s *suite) handlesOpenAndClose() {
	c := s.dial()
	p := s.openOn(c, 2)
	for _, k := range []string{"obs_space", "act_space", "spec", "meta"} {
		if _, ok := p.open.Get(k).(wire.Map); !ok {
			failf("the reply to open has no %s", k)
		}
	}
	spec, _ := p.open.Sub("spec")
	for _, k := range []string{
		"id", "version", "max_episode_steps", "reward_threshold", "reward_range", "nondeterministic", "scenario_sha",
	} {
		if !spec.Has(k) {
			failf("spec has no %s", k)
		}
	}
	if spec.Get("nondeterministic") != false {
		failf("nondeterministic is %v, want false", spec.Get("nondeterministic"))
	}
	q := s.openOn(c, 1)
	if p.h == q.h {
		failf("two handles have the same number %d", p.h)
	}
	p.reset(1)
	q.reset(2)
	p.ask(wire.OpClose)
	s.part("closing twice")
	p.ask(wire.OpClose)
	s.part("after close")
	for _, op := range []string{wire.OpStep, wire.OpReset, wire.OpMasks, wire.OpSnapshot} {
		p.refuse(only(wire.BadHandle), op)
	}
	for _, h := range []any{0, p.h + 1000, -1, "1", 1.5, nil, uint64(1) << 40} {
		c.refuse(only(wire.BadHandle, wire.BadRequest), wire.OpReset, "h", h)
	}
	s.part("another handle after close")
	q.step(make([]int, len(q.sizes)))
	s.part("open after close")
	s.openOn(c, 3).reset(nil)
}

func (s *suite) openIsBounded() {
	c := s.dial()
	most := c.limit("envs")
	c.refuse(only(wire.Capacity, wire.TooLarge), wire.OpOpen, "env", s.Env, "n", int64(most)+1)
	c.refuse(only(wire.Capacity, wire.BadRequest, wire.TooLarge), wire.OpOpen, "env", s.Env, "n", int64(1)<<40)
	handles := int(c.limit("handles"))
	if handles > 300 {
		skipf("%d handles are too many to try", handles)
	}
	var last *player
	for range handles {
		last = s.openOn(c, 1)
	}
	c.refuse(only(wire.Capacity), wire.OpOpen, "env", s.Env)
	last.ask(wire.OpClose)
	s.openOn(c, 1)
}

func (s *suite) clientsDoNotMeet() {
	p := s.start(2)
	p.reset(4)
	q := s.start(2)
	// A handle belongs to its session. The other session has handles of its own, perhaps with the same numbers.
	if p.h != q.h {
		q.conn.refuse(only(wire.BadHandle), wire.OpReset, "h", p.h)
	}
	q.refuse(only(wire.NeedsReset), wire.OpStep, "a", q.actions(make([]int, 2*len(q.sizes))))
	q.reset(4)
	s.part("two clients with the same seed and actions")
	for range 20 {
		stepAlike(p, q, p.random(s.draw))
	}
	s.part("after the other client has closed")
	q.ask(wire.OpClose)
	p.step(p.random(s.draw))
}

func (s *suite) vanishedClientsFreeTheirPlace() {
	c := s.dial("feat", []string{})
	most := int(c.limit("sessions"))
	if most > 300 {
		skipf("%d sessions are too many to try", most)
	}
	// Sessions are opened until one is refused. Sessions that others end meanwhile are replaced too.
	full := []*conn{c}
	for {
		c := s.connect(wire.Ext, s.Token)
		err := attempt(func() { c.greet(hello(wire.Ext, "feat", []string{})) })
		if err == nil {
			if full = append(full, c); len(full) > most {
				failf("%d sessions at once, and %d are the limit", len(full), most)
			}
			continue
		}
		c.closed(4429)
		if len(full) < most/2 { // other clients may have sessions
			failf("session %d of %d: %w", len(full)+1, most, err)
		}
		break
	}
	// Two clients vanish, one of them with a request under way.
	p := s.openOn(full[0], 4)
	p.post(wire.OpReset, "h", p.h)
	full[0].drop()
	full[1].drop()
	for i := range 2 {
		end := time.Now().Add(s.Wait)
		for {
			err := attempt(func() { s.dial("feat", []string{}) })
			if err == nil {
				break
			}
			if s.ctx.Err() != nil || time.Now().After(end) {
				failf("place %d of two vanished clients is not free after %v: %w", i+1, s.Wait, err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}
