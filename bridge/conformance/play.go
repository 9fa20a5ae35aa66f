package conformance

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
	"clustergym/env"
)

func (s *suite) stepsNeedAReset() error {
	p, err := s.start(3)
	if err != nil {
		return err
	}
	a := p.actions(make([]int, 3*len(p.sizes)))
	e, err := p.refuse(only(wire.NeedsReset), wire.OpStep, "a", a)
	if err != nil {
		return err
	}
	if !slices.Equal(e.Env, []int{0, 1, 2}) {
		return fmt.Errorf("step before reset names environments %v, want all three", e.Env)
	}
	if _, err := p.ask(wire.OpReset, "ids", []int{1}, "seed", 1); err != nil {
		return err
	}
	if e, err = p.refuse(only(wire.NeedsReset), wire.OpStep, "a", a); err != nil {
		return err
	}
	if !slices.Equal(e.Env, []int{0, 2}) {
		return fmt.Errorf("a step after the reset of environment 1 names %v, want [0 2]", e.Env)
	}
	_, err = p.ask(wire.OpStep, "ids", []int{1}, "a", p.actions(make([]int, len(p.sizes))))
	return err
}

func (s *suite) resetsBeginEpisodes() error {
	p, err := s.start(2)
	if err != nil {
		return err
	}
	x, err := p.ask(wire.OpReset, "seed", 12)
	if err != nil {
		return err
	}
	if x.Get("obs") == nil {
		return errors.New("reset gives no observation")
	}
	if _, err := p.masks(x, 2); err != nil {
		return err
	}
	if x.Has("ids") {
		return errors.New("reset of all echoes ids")
	}
	if _, err := p.step(p.random(s.draw)); err != nil {
		return err
	}
	y, err := p.ask(wire.OpReset, "seed", 12)
	if err != nil {
		return err
	}
	if err := compare.Same(x, y); err != nil {
		return fmt.Errorf("the same seed once more: %w", err)
	}
	z, err := p.ask(wire.OpReset, "seed", 12, "which", []any{true, true}, "options", m())
	if err != nil {
		return err
	}
	if err := compare.Same(x, z); err != nil {
		return fmt.Errorf("the same seed, and which: %w", err)
	}
	return nil
}

func (s *suite) partialResetsLeaveOthers() error {
	p, err := s.start(4)
	if err != nil {
		return err
	}
	twin, err := s.openOn(p.conn, 4)
	if err != nil {
		return err
	}
	if err := first(p.reset(20), twin.reset(20)); err != nil {
		return err
	}
	a := p.random(s.draw)
	if _, err := p.step(a); err != nil {
		return err
	}
	if _, err := twin.step(a); err != nil {
		return err
	}
	x, err := p.ask(wire.OpReset, "ids", []int{3, 1}, "seed", []int{77, 78})
	if err != nil {
		return err
	}
	ids, e := x.Ints("ids")
	if e != nil || !slices.Equal(ids, []int64{3, 1}) {
		return fmt.Errorf("reset of [3 1] echoes ids %v", ids)
	}
	if _, err := p.masks(x, 2); err != nil {
		return err
	}
	// Rows come in the order of ids: row 0 of this reply is environment 3 with seed 77.
	alone, err := s.openOn(p.conn, 1)
	if err != nil {
		return err
	}
	y, err := alone.ask(wire.OpReset, "seed", 77)
	if err != nil {
		return err
	}
	if err := sameRow(x, 0, 2, y, 0, 1); err != nil {
		return fmt.Errorf("environment 3 of a reset of [3 1]: %w", err)
	}
	a = p.random(s.draw)
	u, err := p.step(a)
	if err != nil {
		return err
	}
	v, err := twin.step(a)
	if err != nil {
		return err
	}
	for _, i := range []int{0, 2} {
		if err := sameRow(u.reply, i, 4, v.reply, i, 4); err != nil {
			return fmt.Errorf("environment %d after the reset of others: %w", i, err)
		}
	}
	return nil
}

// sameRow compares row i of one reply with row k of another.
func sameRow(x wire.Map, i, rows int, y wire.Map, k, rowsY int) error {
	a, err := compare.Row(x, i, rows)
	if err != nil {
		return err
	}
	b, err := compare.Row(y, k, rowsY)
	if err != nil {
		return err
	}
	return compare.SameBut(a, b)
}

func (s *suite) badRowsAreRefused() error {
	p, err := s.start(3)
	if err != nil {
		return err
	}
	if err := p.reset(1); err != nil {
		return err
	}
	for _, ids := range []any{[]int{0, 0}, []int{3}, []int{-1}, []int{0, 1, 2, 0}, []any{}, "0", []any{"0"}, 1.5, []any{0.5}} {
		for _, op := range []string{wire.OpReset, wire.OpMasks} {
			if _, err := p.refuse(only(wire.BadRequest), op, "ids", ids); err != nil {
				return err
			}
		}
		if _, err := p.refuse(only(wire.BadRequest), wire.OpStep, "ids", ids, "a", p.actions(make([]int, 2*len(p.sizes)))); err != nil {
			return err
		}
	}
	for _, which := range []any{[]any{true}, []any{true, false, 1}, "all", 1} {
		if _, err := p.refuse(only(wire.BadRequest), wire.OpReset, "which", which); err != nil {
			return err
		}
	}
	// ids may be an array of integers.
	x, err := p.ask(wire.OpMasks, "ids", compare.Array(wire.I32, []int{2, 0}, 2))
	if err != nil {
		return err
	}
	mask, err := compare.At(x, "mask", wire.I8, 2)
	if err != nil {
		if mask, err = compare.At(x, "mask", wire.Bool, 2); err != nil {
			return err
		}
	}
	return p.maskFits(mask)
}

func (s *suite) badSeedsAreRefused() error {
	p, err := s.start(2)
	if err != nil {
		return err
	}
	for _, seed := range []any{-1, 1.5, "one", []int{1}, []int{1, 2, 3}, []any{1, -2}, []any{1, "x"}, m("a", 1), math.NaN()} {
		if _, err := p.refuse(only(wire.BadSeed), wire.OpReset, "seed", seed); err != nil {
			return err
		}
	}
	return p.reset([]any{nil, uint64(math.MaxUint64)})
}

func (s *suite) seedsAreHandedOn() error {
	p, err := s.start(3)
	if err != nil {
		return err
	}
	// Without a seed the server draws one and reports it.
	x, err := p.ask(wire.OpReset, "seed", nil)
	if err != nil {
		return err
	}
	info, e := x.Sub("info")
	if e != nil {
		return e
	}
	told, err := compare.Read(info.Get("seed"))
	if err != nil {
		return fmt.Errorf("reset without a seed: info.seed: %w", err)
	}
	if len(told.V) != 3 {
		return fmt.Errorf("reset without a seed: info.seed is %v, want three numbers", told.V)
	}
	seeds := []any{}
	for _, v := range told.V {
		seeds = append(seeds, uint64(v))
	}
	q, err := s.openOn(p.conn, 3)
	if err != nil {
		return err
	}
	y, err := q.ask(wire.OpReset, "seed", seeds)
	if err != nil {
		return err
	}
	for i := range 3 {
		rx, err1 := compare.Row(x, i, 3)
		ry, err2 := compare.Row(y, i, 3)
		if err := first(err1, err2); err != nil {
			return err
		}
		if err := compare.SameValue("obs", rx.Get("obs"), ry.Get("obs")); err != nil {
			return fmt.Errorf("a reset with the seed that was told: %w", err)
		}
	}
	// A number s seeds environment i with s + i, and the k-th reset without a seed begins episode k of that stream.
	if err := p.reset(100); err != nil {
		return err
	}
	if _, err = p.ask(wire.OpReset, "seed", nil); err != nil {
		return err
	}
	if x, err = p.ask(wire.OpReset, "seed", nil); err != nil {
		return err
	}
	seeds = seeds[:0]
	for i := range 3 {
		seeds = append(seeds, env.EpisodeSeed(100+uint64(i), 2))
	}
	if y, err = q.ask(wire.OpReset, "seed", seeds); err != nil {
		return err
	}
	if err := compare.Same(x, y); err != nil {
		return fmt.Errorf("the third episodes of seed 100: %w", err)
	}
	// Rows without a seed in a list continue their streams.
	if x, err = p.ask(wire.OpReset, "seed", []any{nil, 5, nil}); err != nil {
		return err
	}
	if y, err = q.ask(wire.OpReset, "seed", []any{env.EpisodeSeed(100, 3), 5, env.EpisodeSeed(102, 3)}); err != nil {
		return err
	}
	if err := compare.Same(x, y); err != nil {
		return fmt.Errorf("a list of seeds with gaps: %w", err)
	}
	return nil
}
