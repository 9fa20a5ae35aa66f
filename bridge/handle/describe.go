package handle

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// specOf returns the field spec of the reply to open, with what Gymnasium keeps in an EnvSpec.
func (h *Handle) specOf(sha string) wire.Map {
	s := h.spec
	var number, steps, solved any // nil = the environment has none
	if v, ok := version(s.ID); ok {
		number = v
	}
	if s.MaxSteps > 0 {
		steps = s.MaxSteps
	}
	if !math.IsNaN(s.Solved) {
		solved = s.Solved
	}
	return wire.MapOf(
		"id", s.ID, "version", number, "max_episode_steps", steps, "reward_threshold", solved,
		"reward_range", []float64{math.Inf(-1), math.Inf(1)}, "nondeterministic", false, "scenario_sha", sha,
	)
}

// version returns the number at the end of an id, as in JobSelect-v1.
func version(id string) (int, bool) {
	i := strings.LastIndex(id, "-v")
	if i < 0 {
		return 0, false
	}
	v, err := strconv.Atoi(id[i+2:])
	return v, err == nil && v >= 0
}

// meta returns the field meta of the reply to open, with what the spaces do not say: the description of every field,
// the infos that can be asked for, and the environments' abilities. The keys that the factory adds come last.
func (h *Handle) meta(more any) wire.Map {
	_, saves := h.guards[0].inner.(env.Snapshotter)
	m := wire.MapOf(
		"fields", fields(h.spec.Obs), "info", fields(h.spec.Info), "noop", h.spec.NoOp, "tau_s", h.spec.Tau.Seconds(),
		"autoreset", h.mode.String(), "snapshots", saves, "render_modes", h.renderModes(),
		"render_fps", h.guards[0].frameRate(), "methods", h.methods(),
	)
	add := func(key string, v any) {
		if !m.Has(key) {
			m.Add(key, v)
		}
	}
	switch more := more.(type) {
	case nil:
	case wire.Map:
		for _, p := range more {
			add(p.Key, p.Value)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(more)) {
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
		m := wire.MapOf("name", f.Name, "shape", shape, "low", f.Low, "high", f.High, "unit", f.Unit, "doc", f.Doc)
		if f.Group > 0 {
			m.Add("group", f.Group)
		}
		if f.Filled > 0 {
			m.Add("filled", f.Filled)
		}
		if f.Critic {
			m.Add("critic", true)
		}
		if f.Metric {
			m.Add("metric", true)
		}
		list = append(list, m)
	}
	return list
}
