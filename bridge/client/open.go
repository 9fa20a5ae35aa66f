package client

import (
	"context"
	"fmt"
	"math"

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
	m := wire.MapOf(
		"env", q.id, "n", q.n, "kwargs", q.kwargs, "autoreset", string(q.Autoreset), "obs", wire.ViewFlat,
		"mask", []string{"info"}, "invalid", q.Invalid, "info", "all",
	)
	if q.Batch > 0 {
		m = append(m, wire.MapOf("recv", "any", "batch", q.Batch)...)
	}
	h.request(wire.OpOpen, m)
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
	case nil, bool, int, int32, int64, uint32, uint64, float32, float64, string, []byte, wire.Array, []string, []int,
		[]float64:
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
	p := &parser{wire.Fields{Map: m}}
	id := uint32(p.Int("h", 0, 1, 1<<32-1))
	spec, meta := &parser{wire.Fields{Map: p.Sub("spec")}}, &parser{wire.Fields{Map: p.Sub("meta")}}
	r := &remote{tasks: p.fields("tasks"), sha: spec.Str("scenario_sha", "")}
	s := env.Spec{
		ID:       spec.Str("id", ""),
		MaxSteps: int(spec.Int("max_episode_steps", 0, 0, math.MaxInt32)),
		Solved:   spec.number("reward_threshold", math.NaN()),
		NoOp:     int(meta.Int("noop", -1, -1, math.MaxInt32)),
		Tau:      nanoseconds(meta.number("tau_s", 0)),
		Obs:      meta.fields("fields"),
		Info:     meta.fields("info"),
	}
	p.Fail(spec.Err)
	p.Fail(meta.Err)
	p.action("act_space", &s.Action)
	if len(s.Action.Sizes) == 0 && len(s.Action.Low) == 0 {
		p.Fail(wire.Errorf(wire.BadRequest, "no actions"))
	}
	if id == 0 {
		p.Fail(wire.Errorf(wire.BadRequest, "no handle"))
	}
	space, e := wire.ParseSpace(m.Get("obs_space"))
	if p.Fail(e); p.Err != nil {
		return nil, id, replyFault(p.Err)
	}
	if space.Kind != "box" || len(space.Shape) != 1 || space.Shape[0] != s.ObsLen() {
		return nil, id, fmt.Errorf("%w: observations are a %s of shape %v, their fields have %d numbers", ErrReply,
			space.Kind, space.Shape, s.ObsLen())
	}
	r.l = newLayout(s)
	r.meta, _ = own(meta.Map).(wire.Map)
	return r, id, nil
}

// parser reads fields of the reply to open.
type parser struct{ wire.Fields }

func (p *parser) number(key string, def float64) float64 {
	switch v := p.Get(key).(type) {
	case nil:
	case int64:
		return float64(v)
	case float64:
		return v
	default:
		p.Fail(wire.Errorf(wire.BadRequest, "field %s is no number", key))
	}
	return def
}

// fields reads the descriptions of observations, infos or tasks.
func (p *parser) fields(key string) []env.Field {
	list, ok := p.Get(key).([]any)
	if !ok {
		if p.Get(key) != nil {
			p.Fail(wire.Errorf(wire.BadRequest, "field %s is no list", key))
		}
		return nil
	}
	var out []env.Field
	for _, x := range list {
		m, ok := x.(wire.Map)
		if !ok {
			p.Fail(wire.Errorf(wire.BadRequest, "field %s is no list of maps", key))
			return nil
		}
		e := &parser{wire.Fields{Map: m}}
		f := env.Field{
			Name: e.Str("name", ""), Unit: e.Str("unit", ""), Doc: e.Str("doc", ""),
			Low: float32(e.number("low", 0)), High: float32(e.number("high", 0)),
			Group: int(e.Int("group", 0, 0, math.MaxInt32)), Filled: int(e.Int("filled", 0, 0, math.MaxInt32)),
			Metric: e.Bool("metric", false), Critic: e.Bool("critic", false),
		}
		shape := e.Ints("shape")
		p.Fail(e.Err)
		total := int64(1)
		for _, d := range shape {
			if d < 1 || d > math.MaxInt32/total {
				p.Fail(wire.Errorf(wire.BadRequest, "field %s has shape %v", f.Name, shape))
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
func (p *parser) action(key string, a *env.ActionSpec) {
	s, e := wire.ParseSpace(p.Get(key))
	if e != nil {
		p.Fail(e)
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
					p.Fail(wire.Errorf(wire.BadRequest, "an action factor of %d values", n))
				}
				a.Sizes = append(a.Sizes, int(n))
			}
		case s.Kind == "box" && len(s.Shape) == 1 && a.Low == nil:
			for i := range s.Shape[0] {
				a.Low = append(a.Low, float32(s.Low[min(i, len(s.Low)-1)]))
				a.High = append(a.High, float32(s.High[min(i, len(s.High)-1)]))
			}
		default:
			p.Fail(wire.Errorf(wire.BadRequest, "actions of kind %s", s.Kind))
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
