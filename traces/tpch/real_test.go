package tpch_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/tpch"
)

// The published table sums means of all run times as they stand; its median is the upper of the middle two.
func TestRealQueriesHaveTheirPublishedWork(t *testing.T) {
	for _, c := range []struct {
		size          string
		min, p50, max float64 // task-seconds
		tol           float64
	}{{"2g", 39.5, 206.9, 392.6, .051}, {"5g", 94.6, 252.4, 616.4, .051}, {"10g", 200.1, 359.5, 947.6, .051},
		{"20g", 255.1, 570.1, 1611, .51}, {"80g", 564.3, 1649, 5785, .51}} {
		file := "tpch_" + c.size + ".json.gz"
		open := func(o tpch.Options) []traces.Job {
			f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", "tpch-decima", file))
			if errors.Is(err, fs.ErrNotExist) {
				t.Skip("real measurements not at hand: looked for in ../shared, beside this repository, of which it is no part")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r, err := tpch.NewReader(f, file, o)
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := traces.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return jobs
		}
		jobs := open(tpch.Options{Rule: tpch.All})
		var work []time.Duration
		var stages []int
		edges := 0
		for _, j := range jobs {
			work = append(work, j.Work)
			stages = append(stages, len(j.Graph.Tasks))
			edges += len(j.Graph.Edges)
		}
		slices.Sort(work)
		slices.Sort(stages)
		if len(jobs) != 22 || stages[0] != 2 || stages[11] != 8 || stages[21] != 18 || edges != 187 {
			t.Errorf("%s: %d queries, stages %v, %d edges", c.size, len(jobs), stages, edges)
			continue
		}
		near := func(d time.Duration, want float64) bool {
			return d.Seconds()-want <= c.tol && want-d.Seconds() <= c.tol
		}
		if !near(work[0], c.min) || !near(work[11], c.p50) || !near(work[21], c.max) {
			t.Errorf("%s: work %v / %v / %v, want %v / %v / %v s", c.size, work[0], work[11], work[21], c.min, c.p50, c.max)
		}
		// Fresh run times are longer than the others, so counting them once makes every query shorter.
		for i, j := range open(tpch.Options{}) {
			if j.Work > jobs[i].Work || j.Work < jobs[i].Work/2 {
				t.Errorf("%s query %s: %v with duplicates removed, %v with them", c.size, j.ID, j.Work, jobs[i].Work)
			}
		}
	}
}
