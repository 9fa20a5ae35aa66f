package gavel_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/gavel"
)

func TestRealTracesHaveTheirPublishedStatistics(t *testing.T) {
	for _, c := range []struct {
		file          string
		jobs          int
		sizes         [5]float64 // percent of the jobs with 1, 2, 4, 8, 16 or more GPUs
		other         float64
		days, perHour float64
	}{
		{"philly-gavel/0e4a51.trace.gz", 1181, [5]float64{36.9, 19.1, 38.2, 5.8, 0}, 0, 85.2, 0.577},
		{"philly-gavel/103959.trace.gz", 986, [5]float64{50.7, 4.1, 45.2, 0, 0}, 0, 91.6, 0.449},
		{"philly-gavel/11cb48.trace.gz", 2000, [5]float64{78, 4, 12.8, 1.1, 4}, 0, 101.8, 0.818},
		{"philly-gavel/23dbec.trace", 9, [5]float64{22.2, 0, 0, 77.8, 0}, 0, 2.18, 0.172},
		{"philly-gavel/2869ce.trace.gz", 533, [5]float64{12.2, 1.1, 2.1, 71.1, 13.5}, 0, 94.2, 0.236},
		{"philly-gavel/51b7ef.trace", 18, [5]float64{16.7, 0, 11.1, 72.2, 0}, 0, 35, 0.0214},
		{"philly-gavel/6214e9.trace.gz", 2000, [5]float64{96.4, 1.4, 1.6, 0.7, 0}, 0, 48.4, 1.72},
		{"philly-gavel/795a4c.trace", 3, [5]float64{100, 0, 0, 0, 0}, 0, 0.0389, 3.21},
		{"philly-gavel/7f04ca.trace.gz", 972, [5]float64{40.5, 0.2, 24.1, 32, 3.2}, 0, 125.2, 0.323},
		{"philly-gavel/925e2b.trace", 4, [5]float64{25, 0, 0, 75, 0}, 0, 0.143, 1.17},
		{"philly-gavel/b436b2.trace.gz", 2000, [5]float64{81.6, 1.1, 6.7, 8.6, 2}, 0, 31.5, 2.64},
		{"philly-gavel/ed69ec.trace.gz", 951, [5]float64{100, 0, 0, 0, 0}, 0, 75.9, 0.522},
		{"philly-gavel/ee9e8c.trace.gz", 2000, [5]float64{48.8, 2.4, 16.1, 27.1, 5.6}, 0.1, 52.2, 1.6},
	} {
		t.Run(c.file, func(t *testing.T) {
			d := published(t, c.file)
			st, err := traces.Summarize(d)
			if err != nil {
				t.Fatal(err)
			}
			if st.Jobs != c.jobs || st.ZeroWork != c.jobs || d.Moved() != 0 || st.First != 0 {
				t.Errorf("%d jobs, %d without work, %d moved, first at %v; want %d, all, 0, 0", st.Jobs, st.ZeroWork, d.Moved(),
					st.First, c.jobs)
			}
			share := func(from, to int) float64 { return 100 * float64(st.Between(from*1000, to*1000)) / float64(st.Jobs) }
			known := 0.0
			for i, want := range c.sizes {
				from, to := 1<<i, 1<<i+1
				if i == 4 {
					to = 0
				}
				got := share(from, to)
				known += got
				if !near(got, want, .0501) {
					t.Errorf("%.2f %% of the jobs have %d GPUs, want %.1f", got, from, want)
				}
			}
			if !near(100-known, c.other, .0501) {
				t.Errorf("%.2f %% have another number of GPUs, want %.1f", 100-known, c.other)
			}
			if days := st.Span.Hours() / 24; !near(days, c.days, .005*c.days) ||
				!near(st.JobsPerHour, c.perHour, .005*c.perHour) {
				t.Errorf("%.3f days, %.4f jobs/h; want %v, %v", days, st.JobsPerHour, c.days, c.perHour)
			}
		})
	}
}

func TestTheRunOnAClusterHasNoDeadlines(t *testing.T) {
	d := published(t, "gavel-physical/max_min_fairness.trace")
	jobs, err := traces.ReadAll(d)
	if err != nil {
		t.Fatal(err)
	}
	atOnce := 0
	for i, j := range jobs {
		if j.Priority != 1 || j.SLO != 0 {
			t.Errorf("job %d: %+v", i, j)
		}
		if j.Submit == 0 {
			atOnce++
		}
	}
	if n := len(jobs); n != 96 || atOnce != 36 || jobs[n-1].Submit != 46317*time.Second || d.Moved() != 0 {
		t.Errorf("%d jobs, %d of them at 0, %d moved, the last %+v", n, atOnce, d.Moved(), jobs[n-1])
	}
}

func published(t *testing.T, file string) *gavel.Reader {
	t.Helper()
	f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", filepath.FromSlash(file)))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("real trace not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := gavel.NewReader(f, file)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func near(a, b, tol float64) bool { return a-b <= tol && b-a <= tol }
