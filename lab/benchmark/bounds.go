package benchmark

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"clustergym/lab/config"
)

// bound is what no policy gets below on the development windows of a task.
type bound struct {
	Hash  string    `json:"hash"`  // of the task
	Least []float64 `json:"least"` // of the metric, by window
}

// recorded are the bounds of bounds.json, by task.
var recorded = sync.OnceValue(func() map[string]bound {
	all := map[string]bound{}
	b, err := files.ReadFile("bounds.json")
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		panic("benchmark: " + err.Error()) // impossible for an embedded file, which a test reads
	}
	return all
})

// possible returns an error if results on the development windows, which check has passed, are better than any policy
// can be.
func (v *Version) possible(r *Results) error {
	if r.Split != Development {
		return nil
	}
	return v.each(r, func(t *Task, res *TaskResult, cfg *config.Config) error { return res.possible(t, cfg) })
}

// possible is Version.possible for one task, whose configuration is cfg.
func (r *TaskResult) possible(t *Task, cfg *config.Config) error {
	b, ok := recorded()[t.Name]
	if !ok || b.Hash != t.Hash {
		return nil
	}
	m := metric(cfg)
	for k, run := range r.Values {
		for w, x := range run {
			if w < len(b.Least) && x < b.Least[w]*(1-tolerance) {
				return fmt.Errorf("run %d, window %d: it says a %s of %s, and no policy that finishes all jobs gets below %s there",
					k+1, w, m.Title, digits(x, m.Unit), digits(b.Least[w], m.Unit))
			}
		}
	}
	return nil
}

// digits returns a value and its unit as text.
func digits(x float64, unit string) string {
	if unit != "" {
		unit = " " + unit
	}
	return strconv.FormatFloat(x, 'g', 6, 64) + unit
}
