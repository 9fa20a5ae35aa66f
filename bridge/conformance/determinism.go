package conformance

import (
	"fmt"
	"slices"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

func (s *suite) encodingsMeanTheSame() {
	const n = 3
	var all []*player
	for _, enc := range []wire.Encoding{wire.Ext, wire.MPNP, wire.JSON} {
		s.part("%v", enc)
		c := s.dialIn(enc)
		if got := c.welcome.Get("enc"); got != enc.String() {
			failf("it was offered, and %v granted", got)
		}
		all = append(all, s.openOn(c, n, "autoreset", "same_step"))
	}
	alike := func(what, op string, replies []wire.Map) {
		for k, p := range all {
			s.part("%s in %v, and in %v", what, all[0].enc, p.enc)
			must(compare.Alike(op, dropping(replies[0], "re", "h"), dropping(replies[k], "re", "h")))
		}
	}
	ask := func(what, op string, fields func(p *player) []any) wire.Map {
		var replies []wire.Map
		for _, p := range all {
			s.part("%v: %s", p.enc, what)
			replies = append(replies, p.ask(op, fields(p)...))
		}
		alike(what, op, replies)
		return replies[0]
	}
	var opened []wire.Map
	for _, p := range all {
		opened = append(opened, p.open)
	}
	alike("open", "open", opened)
	mask := all[0].masks(ask("reset", wire.OpReset, func(*player) []any { return []any{"seed", 9} }), n)
	ended := false
	for k := 0; k < 60 || !ended && k < 400; k++ {
		a := all[0].legal(s.draw, mask)
		reply := ask(fmt.Sprintf("step %d", k), wire.OpStep, func(p *player) []any { return []any{"a", p.actions(a)} })
		x := all[0].readStep(reply, n)
		mask, ended = x.mask, ended || x.fin != nil
	}
	ask("masks", wire.OpMasks, func(*player) []any { return []any{"ids", []int{2, 0}} })
}

// dropping returns a map without some keys.
func dropping(m wire.Map, keys ...string) wire.Map {
	return slices.DeleteFunc(slices.Clone(m), func(e wire.Pair) bool { return slices.Contains(keys, e.Key) })
}

func (s *suite) rowsDoNotDependOnTheBatch() {
	const n, seed, steps = 7, 300, 80
	c := s.dial()
	big, split := s.openOn(c, n), s.openOn(c, n)
	x := big.ask(wire.OpReset, "seed", seed)
	must(compare.Same(x, split.ask(wire.OpReset, "seed", seed)))
	mask := big.masks(x, n)
	singles, begin := s.alone(c, n, seed)
	for i := range n {
		s.part("environment %d alone, after reset", i)
		sameRow(begin[i], 0, 1, x, i, n)
	}
	over := make([]bool, n)
	d := len(big.sizes)
	for k := range steps {
		a := make([]int, n*d)
		for i := range n {
			if !over[i] { // otherwise its action is ignored
				copy(a[i*d:], big.legal(s.draw, mask.Row(i)))
			}
		}
		s.part("step %d", k)
		st := big.step(a)
		// The same rows in two requests, in random order.
		cutAt := 1 + s.draw.IntN(n-1)
		order := s.draw.Perm(n)
		for _, ids := range [][]int{order[:cutAt], order[cutAt:]} {
			var some []int
			for _, i := range ids {
				some = append(some, a[i*d:(i+1)*d]...)
			}
			reply := split.ask(wire.OpStep, "ids", ids, "a", split.actions(some))
			if echo, e := reply.Ints("ids"); e != nil || !slices.Equal(integers(echo), ids) {
				failf("step of %v echoes %v", ids, reply.Get("ids"))
			}
			for j, i := range ids {
				s.part("step %d, environment %d in a request of %d", k, i, len(ids))
				sameRow(reply, j, len(ids), st.reply, i, n)
			}
		}
		for i, p := range singles {
			s.part("step %d, environment %d alone", k, i)
			sameRow(p.ask(wire.OpStep, "a", p.actions(a[i*d:(i+1)*d])), 0, 1, st.reply, i, n)
		}
		mask, over = st.mask, st.over
	}
}

func (s *suite) sendAndRecv() {
	const n, batch, steps = 6, 2, 40
	c := s.dial()
	c.grants("async")
	plain := s.dial("feat", []string{})
	plain.refuse(only(wire.Unsupported), wire.OpOpen,
		"env", s.Env, "n", 2, "recv", "any", "batch", 1, "kwargs", mapOf(s.Kwargs))
	singles, begin := s.alone(c, n, 60)
	mask := make([]compare.Column, n)
	for i, p := range singles {
		mask[i] = p.masks(begin[i], 1)
	}
	p := s.openOn(c, n, "recv", "any", "batch", batch)
	d := len(p.sizes)
	p.refuse(only(wire.NotPending), wire.OpRecv)
	p.refuse(only(wire.NeedsReset), wire.OpSend, "a", p.actions(make([]int, n*d)))
	p.reset(60)
	var last [n][]int
	var over [n]bool
	send := func(ids []int) {
		var a []int
		for _, i := range ids {
			if last[i] = make([]int, d); !over[i] {
				last[i] = p.legal(s.draw, mask[i])
			}
			a = append(a, last[i]...)
		}
		if reply := p.ask(wire.OpSend, "ids", ids, "a", p.actions(a)); len(reply) != 2 {
			failf("send was answered with %s, want nothing beside re and op", compare.Brief(reply))
		}
	}
	send([]int{0, 1, 2, 3, 4, 5})
	s.part("an environment that is out")
	p.refuse(only(wire.BadRequest, wire.Busy), wire.OpSend, "ids", []int{3}, "a", p.actions(make([]int, d)))
	done := [n]int{}
	for total := 0; total < n*steps; {
		s.part("after %d steps", total)
		reply := p.ask(wire.OpRecv)
		ids, e := reply.Ints("ids")
		if e != nil || len(ids) == 0 || len(ids) > batch {
			failf("recv gives environments %v, want 1 to %d", reply.Get("ids"), batch)
		}
		p.readStep(reply, len(ids))
		var again []int
		for j, i := range integers(ids) {
			if i < 0 || i >= n || slices.Contains(again, i) || done[i] == steps {
				failf("recv gives environments %v, and %d is not out", ids, i)
			}
			s.part("environment %d, step %d", i, done[i])
			ref := singles[i].step(last[i])
			sameRow(reply, j, len(ids), ref.reply, 0, 1)
			mask[i], over[i] = ref.mask, ref.over[0]
			total++
			if done[i]++; done[i] < steps {
				again = append(again, i)
			}
		}
		if len(again) > 0 {
			send(again)
		}
	}
	s.part("after the last recv")
	p.refuse(only(wire.NotPending), wire.OpRecv)
}
