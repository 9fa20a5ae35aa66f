package client

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// request holds the arguments of open.
type request struct {
	id     string
	kwargs map[string]any
	n      int
	VecConfig
}

// open opens environments on the server.
func (c *Client) open(ctx context.Context, q request) (*remote, error) {
	if err := encodable("kwargs", q.kwargs); err != nil {
		return nil, err
	}
	c.adopt(ctx)
	h := c.newHandle(0)
	n := 8
	if q.Batch > 0 {
		n += 2
	}
	w := h.begin(wire.OpOpen, n)
	w.Key("env")
	w.Str(q.id)
	w.Key("n")
	w.Int(int64(q.n))
	w.Key("kwargs")
	w.Map(len(q.kwargs))
	for _, k := range slices.Sorted(maps.Keys(q.kwargs)) {
		w.Key(k)
		w.Value(q.kwargs[k])
	}
	w.Key("autoreset")
	w.Str(string(q.Autoreset))
	w.Key("obs")
	w.Str(wire.ViewFlat)
	w.Key("mask")
	w.Value([]string{"info"})
	w.Key("invalid")
	w.Str(q.Invalid)
	w.Key("info")
	w.Str("all")
	if q.Batch > 0 {
		w.Key("recv")
		w.Str("any")
		w.Key("batch")
		w.Int(int64(q.Batch))
	}
	if err := h.roundTrip(ctx); err != nil {
		c.orphan(h)
		return nil, fmt.Errorf("client: open %s: %w", q.id, err)
	}
	defer h.release()
	r, id, err := parseOpened(h.reply.reply)
	opened := c.newHandle(id)
	if err != nil {
		if id == 0 {
			return nil, fmt.Errorf("client: open %s: %w", q.id, err)
		}
		opened.begin(wire.OpClose, 0)
		if e := opened.roundTrip(ctx); e == nil {
			opened.release()
		}
		return nil, fmt.Errorf("client: open %s: %w", q.id, err)
	}
	r.h = opened
	return r, nil
}

// encodable returns an error that says where v has a value of a type that messages cannot carry.
func encodable(at string, v any) error {
	switch v := v.(type) {
	case nil, bool, int, int32, int64, uint32, uint64, float32, float64, string, []byte, wire.Array, []string, []int, []float64:
	case []any:
		for i, x := range v {
			if err := encodable(fmt.Sprintf("%s[%d]", at, i), x); err != nil {
				return err
			}
		}
	case wire.Map:
		for _, p := range v {
			if err := encodable(at+"."+p.Key, p.Value); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, x := range v {
			if err := encodable(at+"."+k, x); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("client: %s is of type %T, want numbers, strings, booleans, lists or maps of them", at, v)
	}
	return nil
}

// parseOpened reads the reply to open and returns its contents and the handle's number. It copies what it keeps.
func parseOpened(m wire.Map) (*remote, uint32, error) {
	p := parser{}
	id := uint32(p.whole(m, "h", 0, 1, 1<<32-1))
	spec, meta := p.sub(m, "spec"), p.sub(m, "meta")
	r := &remote{tasks: p.fields(m, "tasks"), sha: p.str(spec, "scenario_sha")}
	s := env.Spec{
		ID:       p.str(spec, "id"),
		MaxSteps: int(p.whole(spec, "max_episode_steps", 0, 0, math.MaxInt32)),
		Solved:   p.number(spec, "reward_threshold", math.NaN()),
		NoOp:     int(p.whole(meta, "noop", -1, -1, math.MaxInt32)),
		Tau:      nanoseconds(p.number(meta, "tau_s", 0)),
		Obs:      p.fields(meta, "fields"),
		Info:     p.fields(meta, "info"),
	}
	p.action(m.Get("act_space"), &s.Action)
	if len(s.Action.Sizes) == 0 && len(s.Action.Low) == 0 {
		p.note(wire.Errorf(wire.BadRequest, "no actions"))
	}
	if id == 0 {
		p.note(wire.Errorf(wire.BadRequest, "no handle"))
	}
	if p.err != nil {
		return nil, id, fmt.Errorf("%w: %w", ErrReply, p.err)
	}
	space, e := wire.ParseSpace(m.Get("obs_space"))
	if e != nil {
		return nil, id, fmt.Errorf("%w: %w", ErrReply, e)
	}
	if space.Kind != "box" || len(space.Shape) != 1 || space.Shape[0] != s.ObsLen() {
		return nil, id, fmt.Errorf("%w: observations are a %s of shape %v, their fields have %d numbers", ErrReply, space.Kind, space.Shape, s.ObsLen())
	}
	r.l = newLayout(s)
	r.meta, _ = own(meta).(wire.Map)
	return r, id, nil
}

// parser reads fields of a reply and keeps the first fault.
type parser struct{ err error }

func (p *parser) note(e *wire.Error) {
	if e != nil && p.err == nil {
		p.err = e
	}
}

func (p *parser) sub(m wire.Map, key string) wire.Map {
	v, e := m.Sub(key)
	p.note(e)
	return v
}

func (p *parser) str(m wire.Map, key string) string {
	v, e := m.Str(key, "")
	p.note(e)
	return v
}

func (p *parser) whole(m wire.Map, key string, def, lo, hi int64) int64 {
	v, e := m.Int(key, def, lo, hi)
	p.note(e)
	return v
}

func (p *parser) number(m wire.Map, key string, def float64) float64 {
	switch v := m.Get(key).(type) {
	case nil:
	case int64:
		return float64(v)
	case float64:
		return v
	default:
		p.note(wire.Errorf(wire.BadRequest, "field %s is no number", key))
	}
	return def
}

// fields reads the descriptions of observations, infos or tasks.
func (p *parser) fields(m wire.Map, key string) []env.Field {
	list, ok := m.Get(key).([]any)
	if !ok {
		if m.Get(key) != nil {
			p.note(wire.Errorf(wire.BadRequest, "field %s is no list", key))
		}
		return nil
	}
	var out []env.Field
	for _, x := range list {
		e, ok := x.(wire.Map)
		if !ok {
			p.note(wire.Errorf(wire.BadRequest, "field %s is no list of maps", key))
			return nil
		}
		f := env.Field{
			Name: p.str(e, "name"), Unit: p.str(e, "unit"), Doc: p.str(e, "doc"),
			Low: float32(p.number(e, "low", 0)), High: float32(p.number(e, "high", 0)),
		}
		f.Group = int(p.whole(e, "group", 0, 0, math.MaxInt32))
		f.Filled = int(p.whole(e, "filled", 0, 0, math.MaxInt32))
		metric, fault := e.Bool("metric", false)
		p.note(fault)
		critic, fault := e.Bool("critic", false)
		p.note(fault)
		f.Metric, f.Critic = metric, critic
		shape, fault := e.Ints("shape")
		p.note(fault)
		total := int64(1)
		for _, d := range shape {
			if d < 1 || d > math.MaxInt32/total {
				p.note(wire.Errorf(wire.BadRequest, "field %s has shape %v", f.Name, shape))
				return nil
			}
			total *= d
			f.Shape = append(f.Shape, int(d))
		}
		out = append(out, f)
	}
	return out
}

// action reads a space of actions.
func (p *parser) action(v any, a *env.ActionSpec) {
	s, e := wire.ParseSpace(v)
	if e != nil {
		p.note(e)
		return
	}
	parts := []wire.Space{*s}
	if s.Kind == "dict" {
		parts = s.Items
	}
	for _, s := range parts {
		switch {
		case s.Kind == "discrete" && s.Start == 0 && s.N <= math.MaxInt32 && a.Sizes == nil:
			a.Sizes = []int{int(s.N)}
		case s.Kind == "mdiscrete" && a.Sizes == nil:
			for _, n := range s.NVec {
				if n < 1 || n > math.MaxInt32 {
					p.note(wire.Errorf(wire.BadRequest, "an action factor of %d values", n))
				}
				a.Sizes = append(a.Sizes, int(n))
			}
		case s.Kind == "box" && len(s.Shape) == 1 && a.Low == nil:
			for i := range s.Shape[0] {
				a.Low = append(a.Low, float32(s.Low[min(i, len(s.Low)-1)]))
				a.High = append(a.High, float32(s.High[min(i, len(s.High)-1)]))
			}
		default:
			p.note(wire.Errorf(wire.BadRequest, "actions of kind %s", s.Kind))
		}
	}
}

// own returns a deep copy of v, whose slices may be views of a frame.
func own(v any) any {
	switch v := v.(type) {
	case []byte:
		return append([]byte(nil), v...)
	case wire.Array:
		v.Data = append([]byte(nil), v.Data...)
		return v
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = own(x)
		}
		return out
	case wire.Map:
		out := make(wire.Map, len(v))
		for i, e := range v {
			out[i] = wire.Pair{Key: e.Key, Value: own(e.Value)}
		}
		return out
	}
	return v
}
