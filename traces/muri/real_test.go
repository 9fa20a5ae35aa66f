package muri_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/muri"
)

func TestRealTracesHaveTheirPublishedStatistics(t *testing.T) {
	for _, c := range []struct {
		file                     string
		jobs                     int
		sizes                    [5]float64 // percent of the jobs with 1, 2, 4, 8, 16 or more GPUs
		p50, p90, p99, mean, max int
		days, perHour            float64
	}{
		{"trace1.csv.gz", 1494, [5]float64{35.9, 0.3, 28.3, 31.1, 4.4}, 14393, 655813, 2658790, 250452, 4628239, 125.2,
			0.497},
		{"trace3.csv.gz", 992, [5]float64{13.5, 2.2, 3.4, 69.7, 11.2}, 3402, 189460, 333078, 46865, 927475, 94.5, 0.437},
		{"trace4.csv.gz", 2638, [5]float64{63.7, 10, 23.2, 3.1, 0}, 3332, 366467, 1003525, 119336, 4014063, 85.2, 1.29},
	} {
		t.Run(c.file, func(t *testing.T) {
			f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", "philly-muri", c.file))
			if errors.Is(err, fs.ErrNotExist) {
				t.Skip("real trace not at hand: looked for in ../shared, beside this repository, of which it is no part")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			d, err := muri.NewReader(f, c.file)
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := traces.ReadAll(d)
			if err != nil {
				t.Fatal(err)
			}
			st, err := traces.Summarize(&traces.Slice{Jobs: jobs})
			if err != nil {
				t.Fatal(err)
			}
			if st.Jobs != c.jobs || st.ZeroWork != 0 || d.Moved() != 0 || st.First != 0 || len(st.Models) != 8 {
				t.Errorf("%d jobs, %d without work, %d moved, first at %v, %d models; want %d, 0, 0, 0, 8", st.Jobs, st.ZeroWork,
					d.Moved(), st.First, len(st.Models), c.jobs)
			}
			for _, q := range []struct {
				name string
				got  time.Duration
				want int
			}{{"p50", st.Work.P50, c.p50}, {"p90", st.Work.P90, c.p90}, {"p99", st.Work.P99, c.p99},
				{"mean", st.Work.Mean, c.mean}, {"max", st.Work.Max, c.max}} {
				if got := q.got.Round(time.Second); got != time.Duration(q.want)*time.Second {
					t.Errorf("%s %v, want %d s", q.name, q.got, q.want)
				}
			}
			known := 0
			for i, want := range c.sizes {
				to := (1<<i + 1) * 1000
				if i == 4 {
					to = 0
				}
				n := st.Between(1000<<i, to)
				known += n
				if got := 100 * float64(n) / float64(st.Jobs); !near(got, want, .0501) {
					t.Errorf("%.2f %% of the jobs have %d GPUs, want %.1f", got, 1<<i, want)
				}
			}
			if known != st.Jobs {
				t.Errorf("%d jobs have another number of GPUs", st.Jobs-known)
			}
			if days := st.Span.Hours() / 24; !near(days, c.days, .0501) || !near(st.JobsPerHour, c.perHour, .005*c.perHour) {
				t.Errorf("%.3f days, %.4f jobs/h; want %v, %v", days, st.JobsPerHour, c.days, c.perHour)
			}
			profiles := map[*traces.Profile]bool{}
			for _, j := range jobs {
				profiles[j.Profile] = true
				// Run times are rounded to seconds, which is up to a third of a short job's run time.
				iteration := time.Duration(float64(j.GPUs) / j.Profile.Throughput(j.GPUs) * float64(time.Second))
				if sum := time.Duration(j.Iterations) * iteration; j.Work < sum-time.Second || j.Work > sum+2*time.Second {
					t.Errorf("job %s: %d iterations of %v are not %v", j.ID, j.Iterations, iteration, j.Work)
				}
			}
			if len(profiles) != 8 {
				t.Errorf("%d profiles, want one for each of 8 models", len(profiles))
			}
		})
	}
}

func near(a, b, tol float64) bool { return a-b <= tol && b-a <= tol }
