package conformance

import (
	"maps"
	"math"
	"slices"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

func (s *suite) badActionsChangeNothing() {
	p, twin := s.twins(3, 31)
	d := len(p.sizes)
	zeros := make([]int, 3*d)
	with := func(at, v int) wire.Array {
		a := slices.Clone(zeros)
		a[at] = v
		return p.actions(a)
	}
	nan := wire.Array{DType: wire.F64, Shape: p.actions(zeros).Shape}
	for range zeros {
		nan.Data = append(nan.Data, 0x01, 0, 0, 0, 0, 0, 0xf8, 0x7f)
	}
	wide := p.actions(zeros)
	wide.Shape = append(slices.Clone(wide.Shape), 1)
	bad := []struct {
		what string
		a    any
		rows []int // the environments that the error must name, nil = none
	}{
		{"above the range", with(d, p.sizes[0]), []int{1}},
		{"below 0", with(2*d, -1), []int{2}},
		{"far out", with(0, math.MaxInt64), []int{0}},
		{"of real numbers", p.actionsAs(wire.F32, zeros), nil},
		{"of NaN", nan, nil},
		{"of truth values", p.actionsAs(wire.Bool, zeros), nil},
		{"two rows for three", p.actions(zeros[:2*d]), nil},
		{"four rows for three", p.actions(make([]int, 4*d)), nil},
		{"a dimension too many", wide, nil},
		{"no array", "left", nil},
		{"a number", 1, nil},
		{"a map", m("disc", p.actions(zeros)), nil},
		{"a list of strings", []any{"a", "b", "c"}, nil},
		{"a list that is too short", []any{0}, nil},
	}
	for round := range 4 {
		for _, b := range bad {
			s.part("actions %s", b.what)
			e := p.refuse(only(wire.BadAction), wire.OpStep, "a", b.a)
			if b.rows != nil && !slices.Equal(e.Env, b.rows) {
				failf("the error names environments %v, want %v", e.Env, b.rows)
			}
		}
		s.part("no actions")
		p.refuse(only(wire.BadRequest, wire.BadAction), wire.OpStep)
		s.part("step %d after actions that were refused", round)
		stepAlike(p, twin, p.random(s.draw))
	}
	s.part("one error names all bad rows")
	a := slices.Clone(zeros)
	a[0], a[2*d] = -1, p.sizes[0]
	e := p.refuse(only(wire.BadAction), wire.OpStep, "a", p.actions(a))
	if !slices.Equal(e.Env, []int{0, 2}) {
		failf("bad actions of environments 0 and 2 name %v", e.Env)
	}
	// Integers of any width are accepted, and lists.
	for _, t := range []wire.DType{wire.I8, wire.U8, wire.I16, wire.I32, wire.U32, wire.U64} {
		s.part("actions of type %v", t)
		p.ask(wire.OpStep, "a", p.actionsAs(t, zeros))
	}
	s.part("actions as lists")
	lists := []any{}
	for range 3 {
		if p.flat {
			lists = append(lists, 0)
		} else {
			lists = append(lists, make([]int, d))
		}
	}
	p.ask(wire.OpStep, "a", lists)
}

// masked plays until row 0 has a masked action. It returns actions of which that of row 0 is masked and the others are
// legal, and the masks; it skips the claim if it finds none.
func (p *player) masked(s *suite) ([]int, compare.Column) {
	mask := p.masks(p.ask(wire.OpReset, "seed", 8), p.n)
	over := false // the step begins episodes, and ignores its actions
	for range s.Steps {
		a := make([]int, p.n*len(p.sizes))
		if !over {
			a = p.legal(s.draw, mask)
			at := 0
			for f, k := range p.sizes {
				if j := slices.Index(mask.V[at:at+k], 0); j >= 0 {
					a[f] = j
					return a, mask
				}
				at += k
			}
		}
		x := p.step(a)
		mask, over = x.mask, slices.Contains(x.over, true)
	}
	skipf("no action of the environment is ever masked")
	return nil, mask
}

func (s *suite) maskedActionsFollowThePolicy() {
	var rewards [2]float64
	for k, policy := range []string{"noop", "penalty"} {
		s.part("invalid %s", policy)
		more := []any{"invalid", policy}
		if policy == "penalty" {
			more = append(more, "kwargs", merge(mapOf(s.Kwargs), m("penalty", 0.25)))
		}
		p := s.start(2, more...)
		// Both policies get the same draws.
		save := s.draw
		s.draw = newDraw()
		a, _ := p.masked(s)
		s.draw = save
		x := p.step(a)
		info, _ := x.reply.Sub("info")
		if fin, _ := x.reply.Sub("fin"); fin != nil {
			info, _ = fin.Sub("info")
		}
		s.part("invalid %s: info of a replaced action", policy)
		if said := need(compare.At(info, "invalid", wire.Bool, 2)); said.V[0] != 1 || said.V[1] != 0 {
			failf("info.invalid is %v, want [1 0]", said.V)
		}
		rewards[k] = x.r[0]
	}
	s.part("noop and penalty")
	if d := rewards[0] - rewards[1]; math.Abs(d-0.25) > 1e-12 {
		failf("the penalty took %v off the reward, want 0.25", d)
	}

	s.part("invalid error")
	p := s.start(2, "invalid", "error")
	a, mask := p.masked(s)
	before := p.ask(wire.OpMasks)
	e := p.refuse(only(wire.BadAction), wire.OpStep, "a", p.actions(a))
	if !slices.Equal(e.Env, []int{0}) {
		failf("a masked action of environment 0 names %v", e.Env)
	}
	if now := need(compare.Read(before.Get("mask"))); !slices.Equal(now.V, mask.V) {
		failf("the operation masks and info do not agree")
	}
	p.step(p.legal(s.draw, mask))
}

// mapOf returns kwargs as a wire.Map.
func mapOf(kwargs map[string]any) wire.Map {
	out := wire.Map{}
	for _, k := range slices.Sorted(maps.Keys(kwargs)) {
		out = append(out, wire.Pair{Key: k, Value: kwargs[k]})
	}
	return out
}
