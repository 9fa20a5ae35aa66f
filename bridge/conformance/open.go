package conformance

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

func (s *suite) openChecksItsFields() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	if _, err := c.refuse(only(wire.UnknownEnv), wire.OpOpen, "env", "no such environment"); err != nil {
		return err
	}
	if _, err := c.refuse(only(wire.BadKwargs), wire.OpOpen, "env", s.Env, "kwargs", m("no such kwarg", 1)); err != nil {
		return err
	}
	for _, x := range []struct {
		key string
		v   any
	}{
		{"env", 7}, {"env", nil}, {"n", 0}, {"n", -1}, {"n", 1.5}, {"n", "two"}, {"n", math.NaN()}, {"kwargs", []any{1}}, {"autoreset", "sometimes"},
		{"autoreset", 1}, {"obs", "pixels"}, {"mask", "info"}, {"mask", []string{"elsewhere"}}, {"invalid", "shrug"}, {"info", "everything"},
		{"info", []string{"no such info"}}, {"recv", "some"}, {"batch", 0}, {"render_mode", 3},
	} {
		fields := merge(m("env", s.Env, "n", 2), m(x.key, x.v))
		if x.key == "batch" {
			fields = append(fields, m("recv", "any")...)
		}
		e, err := c.refuse(only(wire.BadRequest), wire.OpOpen, list(fields)...)
		if err != nil {
			return err
		}
		if !strings.Contains(e.Error(), x.key) {
			return fmt.Errorf("open with %s %v: the error does not name the field: %v", x.key, x.v, e)
		}
	}
	return c.alive()
}

func (s *suite) handlesOpenAndClose() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	p, err := s.openOn(c, 2)
	if err != nil {
		return err
	}
	for _, k := range []string{"obs_space", "act_space", "spec", "meta"} {
		if _, ok := p.open.Get(k).(wire.Map); !ok {
			return fmt.Errorf("the reply to open has no %s", k)
		}
	}
	spec, _ := p.open.Sub("spec")
	for _, k := range []string{"id", "version", "max_episode_steps", "reward_threshold", "reward_range", "nondeterministic", "scenario_sha"} {
		if !spec.Has(k) {
			return fmt.Errorf("spec has no %s", k)
		}
	}
	if spec.Get("nondeterministic") != false {
		return fmt.Errorf("nondeterministic is %v, want false", spec.Get("nondeterministic"))
	}
	q, err := s.openOn(c, 1)
	if err != nil {
		return err
	}
	if p.h == q.h {
		return fmt.Errorf("two handles have the same number %d", p.h)
	}
	if err := first(p.reset(1), q.reset(2)); err != nil {
		return err
	}
	if _, err := p.ask(wire.OpClose); err != nil {
		return err
	}
	if _, err := p.ask(wire.OpClose); err != nil {
		return fmt.Errorf("closing twice: %w", err)
	}
	for _, op := range []string{wire.OpStep, wire.OpReset, wire.OpMasks, wire.OpSnapshot} {
		if _, err := p.refuse(only(wire.BadHandle), op); err != nil {
			return fmt.Errorf("after close: %w", err)
		}
	}
	for _, h := range []any{0, p.h + 1000, -1, "1", 1.5, nil, uint64(1) << 40} {
		if _, err := c.refuse(only(wire.BadHandle, wire.BadRequest), wire.OpReset, "h", h); err != nil {
			return err
		}
	}
	if _, err := q.step(make([]int, len(q.sizes))); err != nil {
		return fmt.Errorf("another handle after close: %w", err)
	}
	again, err := s.openOn(c, 3)
	if err != nil {
		return fmt.Errorf("open after close: %w", err)
	}
	return again.reset(nil)
}

func (s *suite) openIsBounded() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	most := c.limit("envs")
	if _, err := c.refuse(only(wire.Capacity, wire.TooLarge), wire.OpOpen, "env", s.Env, "n", int64(most)+1); err != nil {
		return err
	}
	if _, err := c.refuse(only(wire.Capacity, wire.BadRequest, wire.TooLarge), wire.OpOpen, "env", s.Env, "n", int64(1)<<40); err != nil {
		return err
	}
	handles := int(c.limit("handles"))
	if handles > 300 {
		return skip(fmt.Sprintf("%d handles are too many to try", handles))
	}
	var last *player
	for range handles {
		if last, err = s.openOn(c, 1); err != nil {
			return err
		}
	}
	if _, err := c.refuse(only(wire.Capacity), wire.OpOpen, "env", s.Env); err != nil {
		return err
	}
	if _, err := last.ask(wire.OpClose); err != nil {
		return err
	}
	_, err = s.openOn(c, 1)
	return err
}

func (s *suite) clientsDoNotMeet() error {
	p, err := s.start(2)
	if err != nil {
		return err
	}
	if err := p.reset(4); err != nil {
		return err
	}
	q, err := s.start(2)
	if err != nil {
		return err
	}
	// A handle belongs to its session. The other session has handles of its own, perhaps with the same numbers.
	if p.h != q.h {
		if _, err := q.conn.refuse(only(wire.BadHandle), wire.OpReset, "h", p.h); err != nil {
			return err
		}
	}
	if _, err := q.refuse(only(wire.NeedsReset), wire.OpStep, "a", q.actions(make([]int, 2*len(q.sizes)))); err != nil {
		return err
	}
	if err := q.reset(4); err != nil {
		return err
	}
	for range 20 {
		a := p.random(s.draw)
		x, err := p.step(a)
		if err != nil {
			return err
		}
		y, err := q.step(a)
		if err != nil {
			return err
		}
		if err := compare.Same(x.reply, y.reply); err != nil {
			return fmt.Errorf("two clients with the same seed and actions: %w", err)
		}
	}
	_, err = q.ask(wire.OpClose)
	if err != nil {
		return err
	}
	_, err = p.step(p.random(s.draw))
	return err
}

func (s *suite) vanishedClientsFreeTheirPlace() error {
	c, err := s.dial("feat", []string{})
	if err != nil {
		return err
	}
	most := int(c.limit("sessions"))
	if most > 300 {
		return skip(fmt.Sprintf("%d sessions are too many to try", most))
	}
	// Sessions are opened until one is refused. Sessions that others end meanwhile are replaced too.
	full := []*conn{c}
	for {
		c, _, err := s.upgrade(wire.Ext, s.Token)
		if err != nil {
			return err
		}
		err = c.greet(hello(wire.Ext, "feat", []string{}))
		if err == nil {
			if full = append(full, c); len(full) > most {
				return fmt.Errorf("%d sessions at once, and %d are the limit", len(full), most)
			}
			continue
		}
		if _, err := c.closed(4429); err != nil {
			return err
		}
		if len(full) < most/2 { // other clients may have sessions
			return fmt.Errorf("session %d of %d: %w", len(full)+1, most, err)
		}
		break
	}
	// Two clients vanish, one of them with a request under way.
	p, err := s.openOn(full[0], 4)
	if err != nil {
		return err
	}
	if _, err := p.post(wire.OpReset, "h", p.h); err != nil {
		return err
	}
	if err := first(full[0].drop(), full[1].drop()); err != nil {
		return err
	}
	for i := range 2 {
		end := time.Now().Add(s.Wait)
		for {
			_, err := s.dial("feat", []string{})
			if err == nil {
				break
			}
			if s.ctx.Err() != nil || time.Now().After(end) {
				return errors.Join(fmt.Errorf("place %d of two vanished clients is not free after %v", i+1, s.Wait), err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}
