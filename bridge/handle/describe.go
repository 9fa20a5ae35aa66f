package handle

import (
	"math"
	"strconv"
	"strings"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// writeSpec writes the field spec of the reply to open, with what Gymnasium keeps in an EnvSpec.
func (h *Handle) writeSpec(w *wire.Writer, sha string) {
	s := h.spec
	w.Map(7)
	w.Key("id")
	w.Str(s.ID)
	w.Key("version")
	if v, ok := version(s.ID); ok {
		w.Int(int64(v))
	} else {
		w.Nil()
	}
	w.Key("max_episode_steps")
	if s.MaxSteps > 0 {
		w.Int(int64(s.MaxSteps))
	} else {
		w.Nil()
	}
	w.Key("reward_threshold")
	if math.IsNaN(s.Solved) {
		w.Nil()
	} else {
		w.Float(s.Solved)
	}
	w.Key("reward_range")
	w.List(2)
	w.Float(math.Inf(-1))
	w.Float(math.Inf(1))
	w.Key("nondeterministic")
	w.Bool(false)
	w.Key("scenario_sha")
	w.Str(sha)
}

// version returns the number at the end of an id, as in JobSelect-v1.
func version(id string) (int, bool) {
	_, tail, ok := cutLast(id, "-v")
	if !ok {
		return 0, false
	}
	v, err := strconv.Atoi(tail)
	return v, err == nil && v >= 0
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// meta returns the field meta of the reply to open, with what the spaces do not say: the description of every field, the
// infos that can be asked for, and the environments' abilities. The keys that the factory adds come last.
func (h *Handle) meta(more any) wire.Map {
	_, saves := h.guards[0].inner.(env.Snapshotter)
	m := wire.Map{
		{Key: "fields", Value: fields(h.spec.Obs)},
		{Key: "info", Value: fields(h.spec.Info)},
		{Key: "noop", Value: h.spec.NoOp},
		{Key: "tau_s", Value: h.spec.Tau.Seconds()},
		{Key: "autoreset", Value: h.mode.String()},
		{Key: "snapshots", Value: saves},
		{Key: "render_modes", Value: h.renderModes()},
		{Key: "render_fps", Value: h.guards[0].frameRate()},
		{Key: "methods", Value: h.methods()},
	}
	add := func(key string, v any) {
		if !m.Has(key) {
			m = append(m, wire.Pair{Key: key, Value: v})
		}
	}
	switch more := more.(type) {
	case nil:
	case wire.Map:
		for _, p := range more {
			add(p.Key, p.Value)
		}
	case map[string]any:
		for _, k := range sortedKeys(more) {
			add(k, more[k])
		}
	default:
		add("more", more)
	}
	return m
}

// fields returns names, descriptions, shapes and bounds of fields. A scalar field has shape [] here and [1] in a space,
// because spaces have no scalars.
func fields(all []env.Field) []any {
	list := make([]any, 0, len(all))
	for _, f := range all {
		shape := f.Shape
		if shape == nil {
			shape = []int{}
		}
		m := wire.Map{
			{Key: "name", Value: f.Name}, {Key: "shape", Value: shape},
			{Key: "low", Value: float64(f.Low)}, {Key: "high", Value: float64(f.High)},
			{Key: "unit", Value: f.Unit}, {Key: "doc", Value: f.Doc},
		}
		if f.Group > 0 {
			m = append(m, wire.Pair{Key: "group", Value: f.Group})
		}
		if f.Filled > 0 {
			m = append(m, wire.Pair{Key: "filled", Value: f.Filled})
		}
		if f.Critic {
			m = append(m, wire.Pair{Key: "critic", Value: true})
		}
		if f.Metric {
			m = append(m, wire.Pair{Key: "metric", Value: true})
		}
		list = append(list, m)
	}
	return list
}
