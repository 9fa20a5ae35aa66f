package swf_test

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/swf"
)

// Figures of the whole logs; the reader drops the few jobs without run time.
func TestRealLogsHaveTheirPublishedStatistics(t *testing.T) {
	for _, c := range []struct {
		file            string
		rows, zero      int
		p50, p90, p99   int
		max, mean       int
		noEstimate      int
		users, procs    int
		failed, stopped int
		ones, largest   float64 // share of size 1, of 65-256
		days, perHour   float64
		long            bool
	}{
		{"lublin_256.swf.gz", 10000, 0, 137, 15590, 36174, 124707, 4863, 10000, 0, 256, 0, 0, .249, .068, 89.2, 4.67, false},
		{"KTH-SP2-1996-2.1-cln.swf.gz", 28489, 8, 847, 28696, 77933, 226709, 8877, 0, 214, 100, 7948, 0, .329, .011, 339.9,
			3.49, false},
		{"NASA-iPSC-1993-3.1-cln.swf.gz", 18239, 173, 86, 1480, 10932, 62643, 765, 18239, 69, 128, 0, 0, .271, .023, 92, 8.26,
			false},
		{"RICC-2010-2_first75d.swf.gz", 146909, 9, 367, 51192, 259203, 283610, 17361, 2, 134, 8192, 0, 9081, .664, .063, 75,
			81.6, true},
	} {
		t.Run(c.file, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("long log")
			}
			f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", "swf", c.file))
			if errors.Is(err, fs.ErrNotExist) {
				t.Skip("real log not at hand: looked for in ../shared, beside this repository, of which it is no part")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r, err := swf.NewReader(f, c.file, swf.Options{})
			if err != nil {
				t.Fatal(err)
			}
			st, err := traces.Summarize(r)
			if err != nil {
				t.Fatal(err)
			}
			if r.Dropped() != c.zero || st.Jobs+r.Dropped() != c.rows {
				t.Errorf("%d jobs and %d dropped, want %d and %d", st.Jobs, r.Dropped(), c.rows-c.zero, c.zero)
			}
			if p := r.Header().Procs(); p != c.procs {
				t.Errorf("%d processors, want %d", p, c.procs)
			}
			// Dropping a job moves the ranks by at most c.zero of some 10^4, and the mean by that share.
			for _, q := range []struct {
				name string
				got  time.Duration
				want int
			}{{"p50", st.Work.P50, c.p50}, {"p90", st.Work.P90, c.p90}, {"p99", st.Work.P99, c.p99}, {"max", st.Work.Max, c.max},
				{"mean", st.Work.Mean, c.mean}} {
				tol := 0.5
				if c.zero > 0 && q.name != "max" {
					tol = 1 + 3*float64(c.zero)/float64(c.rows)*float64(q.want)
				}
				if d := q.got.Seconds() - float64(q.want); d > tol || d < -tol {
					t.Errorf("%s %v s, want %d", q.name, q.got.Seconds(), q.want)
				}
			}
			if st.NoEstimate != c.noEstimate-min(c.zero, c.noEstimate/c.rows*c.zero) {
				t.Errorf("%d jobs without estimate, want %d less those dropped", st.NoEstimate, c.noEstimate)
			}
			if len(st.Users) != c.users {
				t.Errorf("%d users, want %d", len(st.Users), c.users)
			}
			if d := c.failed - st.Statuses[traces.Failed]; d < 0 || d > c.zero {
				t.Errorf("%d failed, want %d", st.Statuses[traces.Failed], c.failed)
			}
			if d := c.stopped - st.Statuses[traces.Cancelled]; d < 0 || d > c.zero {
				t.Errorf("%d cancelled, want %d", st.Statuses[traces.Cancelled], c.stopped)
			}
			share := func(from, to int) float64 { return float64(st.Between(from*1000, to*1000)) / float64(st.Jobs) }
			if a, b := share(1, 2), share(65, 257); !near(a, c.ones, .002) || !near(b, c.largest, .002) {
				t.Errorf("share of size 1 %.4f and 65-256 %.4f, want %.3f and %.3f", a, b, c.ones, c.largest)
			}
			if d := st.Span.Hours() / 24; !near(d, c.days, .06) || !near(st.JobsPerHour, c.perHour, .01*c.perHour) {
				t.Errorf("%.2f days, %.3f jobs/h; want %.1f, %.2f", d, st.JobsPerHour, c.days, c.perHour)
			}
		})
	}
}

func near(a, b, tol float64) bool { return a-b <= tol && b-a <= tol }

func TestRealLogsAreWrittenAndReadBack(t *testing.T) {
	for _, file := range []string{"lublin_256.swf.gz", "KTH-SP2-1996-2.1-cln.swf.gz", "NASA-iPSC-1993-3.1-cln.swf.gz"} {
		f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", "swf", file))
		if errors.Is(err, fs.ErrNotExist) {
			t.Skip("real log not at hand: looked for in ../shared, beside this repository, of which it is no part")
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := swf.NewReader(f, file, swf.Options{Zero: true})
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := traces.ReadAll(r)
		_ = f.Close() // read only
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if n, err := swf.Write(&b, &traces.Slice{Jobs: jobs}, r.Header()); err != nil || n != len(jobs) {
			t.Fatal(n, err)
		}
		again, err := swf.NewReader(&b, "again", swf.Options{Zero: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := traces.ReadAll(again)
		if err != nil || !reflect.DeepEqual(got, jobs) {
			t.Errorf("%s: %d of %d jobs, %v", file, len(got), len(jobs), err)
		}
		for k, v := range r.Header() {
			if again.Header()[k] != v {
				t.Errorf("%s: header %s is %q, was %q", file, k, again.Header()[k], v)
			}
		}
	}
}
