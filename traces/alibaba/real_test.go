package alibaba

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"clustergym/traces"
)

// The published statistics of the samples. Sizes and tasks are of all jobs, including those with a task that has not
// terminated, which the reader leaves out; the table gives their share.
func TestRealSamplesHaveTheirPublishedStatistics(t *testing.T) {
	for _, c := range []struct {
		file                      string
		jobs, skipped, zero       int
		p50, p90, p99, mean10, of int // seconds; mean in tenths
		tasks, odd                int // tasks in all; jobs with a measured task that works longer than the job
		t50, t90, t99, tmax       int // tasks per job
		ones                      float64
		statuses                  map[string]int // of tasks
	}{
		{"dag_sample_part1.csv.gz", 4737, 52, 493, 6, 207, 1246, 898, 21834, 17799, 0, 2, 8, 24, 72, .289,
			map[string]int{terminated: 17606, "Failed": 41, "Running": 138, "Waiting": 14}},
		{"dag_sample_50.csv", 50, 1, 2, 12, 236, 2470, 1012, 2470, 197, 0, 2, 8, 26, 26, .2,
			map[string]int{terminated: 195, "Running": 2}},
		{"dag_medium_usage_part1.csv.gz", 2720, 0, 0, 199, 634, 1883, 3234, 4423, 16601, 1, 6, 7, 7, 7, 0,
			map[string]int{terminated: 16601}},
	} {
		t.Run(c.file, func(t *testing.T) {
			path := filepath.Join("..", "..", "..", "shared", "traces", "alibaba-dag-2018", c.file)
			f, err := traces.OpenFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				t.Skip("real trace not at hand: looked for in ../shared, beside this repository, of which it is no part")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r, err := NewReader(f, c.file, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var jobs []traces.Job
			var perJob []int
			tasks, ones, edges, waits := 0, 0, 0, 0
			for {
				var j traces.Job
				if err := r.Next(&j); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				perJob = append(perJob, len(j.Graph.Tasks))
				tasks += len(j.Graph.Tasks)
				edges += len(j.Graph.Edges)
				if j.GPUs == 1 {
					ones++
				}
				longest := time.Duration(0)
				for _, k := range j.Graph.Tasks {
					longest = max(longest, k.Work)
				}
				if longest > j.Work {
					waits++ // a task with more work than its job
				}
				jobs = append(jobs, j)
			}
			skipped := 0
			for _, s := range r.Skipped() {
				skipped += s.Count
			}
			if len(jobs)+skipped != c.jobs || skipped != c.skipped {
				t.Errorf("%d jobs and %d left out (%v), want %d in all, %d left out", len(jobs), skipped, r.Skipped(), c.jobs,
					c.skipped)
			}
			st, err := traces.Summarize(&traces.Slice{Jobs: jobs})
			if err != nil {
				t.Fatal(err)
			}
			sec := func(d time.Duration) int { return int(d / time.Second) }
			if w := st.Work; sec(w.P50) != c.p50 || sec(w.P90) != c.p90 || sec(w.P99) != c.p99 || sec(w.Max) != c.of ||
				int(w.Mean.Round(100*time.Millisecond)/(100*time.Millisecond)) != c.mean10 || st.ZeroWork != c.zero {
				t.Errorf("%+v, %d of 0", w, st.ZeroWork)
			}
			slices.Sort(perJob)
			rank := func(p int) int { return perJob[len(perJob)*p/100] }
			if rank(50) != c.t50 || rank(90) != c.t90 || perJob[len(perJob)-1] > c.tmax || tasks > c.tasks ||
				tasks < c.tasks*97/100 {
				t.Errorf("tasks per job %d/%d/%d/%d, %d in all; want %d/%d/%d/%d, %d with those of jobs left out", rank(50),
					rank(90), rank(99),
					perJob[len(perJob)-1], tasks, c.t50, c.t90, c.t99, c.tmax, c.tasks)
			}
			if share := float64(ones) / float64(len(jobs)); share-c.ones > .01 || c.ones-share > .01 {
				t.Errorf("share of jobs of one instance %.4f, want %.3f", share, c.ones)
			}
			if skipped == 0 && tasks != c.tasks {
				t.Errorf("%d tasks, want %d", tasks, c.tasks)
			}
			if waits != c.odd {
				t.Errorf("%d jobs with a task that works longer than the job, want %d", waits, c.odd)
			}
			if got := statuses(t, path); !maps.Equal(got, c.statuses) {
				t.Errorf("tasks %v, want %v", got, c.statuses)
			}
			t.Logf("%d jobs, %d tasks, %d edges", len(jobs), tasks, edges)
		})
	}
}

// statuses counts the tasks of a file by status.
func statuses(t *testing.T, path string) map[string]int {
	f, err := traces.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tab, err := newTable(f, path)
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for {
		var w row
		if err := tab.next(&w); err == io.EOF {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
		n[w.status]++
	}
}
