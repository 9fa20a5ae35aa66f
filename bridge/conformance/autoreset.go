package conformance

import (
	"errors"
	"fmt"
	"slices"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

// reference plays the environment of one row alone, which shows what that row must show in any mode.
type reference struct {
	p *player // one environment, disabled
}

func (s *suite) references(c *conn, n int, seed int) ([]reference, []wire.Map, error) {
	var all []reference
	var begin []wire.Map
	for i := range n {
		p, err := s.openOn(c, 1, "autoreset", "disabled")
		if err != nil {
			return nil, nil, err
		}
		reply, err := p.ask(wire.OpReset, "seed", seed+i)
		if err != nil {
			return nil, nil, err
		}
		all, begin = append(all, reference{p}), append(begin, reply)
	}
	return all, begin, nil
}

// modes plays environments in a mode beside their references until some episodes have ended. see compares row i of a step
// with the step of its reference and, if the episode ended, with the first step of the next one. dead says that the step
// after the end ignores its action.
func (s *suite) modes(mode string, see func(x *step, i int, ref *step, next wire.Map) error, dead bool) error {
	const n, seed = 3, 50
	p, err := s.start(n, "autoreset", mode)
	if err != nil {
		return err
	}
	refs, _, err := s.references(p.conn, n, seed)
	if err != nil {
		return err
	}
	reply, err := p.ask(wire.OpReset, "seed", seed)
	if err != nil {
		return err
	}
	mask, err := p.masks(reply, n)
	if err != nil {
		return err
	}
	waiting := make([]wire.Map, n) // next_step: the first observation that the next step must show
	ends := 0
	for k := 0; k < s.Steps && ends < 6; k++ {
		d := len(p.sizes)
		a := make([]int, n*d)
		for i := range n {
			row := compare.Column{Shape: []int{1, mask.Shape[1]}, V: mask.V[i*mask.Shape[1] : (i+1)*mask.Shape[1]]}
			if waiting[i] != nil {
				for f := range d { // ignored actions may have any value
					a[i*d+f] = 1 << 20
				}
				continue
			}
			legal, err := p.legal(s.draw, row)
			if err != nil {
				return err
			}
			copy(a[i*d:], legal)
		}
		x, err := p.step(a)
		if err != nil {
			return fmt.Errorf("step %d: %w", k, err)
		}
		for i := range n {
			if waiting[i] != nil {
				if x.r[i] != 0 || x.over[i] {
					return fmt.Errorf("step %d: environment %d begins with reward %v, end %v; want 0 and false", k, i, x.r[i], x.over[i])
				}
				if err := sameObs(x.reply, i, n, waiting[i]); err != nil {
					return fmt.Errorf("step %d: the beginning of environment %d: %w", k, i, err)
				}
				waiting[i] = nil
				continue
			}
			ref, err := refs[i].p.step(a[i*d : (i+1)*d])
			if err != nil {
				return err
			}
			if x.r[i] != ref.r[0] || x.te[i] != ref.te[0] || x.tr[i] != ref.tr[0] {
				return fmt.Errorf("step %d: environment %d has r %v, te %v, tr %v; alone %v, %v, %v", k, i, x.r[i], x.te[i], x.tr[i], ref.r[0], ref.te[0], ref.tr[0])
			}
			var next wire.Map
			if ref.over[0] {
				ends++
				if next, err = refs[i].p.ask(wire.OpReset, "seed", nil); err != nil {
					return err
				}
				if dead {
					waiting[i] = next
				}
			}
			if err := see(x, i, ref, next); err != nil {
				return fmt.Errorf("step %d, environment %d: %w", k, i, err)
			}
		}
		mask = x.mask
	}
	if ends == 0 {
		return noEnd(s)
	}
	return nil
}

// sameObs compares the observation and mask of row i with those of a reply of one row.
func sameObs(x wire.Map, i, rows int, ref wire.Map) error {
	a, err1 := compare.Row(x, i, rows)
	b, err2 := compare.Row(ref, 0, 1)
	if err := first(err1, err2); err != nil {
		return err
	}
	if err := compare.SameValue("obs", a.Get("obs"), b.Get("obs")); err != nil {
		return err
	}
	ia, _ := a.Sub("info")
	ib, _ := b.Sub("info")
	return compare.SameValue("mask", ia.Get(wire.MaskKey), ib.Get(wire.MaskKey))
}

func (s *suite) nextStep() error {
	return s.modes("next_step", func(x *step, i int, ref *step, _ wire.Map) error {
		if x.fin != nil {
			return errors.New("there is a fin")
		}
		return sameObs(x.reply, i, 3, ref.reply)
	}, true)
}

func (s *suite) sameStep() error {
	return s.modes("same_step", func(x *step, i int, ref *step, next wire.Map) error {
		k := slices.Index(x.finalRows, i)
		if (k >= 0) != (next != nil) {
			return fmt.Errorf("fin lists %v", x.finalRows)
		}
		if next == nil {
			return sameObs(x.reply, i, 3, ref.reply)
		}
		if err := sameObs(x.reply, i, 3, next); err != nil {
			return fmt.Errorf("the next episode's beginning: %w", err)
		}
		fin, err := compare.Row(x.fin, k, len(x.finalRows))
		if err != nil {
			return fmt.Errorf("fin: %w", err)
		}
		last, err := compare.Row(ref.reply, 0, 1)
		if err != nil {
			return err
		}
		if err := compare.SameValue("fin.obs", fin.Get("obs"), last.Get("obs")); err != nil {
			return err
		}
		a, _ := fin.Sub("info")
		b, _ := last.Sub("info")
		if err := compare.SameValue("fin.info.episode", a.Get("episode"), b.Get("episode")); err != nil {
			return err
		}
		if b.Get("episode") == nil {
			return errors.New("the last step has no episode")
		}
		return nil
	}, false)
}

func (s *suite) disabled() error {
	p, err := s.start(2, "autoreset", "disabled")
	if err != nil {
		return err
	}
	twin, err := s.openOn(p.conn, 2, "autoreset", "disabled")
	if err != nil {
		return err
	}
	if err := twin.reset(6); err != nil {
		return err
	}
	var last *step
	save := s.draw
	s.draw = newDraw()
	ended, err := p.playToTheEnd(s, func(x *step, _ []float64, _ []int) error {
		last = x
		return nil
	})
	if err != nil {
		return err
	}
	if !ended {
		return noEnd(s)
	}
	s.draw = newDraw()
	if _, err := twin.playToTheEnd(s, func(*step, []float64, []int) error { return nil }); err != nil {
		return err
	}
	s.draw = save
	var over, alive []int
	for i, o := range last.over {
		if o {
			over = append(over, i)
		} else {
			alive = append(alive, i)
		}
	}
	a := make([]int, 2*len(p.sizes))
	for range 2 { // the first refusal must not begin an episode
		e, err := p.refuse(only(wire.NeedsReset), wire.OpStep, "a", p.actions(a))
		if err != nil {
			return fmt.Errorf("step after the end: %w", err)
		}
		if !slices.Equal(e.Env, over) {
			return fmt.Errorf("step after the end of %v names %v", over, e.Env)
		}
	}
	// The refused step has not stepped the other environments either.
	for _, i := range alive {
		one := make([]int, len(p.sizes))
		x, err := p.ask(wire.OpStep, "ids", []int{i}, "a", p.actions(one))
		if err != nil {
			return err
		}
		y, err := twin.ask(wire.OpStep, "ids", []int{i}, "a", twin.actions(one))
		if err != nil {
			return err
		}
		if err := compare.Same(x, y); err != nil {
			return fmt.Errorf("environment %d after a step that was refused: %w", i, err)
		}
	}
	if _, err := p.ask(wire.OpReset, "ids", over, "seed", nil); err != nil {
		return err
	}
	_, err = p.ask(wire.OpStep, "ids", over, "a", p.actions(make([]int, len(over)*len(p.sizes))))
	return err
}
