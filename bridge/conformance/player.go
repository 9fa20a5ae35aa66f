package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

// player is one open handle and its connection.
type player struct {
	*conn
	h     int64
	n     int
	sizes []int
	flat  bool // actions have one dimension: Discrete
	open  wire.Map
	noop  int
	limit int // max_episode_steps, 0 = none

}

// openOn opens n environments on c.
func (s *suite) openOn(c *conn, n int, more ...any) (*player, error) {
	kwargs := s.Kwargs
	if kwargs == nil {
		kwargs = map[string]any{}
	}
	reply, err := c.ask(wire.OpOpen, list(merge(m("env", s.Env, "n", n, "kwargs", kwargs), m(more...)))...)
	if err != nil {
		return nil, err
	}
	return s.newPlayer(c, n, reply)
}

func (s *suite) newPlayer(c *conn, n int, reply wire.Map) (*player, error) {
	p := &player{conn: c, n: n, open: reply, noop: -1}
	var e *wire.Error
	if p.h, e = reply.Int("h", 0, 1, 1<<32-1); e != nil || p.h == 0 {
		return nil, fmt.Errorf("open gives handle %v, want a number above 0", reply.Get("h"))
	}
	space, e := wire.ParseSpace(reply.Get("act_space"))
	if e != nil {
		return nil, e
	}
	switch space.Kind {
	case "discrete":
		p.flat, p.sizes = true, []int{int(space.N)}
	case "mdiscrete":
		for _, k := range space.NVec {
			p.sizes = append(p.sizes, int(k))
		}
	default:
		return nil, fmt.Errorf("%s has actions of kind %s; the suite needs discrete ones: name another environment", s.Env, space.Kind)
	}
	spec, e := reply.Sub("spec")
	if e != nil {
		return nil, e
	}
	limit, e := spec.Int("max_episode_steps", 0, 0, 1<<31)
	if e != nil {
		return nil, e
	}
	p.limit = int(limit)
	meta, e := reply.Sub("meta")
	if e != nil {
		return nil, e
	}
	if k, ok := compare.Number(meta.Get("noop")); ok {
		p.noop = int(k)
	}
	return p, nil
}

// start begins a session and opens n environments.
func (s *suite) start(n int, more ...any) (*player, error) {
	c, err := s.dial()
	if err != nil {
		return nil, err
	}
	return s.openOn(c, n, more...)
}

// list returns the entries of a map as alternating keys and values.
func list(m wire.Map) []any {
	out := make([]any, 0, 2*len(m))
	for _, p := range m {
		out = append(out, p.Key, p.Value)
	}
	return out
}

// ask is conn.ask with the handle, and refuse is conn.refuse with the handle.
func (p *player) ask(op string, fields ...any) (wire.Map, error) {
	return p.conn.ask(op, append([]any{"h", p.h}, fields...)...)
}

func (p *player) refuse(codes []wire.Code, op string, fields ...any) (*wire.Error, error) {
	return p.conn.refuse(codes, op, append([]any{"h", p.h}, fields...)...)
}

func (p *player) reset(seed any) error {
	_, err := p.ask(wire.OpReset, "seed", seed)
	return err
}

// actions returns a as the field a of a step. a has a row for each environment, with one index for each factor.
func (p *player) actions(a []int) wire.Array { return p.actionsAs(wire.I64, a) }

func (p *player) actionsAs(d wire.DType, a []int) wire.Array {
	shape := []int{len(a) / len(p.sizes), len(p.sizes)}
	if p.flat {
		shape = shape[:1]
	}
	return compare.Array(d, a, shape...)
}

// random draws an action for each row, which may be masked.
func (p *player) random(src *rand.Rand) []int {
	a := make([]int, 0, p.n*len(p.sizes))
	for range p.n {
		for _, k := range p.sizes {
			a = append(a, src.IntN(k))
		}
	}
	return a
}

// masks returns the masks of a reply's info. Each row has one number for each action of each factor.
func (p *player) masks(reply wire.Map, rows int) (compare.Column, error) {
	info, e := reply.Sub("info")
	if e != nil {
		return compare.Column{}, e
	}
	c, err := compare.At(info, wire.MaskKey, wire.I8, rows)
	if err != nil {
		return c, err
	}
	return c, p.maskFits(c)
}

func (p *player) maskFits(c compare.Column) error {
	total := 0
	for _, k := range p.sizes {
		total += k
	}
	if len(c.Shape) != 2 || c.Shape[1] != total {
		return fmt.Errorf("masks have shape %v, want [%d %d]", c.Shape, c.Shape[0], total)
	}
	for _, x := range c.V {
		if x != 0 && x != 1 {
			return fmt.Errorf("a mask with %v, want 0 or 1", x)
		}
	}
	return nil
}

// legal draws a legal action for each row of masks.
func (p *player) legal(src *rand.Rand, masks compare.Column) ([]int, error) {
	var a []int
	width := masks.Shape[1]
	for i := range masks.Shape[0] {
		at := i * width
		for f, k := range p.sizes {
			var ok []int
			for j := range k {
				if masks.V[at+j] != 0 {
					ok = append(ok, j)
				}
			}
			if len(ok) == 0 {
				return nil, fmt.Errorf("row %d has no legal action in factor %d", i, f)
			}
			a = append(a, ok[src.IntN(len(ok))])
			at += k
		}
	}
	return a, nil
}

// step is the parsed reply to a step.
type step struct {
	reply     wire.Map
	r         []float64
	te, tr    []bool
	mask      compare.Column
	over      []bool
	ids       []int
	fin       wire.Map
	finalRows []int
}

// readStep parses the reply to a step or recv of the given number of rows, and checks what is true of every such reply.
func (p *player) readStep(reply wire.Map, rows int) (*step, error) {
	s := &step{reply: reply}
	r, err := compare.At(reply, "r", wire.F64, rows)
	if err != nil {
		return nil, err
	}
	te, err := compare.At(reply, "te", wire.Bool, rows)
	if err != nil {
		return nil, err
	}
	tr, err := compare.At(reply, "tr", wire.Bool, rows)
	if err != nil {
		return nil, err
	}
	s.r = r.V
	for i := range rows {
		if te.V[i] != 0 && tr.V[i] != 0 {
			return nil, fmt.Errorf("row %d is terminated and truncated at once", i)
		}
		if math.IsNaN(r.V[i]) || math.IsInf(r.V[i], 0) {
			return nil, fmt.Errorf("row %d has reward %v", i, r.V[i])
		}
		s.te, s.tr = append(s.te, te.V[i] != 0), append(s.tr, tr.V[i] != 0)
		s.over = append(s.over, te.V[i] != 0 || tr.V[i] != 0)
	}
	if s.mask, err = p.masks(reply, rows); err != nil {
		return nil, err
	}
	ids, e := reply.Ints("ids")
	if e != nil {
		return nil, e
	}
	for _, i := range ids {
		s.ids = append(s.ids, int(i))
	}
	if s.fin, e = reply.Sub("fin"); e != nil {
		return nil, e
	}
	if s.fin != nil {
		ids, e := s.fin.Ints("ids")
		if e != nil {
			return nil, e
		}
		for _, i := range ids {
			s.finalRows = append(s.finalRows, int(i))
		}
	}
	return s, nil
}

// step steps all rows.
func (p *player) step(a []int) (*step, error) {
	reply, err := p.ask(wire.OpStep, "a", p.actions(a))
	if err != nil {
		return nil, err
	}
	return p.readStep(reply, p.n)
}
