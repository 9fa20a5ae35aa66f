package compare

import (
	"fmt"
	"math"
	"slices"

	"clustergym/bridge/wire"
)

// Metrics returns the infos that the reply to open calls metrics.
func Metrics(open wire.Map) ([]string, error) {
	meta, e := open.Sub("meta")
	if e != nil {
		return nil, e
	}
	list, _ := meta.Get("info").([]any)
	var names []string
	for _, x := range list {
		f, ok := x.(wire.Map)
		if !ok {
			return nil, fmt.Errorf("meta.info has %v, want maps", x)
		}
		metric, e := f.Bool("metric", false)
		if e != nil {
			return nil, fmt.Errorf("meta.info: %w", e)
		}
		if name, _ := f.Str("name", ""); metric {
			names = append(names, name)
		}
	}
	return names, nil
}

// MetricsAt checks that info has values of metrics only in rows that are over, and in none unless they were asked for.
// An environment may know no value of one, so a row that is over may lack it.
func MetricsAt(info wire.Map, metrics []string, over []bool, asked bool) error {
	for _, name := range metrics {
		if !info.Has(name) && (!asked || !slices.Contains(over, true)) {
			continue
		}
		if !asked {
			return fmt.Errorf("the metric %s is there, which was not asked for", name)
		}
		if _, err := At(info, name, wire.F64, len(over)); err != nil {
			return fmt.Errorf("a step that ends an episode: %w", err)
		}
		there, err := At(info, "_"+name, wire.Bool, len(over))
		if err != nil {
			return err
		}
		for i, yes := range there.V {
			if yes != 0 && !over[i] {
				return fmt.Errorf("the metric %s has a value in row %d, whose episode goes on", name, i)
			}
		}
	}
	return nil
}

// EpisodeAt checks that info has the returns and lengths of the rows that are over, which are total and steps.
func EpisodeAt(info wire.Map, over []bool, total []float64, steps []int) error {
	ep, e := info.Sub("episode")
	if e != nil {
		return e
	}
	r, err := At(ep, "r", wire.F64, len(over))
	if err != nil {
		return fmt.Errorf("episode: %w", err)
	}
	l, err := At(ep, "l", wire.I64, len(over))
	if err != nil {
		return fmt.Errorf("episode: %w", err)
	}
	there, err := At(info, "_episode", wire.Bool, len(over))
	if err != nil {
		return err
	}
	for i, ended := range over {
		if (there.V[i] != 0) != ended {
			return fmt.Errorf("_episode is %v where the ends are %v", there.V, over)
		}
		if ended && (math.Abs(r.V[i]-total[i]) > 1e-9*max(1, math.Abs(total[i])) || int(l.V[i]) != steps[i]) {
			return fmt.Errorf("episode r %v, l %v; the rewards of its %d steps sum to %v", r.V[i], l.V[i], steps[i], total[i])
		}
	}
	return nil
}
