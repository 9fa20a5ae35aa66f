package handle

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/vec"
)

// badAction is one element of an action that is outside the space or masked.
type badAction struct {
	row, pos int
	got      string
	want     string
}

// actions reads the field a for rows into h.a, and replaces masked actions there if the handle was opened so. It
// changes nothing else. An error lists every environment concerned.
func (h *Handle) actions(req wire.Map, rows []int) *wire.Error {
	v := req.Get("a")
	if v == nil {
		return wire.Errorf(wire.BadRequest, "field a is missing, want the actions")
	}
	d := &h.spec.Action
	h.bad = h.bad[:0]
	var err *wire.Error
	switch {
	case len(d.Low) == 0:
		err = h.discrete(v, rows)
	case len(d.Sizes) == 0:
		err = h.continuous(v, rows)
	default:
		m, ok := v.(wire.Map)
		if !ok || m.Get("disc") == nil || m.Get("cont") == nil {
			return wire.Errorf(wire.BadAction, "field a, want a map with disc and cont")
		}
		if err = h.discrete(m.Get("disc"), rows); err == nil {
			err = h.continuous(m.Get("cont"), rows)
		}
	}
	if err != nil {
		return err
	}
	if len(h.bad) > 0 {
		return h.badActions("outside the space")
	}
	if len(d.Sizes) > 0 {
		h.masked(rows)
		if len(h.bad) > 0 {
			return h.badActions("masked")
		}
	}
	return nil
}

// dead reports whether row i's next step begins an episode and ignores its action.
func (h *Handle) dead(i int) bool { return h.mode == vec.NextStep && h.b.Kind[i].Last() }

// wrongShape returns the error for an array of the wrong shape.
func wrongShape(got []int, k, each int, flat bool) *wire.Error {
	want := fmt.Sprintf("[%d, %d]", k, each)
	if flat {
		want = fmt.Sprintf("[%d]", k)
	}
	return &wire.Error{Code: wire.BadAction, Msg: "the shape of the actions",
		Got: strings.ReplaceAll(fmt.Sprint(got), " ", ", "), Want: want}
}

// fits reports whether an array of this shape has k rows of each elements, or with flat is of one dimension of k.
func fits(shape []int, k, each int, flat bool) bool {
	if flat {
		return len(shape) == 1 && shape[0] == k
	}
	return len(shape) == 2 && shape[0] == k && shape[1] == each
}

// discrete reads indices of discrete actions.
func (h *Handle) discrete(v any, rows []int) *wire.Error {
	d := &h.spec.Action
	flat := len(d.Sizes) == 1 && len(d.Low) == 0
	switch v := v.(type) {
	case wire.Array:
		if v.DType < wire.I8 || v.DType > wire.U64 {
			return &wire.Error{Code: wire.BadAction, Msg: "the type of the actions", Got: v.DType.String(), Want: "integers"}
		}
		if !fits(v.Shape, len(rows), len(d.Sizes), flat) {
			return wrongShape(v.Shape, len(rows), len(d.Sizes), flat)
		}
		at := 0
		for _, i := range rows {
			for j := range len(d.Sizes) {
				x, ok := v.Int(at)
				at++
				if !ok {
					x = math.MaxInt64 // the value is larger still, and both are out of range
				}
				h.index(i, j, x)
			}
		}
		return nil
	case []any:
		return h.listed(v, rows, len(d.Sizes), flat, "whole numbers", func(i, j int, x any) bool {
			k, ok := whole(x)
			if ok {
				h.index(i, j, k)
			}
			return ok
		})
	}
	return &wire.Error{Code: wire.BadAction, Msg: "field a", Got: brief(v), Want: "an array of integers"}
}

// whole returns x as a whole number.
func whole(x any) (int64, bool) {
	if _, larger := x.(uint64); larger {
		return math.MaxInt64, true // a uint64 here is larger still, and both are out of range
	}
	return wire.Whole(x)
}

// index stores factor j of row i's action, or notes it as bad.
func (h *Handle) index(i, j int, x int64) {
	d := &h.spec.Action
	if x >= 0 && x < int64(d.Sizes[j]) {
		h.a.Disc[i*len(d.Sizes)+j] = int32(x)
		return
	}
	if h.dead(i) {
		return
	}
	h.bad = append(h.bad, badAction{i, j, strconv.FormatInt(x, 10), fmt.Sprintf("0 to %d", d.Sizes[j]-1)})
}

// continuous reads numbers. It accepts integers of at most 16 bits, which float32 represents exactly.
func (h *Handle) continuous(v any, rows []int) *wire.Error {
	d := &h.spec.Action
	switch v := v.(type) {
	case wire.Array:
		switch v.DType {
		case wire.F16, wire.F32, wire.F64, wire.I8, wire.U8, wire.I16, wire.U16:
		default:
			return &wire.Error{Code: wire.BadAction, Msg: "the type of the actions", Got: v.DType.String(),
				Want: "float32, float64 or float16"}
		}
		if !fits(v.Shape, len(rows), len(d.Low), false) {
			return wrongShape(v.Shape, len(rows), len(d.Low), false)
		}
		at := 0
		for _, i := range rows {
			for j := range len(d.Low) {
				h.number(i, j, v.Float(at))
				at++
			}
		}
		return nil
	case []any:
		return h.listed(v, rows, len(d.Low), false, "numbers", func(i, j int, x any) bool {
			switch x := x.(type) {
			case float64:
				h.number(i, j, x)
			case int64:
				h.number(i, j, float64(x))
			default:
				return false
			}
			return true
		})
	}
	return &wire.Error{Code: wire.BadAction, Msg: "field a", Got: brief(v), Want: "an array of numbers"}
}

// number stores dimension j of row i's action, or notes it as bad. It rounds x before comparing, since the bounds are
// float32.
func (h *Handle) number(i, j int, x float64) {
	d := &h.spec.Action
	f := float32(x)
	if f >= d.Low[j] && f <= d.High[j] && !math.IsInf(float64(f), 0) {
		h.a.Cont[i*len(d.Low)+j] = f
		return
	}
	if h.dead(i) {
		return
	}
	h.bad = append(h.bad,
		badAction{i, j, strconv.FormatFloat(x, 'g', -1, 64), fmt.Sprintf("%v to %v", d.Low[j], d.High[j])})
}

// listed reads nested lists: one value for each row if flat, else a list of each values for each row.
func (h *Handle) listed(list []any, rows []int, each int, flat bool, want string,
	take func(i, j int, x any) bool) *wire.Error {
	wrong := func(got string) *wire.Error {
		shape := fmt.Sprintf("%d", len(rows))
		if !flat {
			shape += fmt.Sprintf(" lists of %d", each)
		}
		return &wire.Error{Code: wire.BadAction, Msg: "field a", Got: got, Want: "a list of " + shape + " " + want}
	}
	if len(list) != len(rows) {
		return wrong(fmt.Sprintf("a list of %d", len(list)))
	}
	for p, i := range rows {
		if flat {
			if !take(i, 0, list[p]) {
				return wrong(brief(list[p]))
			}
			continue
		}
		row, ok := list[p].([]any)
		if !ok || len(row) != each {
			return wrong(brief(list[p]) + " at position " + strconv.Itoa(p))
		}
		for j, x := range row {
			if !take(i, j, x) {
				return wrong(brief(x))
			}
		}
	}
	return nil
}

// masked replaces actions that the mask forbids, or notes them as bad if they are errors. The replacement is the
// environment's no-op if that is legal, else the lowest legal action; with several factors it is the lowest legal index
// of each masked factor.
func (h *Handle) masked(rows []int) {
	s := &h.shape
	d := &h.spec.Action
	for _, i := range rows {
		h.rows[i].forced = false
		if h.dead(i) {
			continue
		}
		row := h.b.Mask[i*s.mask : (i+1)*s.mask]
		disc := h.a.Disc[i*len(d.Sizes) : (i+1)*len(d.Sizes)]
		for j, size := range d.Sizes {
			mask := row[s.maskAt[j] : s.maskAt[j]+size]
			if mask[disc[j]] {
				continue
			}
			if h.invalid == invalidError {
				h.bad = append(h.bad, badAction{i, j, strconv.Itoa(int(disc[j])), "an action whose mask is 1"})
				continue
			}
			if to := instead(h.spec, mask); to >= 0 {
				disc[j] = int32(to)
				h.rows[i].forced = true
			}
		}
	}
}

// instead returns the action taken in place of a masked one, -1 if none is legal. The environment then refuses the
// action itself.
func instead(s env.Spec, mask []bool) int {
	if len(s.Action.Sizes) == 1 && s.NoOp >= 0 && s.NoOp < len(mask) && mask[s.NoOp] {
		return s.NoOp
	}
	return slices.Index(mask, true)
}

// badActions returns the error that lists h.bad.
func (h *Handle) badActions(what string) *wire.Error {
	const most = 32 // described in got; env lists all
	e := &wire.Error{Code: wire.BadAction}
	d := &h.spec.Action
	var got strings.Builder
	for n, b := range h.bad {
		if !slices.Contains(e.Env[max(0, len(e.Env)-1):], b.row) {
			e.Env = append(e.Env, b.row)
		}
		if n == most {
			fmt.Fprintf(&got, ", and %d more", len(h.bad)-most)
		}
		if n >= most {
			continue
		}
		if n > 0 {
			got.WriteString(", ")
		}
		fmt.Fprintf(&got, "env %d", b.row)
		if len(d.Sizes)+len(d.Low) > 1 {
			fmt.Fprintf(&got, " position %d", b.pos)
		}
		fmt.Fprintf(&got, ": %s", b.got)
		if len(d.Sizes)+len(d.Low) > 1 {
			fmt.Fprintf(&got, " (%s)", b.want)
		}
	}
	e.Got, e.Want = got.String(), h.bad[0].want
	if len(d.Sizes)+len(d.Low) > 1 {
		e.Want = "what stands in brackets"
	}
	e.Msg = fmt.Sprintf("actions of %d environments are %s; nothing was done", len(e.Env), what)
	return e
}
