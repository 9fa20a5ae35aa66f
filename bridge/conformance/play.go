package conformance

import (
	"math"
	"slices"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
	"clustergym/env"
)

func (s *suite) stepsNeedAReset() {
	p := s.start(3)
	a := p.actions(make([]int, 3*len(p.sizes)))
	e := p.refuse(only(wire.NeedsReset), wire.OpStep, "a", a)
	if !slices.Equal(e.Env, []int{0, 1, 2}) {
		failf("step before reset names environments %v, want all three", e.Env)
	}
	p.ask(wire.OpReset, "ids", []int{1}, "seed", 1)
	e = p.refuse(only(wire.NeedsReset), wire.OpStep, "a", a)
	if !slices.Equal(e.Env, []int{0, 2}) {
		failf("a step after the reset of environment 1 names %v, want [0 2]", e.Env)
	}
	p.ask(wire.OpStep, "ids", []int{1}, "a", p.actions(make([]int, len(p.sizes))))
}

func (s *suite) resetsBeginEpisodes() {
	p := s.start(2)
	x := p.ask(wire.OpReset, "seed", 12)
	if x.Get("obs") == nil {
		failf("reset gives no observation")
	}
	p.masks(x, 2)
	if x.Has("ids") {
		failf("reset of all echoes ids")
	}
	p.step(p.random(s.draw))
	s.part("the same seed once more")
	must(compare.Same(x, p.ask(wire.OpReset, "seed", 12)))
	s.part("the same seed, and which")
	must(compare.Same(x, p.ask(wire.OpReset, "seed", 12, "which", []any{true, true}, "options", m())))
}

func (s *suite) partialResetsLeaveOthers() {
	p, twin := s.twins(4, 20)
	a := p.random(s.draw)
	p.step(a)
	twin.step(a)
	x := p.ask(wire.OpReset, "ids", []int{3, 1}, "seed", []int{77, 78})
	ids, e := x.Ints("ids")
	if e != nil || !slices.Equal(ids, []int64{3, 1}) {
		failf("reset of [3 1] echoes ids %v", ids)
	}
	p.masks(x, 2)
	// Rows come in the order of ids: row 0 of this reply is environment 3 with seed 77.
	s.part("environment 3 of a reset of [3 1]")
	_, begin := s.alone(p.conn, 1, 77)
	sameRow(x, 0, 2, begin[0], 0, 1)
	s.part("after the reset of others")
	a = p.random(s.draw)
	u, v := p.step(a), twin.step(a)
	for _, i := range []int{0, 2} {
		s.part("environment %d after the reset of others", i)
		sameRow(u.reply, i, 4, v.reply, i, 4)
	}
}

// sameRow compares row i of one reply with row k of another.
func sameRow(x wire.Map, i, rows int, y wire.Map, k, rowsY int) {
	must(compare.SameBut(need(compare.Row(x, i, rows)), need(compare.Row(y, k, rowsY))))
}

func (s *suite) badRowsAreRefused() {
	p := s.start(3)
	p.reset(1)
	for _, ids := range []any{
		[]int{0, 0}, []int{3}, []int{-1}, []int{0, 1, 2, 0}, []any{}, "0", []any{"0"}, 1.5, []any{0.5},
	} {
		for _, op := range []string{wire.OpReset, wire.OpMasks} {
			p.refuse(only(wire.BadRequest), op, "ids", ids)
		}
		p.refuse(only(wire.BadRequest), wire.OpStep, "ids", ids, "a", p.actions(make([]int, 2*len(p.sizes))))
	}
	for _, which := range []any{[]any{true}, []any{true, false, 1}, "all", 1} {
		p.refuse(only(wire.BadRequest), wire.OpReset, "which", which)
	}
	// ids may be an array of integers.
	x := p.ask(wire.OpMasks, "ids", compare.Array(wire.I32, []int{2, 0}, 2))
	mask, err := compare.At(x, "mask", wire.I8, 2)
	if err != nil {
		mask = need(compare.At(x, "mask", wire.Bool, 2))
	}
	p.maskFits(mask)
}

func (s *suite) badSeedsAreRefused() {
	p := s.start(2)
	for _, seed := range []any{
		-1, 1.5, "one", []int{1}, []int{1, 2, 3}, []any{1, -2}, []any{1, "x"}, m("a", 1), math.NaN(),
	} {
		p.refuse(only(wire.BadSeed), wire.OpReset, "seed", seed)
	}
	p.reset([]any{nil, uint64(math.MaxUint64)})
}

func (s *suite) seedsAreHandedOn() {
	p := s.start(3)
	// Without a seed the server draws one and reports it.
	s.part("reset without a seed: info.seed")
	x := p.ask(wire.OpReset, "seed", nil)
	told := need(compare.Read(field(x.Sub("info")).Get("seed")))
	if len(told.V) != 3 {
		failf("%v, want three numbers", told.V)
	}
	seeds := []any{}
	for _, v := range told.V {
		seeds = append(seeds, uint64(v))
	}
	q := s.openOn(p.conn, 3)
	s.part("a reset with the seed that was reported")
	y := q.ask(wire.OpReset, "seed", seeds)
	for i := range 3 {
		rx, ry := need(compare.Row(x, i, 3)), need(compare.Row(y, i, 3))
		must(compare.SameValue("obs", rx.Get("obs"), ry.Get("obs")))
	}
	// A number s seeds environment i with s + i, and the k-th reset without a seed begins episode k of that stream.
	s.part("the third episodes of seed 100")
	p.reset(100)
	p.reset(nil)
	x = p.ask(wire.OpReset, "seed", nil)
	seeds = seeds[:0]
	for i := range 3 {
		seeds = append(seeds, env.EpisodeSeed(100+uint64(i), 2))
	}
	must(compare.Same(x, q.ask(wire.OpReset, "seed", seeds)))
	// Rows without a seed in a list continue their streams.
	s.part("a list of seeds with gaps")
	x = p.ask(wire.OpReset, "seed", []any{nil, 5, nil})
	must(compare.Same(x, q.ask(wire.OpReset, "seed", []any{env.EpisodeSeed(100, 3), 5, env.EpisodeSeed(102, 3)})))
}
