package conformance

import (
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
	limit int // max_episode_steps, 0 = none
}

// openOn opens n environments on c.
func (s *suite) openOn(c *conn, n int, more ...any) *player {
	kwargs := s.Kwargs
	if kwargs == nil {
		kwargs = map[string]any{}
	}
	reply := c.ask(wire.OpOpen, list(merge(m("env", s.Env, "n", n, "kwargs", kwargs), m(more...)))...)
	return s.newPlayer(c, n, reply)
}

func (s *suite) newPlayer(c *conn, n int, reply wire.Map) *player {
	p := &player{conn: c, n: n, open: reply}
	var e *wire.Error
	if p.h, e = reply.Int("h", 0, 1, 1<<32-1); e != nil || p.h == 0 {
		failf("open gives handle %v, want a number above 0", reply.Get("h"))
	}
	space := field(wire.ParseSpace(reply.Get("act_space")))
	switch space.Kind {
	case "discrete":
		p.flat, p.sizes = true, []int{int(space.N)}
	case "mdiscrete":
		p.sizes = integers(space.NVec)
	default:
		failf("%s has actions of kind %s; the suite needs discrete ones: name another environment", s.Env, space.Kind)
	}
	p.limit = int(field(field(reply.Sub("spec")).Int("max_episode_steps", 0, 0, 1<<31)))
	return p
}

func integers(v []int64) []int {
	var out []int
	for _, x := range v {
		out = append(out, int(x))
	}
	return out
}

// start begins a session and opens n environments.
func (s *suite) start(n int, more ...any) *player { return s.openOn(s.dial(), n, more...) }

// twins begins a session with two handles of n environments, both reset with the seed.
func (s *suite) twins(n, seed int) (p, twin *player) {
	p = s.start(n)
	twin = s.openOn(p.conn, n)
	p.reset(seed)
	twin.reset(seed)
	return p, twin
}

// stepAlike steps two handles by the same actions, and compares the replies.
func stepAlike(p, twin *player, a []int) {
	must(compare.Same(p.ask(wire.OpStep, "a", p.actions(a)), twin.ask(wire.OpStep, "a", twin.actions(a))))
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
func (p *player) ask(op string, fields ...any) wire.Map {
	return p.conn.ask(op, append([]any{"h", p.h}, fields...)...)
}

func (p *player) refuse(codes []wire.Code, op string, fields ...any) wire.Error {
	return p.conn.refuse(codes, op, append([]any{"h", p.h}, fields...)...)
}

func (p *player) reset(seed any) { p.ask(wire.OpReset, "seed", seed) }

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
func (p *player) masks(reply wire.Map, rows int) compare.Column {
	c := need(compare.At(field(reply.Sub("info")), wire.MaskKey, wire.I8, rows))
	p.maskFits(c)
	return c
}

func (p *player) maskFits(c compare.Column) {
	total := 0
	for _, k := range p.sizes {
		total += k
	}
	if len(c.Shape) != 2 || c.Shape[1] != total {
		failf("masks have shape %v, want [%d %d]", c.Shape, c.Shape[0], total)
	}
	for _, x := range c.V {
		if x != 0 && x != 1 {
			failf("a mask with %v, want 0 or 1", x)
		}
	}
}

// legal draws a legal action for each row of masks.
func (p *player) legal(src *rand.Rand, masks compare.Column) []int {
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
				failf("row %d has no legal action in factor %d", i, f)
			}
			a = append(a, ok[src.IntN(len(ok))])
			at += k
		}
	}
	return a
}

// step is the parsed reply to a step.
type step struct {
	reply     wire.Map
	r         []float64
	te, tr    []bool
	mask      compare.Column
	over      []bool
	fin       wire.Map
	finalRows []int
}

// readStep parses the reply to a step or recv of the given number of rows, and checks what is true of every such reply.
func (p *player) readStep(reply wire.Map, rows int) *step {
	s := &step{reply: reply}
	r := need(compare.At(reply, "r", wire.F64, rows))
	te := need(compare.At(reply, "te", wire.Bool, rows))
	tr := need(compare.At(reply, "tr", wire.Bool, rows))
	s.r = r.V
	for i := range rows {
		if te.V[i] != 0 && tr.V[i] != 0 {
			failf("row %d is terminated and truncated at once", i)
		}
		if math.IsNaN(r.V[i]) || math.IsInf(r.V[i], 0) {
			failf("row %d has reward %v", i, r.V[i])
		}
		s.te, s.tr = append(s.te, te.V[i] != 0), append(s.tr, tr.V[i] != 0)
		s.over = append(s.over, te.V[i] != 0 || tr.V[i] != 0)
	}
	s.mask = p.masks(reply, rows)
	field(reply.Ints("ids"))
	if s.fin = field(reply.Sub("fin")); s.fin != nil {
		s.finalRows = integers(field(s.fin.Ints("ids")))
	}
	return s
}

// step steps all rows.
func (p *player) step(a []int) *step { return p.readStep(p.ask(wire.OpStep, "a", p.actions(a)), p.n) }
