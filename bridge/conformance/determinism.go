package conformance

import (
	"errors"
	"fmt"
	"slices"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

func (s *suite) encodingsMeanTheSame() error {
	const n = 3
	var all []*player
	for _, enc := range []wire.Encoding{wire.Ext, wire.MPNP, wire.JSON} {
		c, err := s.dialIn(enc)
		if err != nil {
			return fmt.Errorf("%v: %w", enc, err)
		}
		if got := c.welcome.Get("enc"); got != enc.String() {
			return fmt.Errorf("%v was offered, and %v granted", enc, got)
		}
		p, err := s.openOn(c, n, "autoreset", "same_step")
		if err != nil {
			return fmt.Errorf("%v: %w", enc, err)
		}
		all = append(all, p)
	}
	ask := func(what string, op string, fields func(p *player) []any) (wire.Map, error) {
		var replies []wire.Map
		for _, p := range all {
			reply, err := p.ask(op, fields(p)...)
			if err != nil {
				return nil, fmt.Errorf("%v: %s: %w", p.enc, what, err)
			}
			replies = append(replies, slices.DeleteFunc(slices.Clone(reply), func(e wire.Pair) bool { return e.Key == "re" }))
		}
		for k := 1; k < len(replies); k++ {
			if err := compare.Alike(op, replies[0], replies[k]); err != nil {
				return nil, fmt.Errorf("%s in %v, and in %v: %w", what, all[0].enc, all[k].enc, err)
			}
		}
		return replies[0], nil
	}
	strip := func(m wire.Map) wire.Map {
		return slices.DeleteFunc(slices.Clone(m), func(e wire.Pair) bool { return e.Key == "re" || e.Key == "h" })
	}
	for _, p := range all[1:] {
		if err := compare.Alike("open", strip(all[0].open), strip(p.open)); err != nil {
			return fmt.Errorf("open in %v, and in %v: %w", all[0].enc, p.enc, err)
		}
	}
	reply, err := ask("reset", wire.OpReset, func(*player) []any { return []any{"seed", 9} })
	if err != nil {
		return err
	}
	mask, err := all[0].masks(reply, n)
	if err != nil {
		return err
	}
	ended := false
	for k := 0; k < 60 || !ended && k < 400; k++ {
		a, err := all[0].legal(s.draw, mask)
		if err != nil {
			return err
		}
		reply, err := ask(fmt.Sprintf("step %d", k), wire.OpStep, func(p *player) []any { return []any{"a", p.actions(a)} })
		if err != nil {
			return err
		}
		x, err := all[0].readStep(reply, n)
		if err != nil {
			return err
		}
		mask, ended = x.mask, ended || x.fin != nil
	}
	_, err = ask("masks", wire.OpMasks, func(*player) []any { return []any{"ids", []int{2, 0}} })
	return err
}

func (s *suite) rowsDoNotDependOnTheBatch() error {
	const n, seed, steps = 7, 300, 80
	c, err := s.dial()
	if err != nil {
		return err
	}
	big, err := s.openOn(c, n)
	if err != nil {
		return err
	}
	split, err := s.openOn(c, n)
	if err != nil {
		return err
	}
	x, err := big.ask(wire.OpReset, "seed", seed)
	if err != nil {
		return err
	}
	y, err := split.ask(wire.OpReset, "seed", seed)
	if err != nil {
		return err
	}
	if err := compare.Same(x, y); err != nil {
		return err
	}
	mask, err := big.masks(x, n)
	if err != nil {
		return err
	}
	singles := make([]*player, n)
	for i := range n {
		if singles[i], err = s.openOn(c, 1); err != nil {
			return err
		}
		reply, err := singles[i].ask(wire.OpReset, "seed", seed+i)
		if err != nil {
			return err
		}
		if err := sameRow(reply, 0, 1, x, i, n); err != nil {
			return fmt.Errorf("environment %d alone, after reset: %w", i, err)
		}
	}
	over := make([]bool, n)
	for k := range steps {
		a := make([]int, n*len(big.sizes))
		for i := range n {
			if over[i] {
				continue // its action is ignored
			}
			w := mask.Shape[1]
			legal, err := big.legal(s.draw, compare.Column{Shape: []int{1, w}, V: mask.V[i*w : (i+1)*w]})
			if err != nil {
				return err
			}
			copy(a[i*len(big.sizes):], legal)
		}
		st, err := big.step(a)
		if err != nil {
			return err
		}
		// The same rows in two requests, in random order.
		cutAt := 1 + s.draw.IntN(n-1)
		order := s.draw.Perm(n)
		for _, ids := range [][]int{order[:cutAt], order[cutAt:]} {
			var some []int
			for _, i := range ids {
				some = append(some, a[i*len(big.sizes):(i+1)*len(big.sizes)]...)
			}
			reply, err := split.ask(wire.OpStep, "ids", ids, "a", split.actions(some))
			if err != nil {
				return err
			}
			echo, e := reply.Ints("ids")
			if e != nil || len(echo) != len(ids) {
				return fmt.Errorf("step of %v echoes %v", ids, reply.Get("ids"))
			}
			for j, i := range ids {
				if int(echo[j]) != i {
					return fmt.Errorf("step of %v echoes %v", ids, echo)
				}
				if err := sameRow(reply, j, len(ids), st.reply, i, n); err != nil {
					return fmt.Errorf("step %d, environment %d in a request of %d: %w", k, i, len(ids), err)
				}
			}
		}
		for i := range n {
			reply, err := singles[i].ask(wire.OpStep, "a", singles[i].actions(a[i*len(big.sizes):(i+1)*len(big.sizes)]))
			if err != nil {
				return err
			}
			if err := sameRow(reply, 0, 1, st.reply, i, n); err != nil {
				return fmt.Errorf("step %d, environment %d alone: %w", k, i, err)
			}
		}
		mask, over = st.mask, st.over
	}
	return nil
}

func (s *suite) sendAndRecv() error {
	const n, batch, steps = 6, 2, 40
	c, err := s.dial()
	if err != nil {
		return err
	}
	if !c.has("async") {
		return skip("the server does not grant async")
	}
	plain, err := s.dial("feat", []string{})
	if err != nil {
		return err
	}
	if _, err := plain.refuse(only(wire.Unsupported), wire.OpOpen, "env", s.Env, "n", 2, "recv", "any", "batch", 1, "kwargs", mapOf(s.Kwargs)); err != nil {
		return err
	}
	singles := make([]*player, n)
	mask := make([]compare.Column, n)
	for i := range n {
		if singles[i], err = s.openOn(c, 1); err != nil {
			return err
		}
		reply, err := singles[i].ask(wire.OpReset, "seed", 60+i)
		if err != nil {
			return err
		}
		if mask[i], err = singles[i].masks(reply, 1); err != nil {
			return err
		}
	}
	p, err := s.openOn(c, n, "recv", "any", "batch", batch)
	if err != nil {
		return err
	}
	if _, err := p.refuse(only(wire.NotPending), wire.OpRecv); err != nil {
		return err
	}
	if _, err := p.refuse(only(wire.NeedsReset), wire.OpSend, "a", p.actions(make([]int, n*len(p.sizes)))); err != nil {
		return err
	}
	if err := p.reset(60); err != nil {
		return err
	}
	var last [n][]int
	var over [n]bool
	choose := func(i int) error {
		last[i] = make([]int, len(p.sizes))
		if over[i] {
			return nil
		}
		var err error
		last[i], err = p.legal(s.draw, mask[i])
		return err
	}
	send := func(ids []int) error {
		var a []int
		for _, i := range ids {
			if err := choose(i); err != nil {
				return err
			}
			a = append(a, last[i]...)
		}
		reply, err := p.ask(wire.OpSend, "ids", ids, "a", p.actions(a))
		if err == nil && len(reply) != 2 {
			err = fmt.Errorf("send was answered with %s, want nothing beside re and op", compare.Brief(reply))
		}
		return err
	}
	all := []int{0, 1, 2, 3, 4, 5}
	if err := send(all); err != nil {
		return err
	}
	if _, err := p.refuse(only(wire.BadRequest, wire.Busy), wire.OpSend, "ids", []int{3}, "a", p.actions(make([]int, len(p.sizes)))); err != nil {
		return fmt.Errorf("an environment that is out: %w", err)
	}
	done := [n]int{}
	for total := 0; total < n*steps; {
		reply, err := p.ask(wire.OpRecv)
		if err != nil {
			return err
		}
		ids, e := reply.Ints("ids")
		if e != nil || len(ids) == 0 || len(ids) > batch {
			return fmt.Errorf("recv gives environments %v, want 1 to %d", reply.Get("ids"), batch)
		}
		if _, err := p.readStep(reply, len(ids)); err != nil {
			return err
		}
		var again []int
		for j, id := range ids {
			i := int(id)
			if i < 0 || i >= n || slices.Contains(again, i) || done[i] == steps {
				return fmt.Errorf("recv gives environments %v, and %d is not out", ids, i)
			}
			ref, err := singles[i].step(last[i])
			if err != nil {
				return err
			}
			if err := sameRow(reply, j, len(ids), ref.reply, 0, 1); err != nil {
				return fmt.Errorf("environment %d, step %d: %w", i, done[i], err)
			}
			mask[i], over[i] = ref.mask, ref.over[0]
			total++
			if done[i]++; done[i] < steps {
				again = append(again, i)
			}
		}
		if len(again) > 0 {
			if err := send(again); err != nil {
				return err
			}
		}
	}
	if _, err := p.refuse(only(wire.NotPending), wire.OpRecv); err != nil {
		return errors.Join(errors.New("after the last recv"), err)
	}
	return nil
}
