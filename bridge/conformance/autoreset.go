package conformance

import (
	"slices"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

// alone opens n environments one by one, resets environment i with seed + i and returns the replies too. They show what
// the rows of a batch must show in any mode.
func (s *suite) alone(c *conn, n, seed int, more ...any) (all []*player, begin []wire.Map) {
	for i := range n {
		p := s.openOn(c, 1, more...)
		all, begin = append(all, p), append(begin, p.ask(wire.OpReset, "seed", seed+i))
	}
	return all, begin
}

// modes plays environments in a mode together with the same environments alone until some episodes have ended. see
// compares row i of a step with the step of the environment alone and, if the episode ended, with the first step of the
// next one. dead says that the step after the end ignores its action.
func (s *suite) modes(mode string, see func(x *step, i int, ref *step, next wire.Map), dead bool) {
	const n, seed = 3, 50
	p := s.start(n, "autoreset", mode)
	refs, _ := s.alone(p.conn, n, seed, "autoreset", "disabled")
	mask := p.masks(p.ask(wire.OpReset, "seed", seed), n)
	waiting := make([]wire.Map, n) // next_step: the first observation that the next step must show
	d := len(p.sizes)
	ends := 0
	for k := 0; k < s.Steps && ends < 6; k++ {
		s.part("step %d", k)
		a := make([]int, n*d)
		for i := range n {
			if waiting[i] == nil {
				copy(a[i*d:], p.legal(s.draw, mask.Row(i)))
				continue
			}
			for f := range d { // ignored actions may have any value
				a[i*d+f] = 1 << 20
			}
		}
		x := p.step(a)
		for i := range n {
			if waiting[i] != nil {
				if x.r[i] != 0 || x.over[i] {
					failf("environment %d begins with reward %v, end %v; want 0 and false", i, x.r[i], x.over[i])
				}
				s.part("step %d: the beginning of environment %d", k, i)
				sameObs(x.reply, i, n, waiting[i])
				waiting[i] = nil
				continue
			}
			s.part("step %d, environment %d", k, i)
			ref := refs[i].step(a[i*d : (i+1)*d])
			if x.r[i] != ref.r[0] || x.te[i] != ref.te[0] || x.tr[i] != ref.tr[0] {
				failf("r %v, te %v, tr %v; alone %v, %v, %v", x.r[i], x.te[i], x.tr[i], ref.r[0], ref.te[0], ref.tr[0])
			}
			var next wire.Map
			if ref.over[0] {
				ends++
				next = refs[i].ask(wire.OpReset, "seed", nil)
				if dead {
					waiting[i] = next
				}
			}
			see(x, i, ref, next)
		}
		mask = x.mask
	}
	if ends == 0 {
		s.noEnd()
	}
}

// sameObs compares the observation and mask of row i with those of a reply of one row.
func sameObs(x wire.Map, i, rows int, ref wire.Map) {
	a, b := need(compare.Row(x, i, rows)), need(compare.Row(ref, 0, 1))
	must(compare.SameValue("obs", a.Get("obs"), b.Get("obs")))
	ia, _ := a.Sub("info")
	ib, _ := b.Sub("info")
	must(compare.SameValue("mask", ia.Get(wire.MaskKey), ib.Get(wire.MaskKey)))
}

func (s *suite) nextStep() {
	s.modes("next_step", func(x *step, i int, ref *step, _ wire.Map) {
		if x.fin != nil {
			failf("there is a fin")
		}
		sameObs(x.reply, i, 3, ref.reply)
	}, true)
}

func (s *suite) sameStep() {
	s.modes("same_step", func(x *step, i int, ref *step, next wire.Map) {
		k := slices.Index(x.finalRows, i)
		if (k >= 0) != (next != nil) {
			failf("fin lists %v", x.finalRows)
		}
		if next == nil {
			sameObs(x.reply, i, 3, ref.reply)
			return
		}
		sameObs(x.reply, i, 3, next)
		fin, last := need(compare.Row(x.fin, k, len(x.finalRows))), need(compare.Row(ref.reply, 0, 1))
		must(compare.SameValue("fin.obs", fin.Get("obs"), last.Get("obs")))
		a, _ := fin.Sub("info")
		b, _ := last.Sub("info")
		must(compare.SameValue("fin.info.episode", a.Get("episode"), b.Get("episode")))
		if b.Get("episode") == nil {
			failf("the last step has no episode")
		}
	}, false)
}

func (s *suite) disabled() {
	p := s.start(2, "autoreset", "disabled")
	twin := s.openOn(p.conn, 2, "autoreset", "disabled")
	twin.reset(6)
	var last *step
	save := s.draw
	s.draw = newDraw()
	p.playToTheEnd(s, func(x *step, _ []float64, _ []int) { last = x })
	s.draw = newDraw()
	twin.playToTheEnd(s, func(*step, []float64, []int) {})
	s.draw = save
	var over, alive []int
	for i, o := range last.over {
		if o {
			over = append(over, i)
		} else {
			alive = append(alive, i)
		}
	}
	s.part("step after the end")
	for range 2 { // the first refusal must not begin an episode
		e := p.refuse(only(wire.NeedsReset), wire.OpStep, "a", p.actions(make([]int, 2*len(p.sizes))))
		if !slices.Equal(e.Env, over) {
			failf("episodes %v have ended, and it names %v", over, e.Env)
		}
	}
	// The refused step has not stepped the other environments either.
	for _, i := range alive {
		s.part("environment %d after a step that was refused", i)
		one := p.actions(make([]int, len(p.sizes)))
		must(compare.Same(p.ask(wire.OpStep, "ids", []int{i}, "a", one), twin.ask(wire.OpStep, "ids", []int{i}, "a", one)))
	}
	s.part("after the reset of what had ended")
	p.ask(wire.OpReset, "ids", over, "seed", nil)
	p.ask(wire.OpStep, "ids", over, "a", p.actions(make([]int, len(over)*len(p.sizes))))
}
