package conformance

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

func (s *suite) badActionsChangeNothing() error {
	p, err := s.start(3)
	if err != nil {
		return err
	}
	twin, err := s.openOn(p.conn, 3)
	if err != nil {
		return err
	}
	if err := first(p.reset(31), twin.reset(31)); err != nil {
		return err
	}
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
			e, err := p.refuse(only(wire.BadAction), wire.OpStep, "a", b.a)
			if err != nil {
				return fmt.Errorf("actions %s: %w", b.what, err)
			}
			if b.rows != nil && !slices.Equal(e.Env, b.rows) {
				return fmt.Errorf("actions %s name environments %v, want %v", b.what, e.Env, b.rows)
			}
		}
		if _, err := p.refuse(only(wire.BadRequest, wire.BadAction), wire.OpStep); err != nil {
			return fmt.Errorf("no actions: %w", err)
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
			return fmt.Errorf("step %d after actions that were refused: %w", round, err)
		}
	}
	// One error names all bad rows.
	a := slices.Clone(zeros)
	a[0], a[2*d] = -1, p.sizes[0]
	e, err := p.refuse(only(wire.BadAction), wire.OpStep, "a", p.actions(a))
	if err != nil {
		return err
	}
	if !slices.Equal(e.Env, []int{0, 2}) {
		return fmt.Errorf("bad actions of environments 0 and 2 name %v", e.Env)
	}
	// Integers of any width are accepted, and lists.
	for _, t := range []wire.DType{wire.I8, wire.U8, wire.I16, wire.I32, wire.U32, wire.U64} {
		if _, err := p.ask(wire.OpStep, "a", p.actionsAs(t, zeros)); err != nil {
			return fmt.Errorf("actions of type %v: %w", t, err)
		}
	}
	lists := []any{}
	for range 3 {
		if p.flat {
			lists = append(lists, 0)
		} else {
			lists = append(lists, make([]int, d))
		}
	}
	_, err = p.ask(wire.OpStep, "a", lists)
	return err
}

// masked plays until row 0 has a masked action. It returns actions of which that of row 0 is masked and the others are
// legal. ok is false if it finds none.
func (p *player) masked(s *suite) (a []int, mask compare.Column, ok bool, err error) {
	reply, err := p.ask(wire.OpReset, "seed", 8)
	if err != nil {
		return nil, compare.Column{}, false, err
	}
	if mask, err = p.masks(reply, p.n); err != nil {
		return nil, compare.Column{}, false, err
	}
	over := false
	for range s.Steps {
		if a, err = p.legal(s.draw, mask); err != nil && !over {
			return nil, mask, false, err
		}
		at := 0
		for f, k := range p.sizes {
			for j := range k {
				if mask.V[at+j] == 0 && !over {
					a[f] = j
					return a, mask, true, nil
				}
			}
			at += k
		}
		if over {
			a = make([]int, p.n*len(p.sizes))
		}
		x, err := p.step(a)
		if err != nil {
			return nil, mask, false, err
		}
		mask, over = x.mask, slices.Contains(x.over, true)
	}
	return nil, mask, false, nil
}

const nothingMasked = skip("no action of the environment is ever masked")

func (s *suite) maskedActionsFollowThePolicy() error {
	var rewards [2]float64
	for k, policy := range []string{"noop", "penalty"} {
		more := []any{"invalid", policy}
		if policy == "penalty" {
			more = append(more, "kwargs", merge(mapOf(s.Kwargs), m("penalty", 0.25)))
		}
		p, err := s.start(2, more...)
		if err != nil {
			return fmt.Errorf("invalid %s: %w", policy, err)
		}
		// Both policies get the same draws.
		save := s.draw
		s.draw = newDraw()
		a, _, ok, err := p.masked(s)
		s.draw = save
		if err != nil {
			return err
		}
		if !ok {
			return nothingMasked
		}
		x, err := p.step(a)
		if err != nil {
			return fmt.Errorf("invalid %s: a masked action: %w", policy, err)
		}
		info, _ := x.reply.Sub("info")
		if fin, _ := x.reply.Sub("fin"); fin != nil {
			info, _ = fin.Sub("info")
		}
		said, err := compare.At(info, "invalid", wire.Bool, 2)
		if err != nil {
			return fmt.Errorf("invalid %s: info of a replaced action: %w", policy, err)
		}
		if said.V[0] != 1 || said.V[1] != 0 {
			return fmt.Errorf("invalid %s: info.invalid is %v, want [1 0]", policy, said.V)
		}
		rewards[k] = x.r[0]
	}
	if d := rewards[0] - rewards[1]; math.Abs(d-0.25) > 1e-12 {
		return fmt.Errorf("the penalty took %v off the reward, want 0.25", d)
	}

	p, err := s.start(2, "invalid", "error")
	if err != nil {
		return err
	}
	a, mask, ok, err := p.masked(s)
	if err != nil {
		return err
	}
	if !ok {
		return nothingMasked
	}
	before, err := p.ask(wire.OpMasks)
	if err != nil {
		return err
	}
	e, err := p.refuse(only(wire.BadAction), wire.OpStep, "a", p.actions(a))
	if err != nil {
		return fmt.Errorf("invalid error: %w", err)
	}
	if !slices.Equal(e.Env, []int{0}) {
		return fmt.Errorf("invalid error: a masked action of environment 0 names %v", e.Env)
	}
	now, err := compare.Read(before.Get("mask"))
	if err != nil {
		return err
	}
	if !slices.Equal(now.V, mask.V) {
		return errors.New("the operation masks and info do not agree")
	}
	if a, err = p.legal(s.draw, mask); err != nil {
		return err
	}
	_, err = p.step(a)
	return err
}

// mapOf returns kwargs as a wire.Map.
func mapOf(kwargs map[string]any) wire.Map {
	out := wire.Map{}
	for _, k := range sortedKeys(kwargs) {
		out = append(out, wire.Pair{Key: k, Value: kwargs[k]})
	}
	return out
}
