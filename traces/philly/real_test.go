package philly_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/philly"
)

// real opens the recorded table, which is not part of the repository.
func published(tb testing.TB) *philly.Reader {
	tb.Helper()
	f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", "philly", "philly_jobs.csv.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		tb.Skip("real Philly trace not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	d, err := philly.NewReader(f, "philly_jobs.csv.gz")
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestRealTableHasItsPublishedStatistics(t *testing.T) {
	d := published(t)
	st, err := traces.Summarize(d)
	if err != nil {
		t.Fatal(err)
	}
	if st.Jobs != 71920 || st.ZeroWork != 0 || len(st.VCs) != 13 {
		t.Errorf("%d jobs, %d without work, %d VCs; want 71920, 0, 13", st.Jobs, st.ZeroWork, len(st.VCs))
	}
	want := traces.Spread{P50: 1079 * time.Second, P90: 10289 * time.Second, P99: 247622 * time.Second,
		Max: 4628226 * time.Second}
	got := st.Work
	if mean := got.Mean.Round(time.Second); mean != 12516*time.Second {
		t.Errorf("mean %v, want 12516 s", mean)
	}
	if got.Mean = 0; got != want {
		t.Errorf("durations %+v, want %+v", got, want)
	}
	for _, c := range []struct{ from, to, jobs int }{{1000, 2000, 67358}, {2000, 3000, 1778}, {4000, 5000, 1372},
		{8000, 9000, 1152}, {16000, 0, 260}} {
		if n := st.Between(c.from, c.to); n != c.jobs {
			t.Errorf("%d jobs from %d to %d thousandths, want %d", n, c.from, c.to, c.jobs)
		}
	}
	if days := st.Span.Hours() / 24; days < 108.85 || days > 108.95 || st.JobsPerHour < 27.45 || st.JobsPerHour > 27.55 {
		t.Errorf("%.2f days, %.2f jobs/h; want 108.9, 27.5", days, st.JobsPerHour)
	}
	if d.Repeated() != 52 || d.Moved() == 0 {
		t.Errorf("%d rows repeated, %d moved; want 52, some", d.Repeated(), d.Moved())
	}
	if o := d.Origin().Format(time.DateTime); o != "2017-09-04 10:30:41" || st.First != 0 {
		t.Errorf("origin %s, first job at %v", o, st.First)
	}
}

func TestRealTableHas54TestWindowsUpToEightGPUs(t *testing.T) {
	kept, large, workless := traces.Filter(published(t).Jobs(), 8)
	if len(kept) != 71660 || large != 260 || workless != 0 {
		t.Fatalf("kept %d, large %d, workless %d", len(kept), large, workless)
	}
	w, err := traces.NewWindows(kept, 256, 256)
	if err != nil {
		t.Fatal(err)
	}
	if n := w.Count(traces.Test); n != 54 {
		t.Errorf("%d test windows, want 54", n)
	}
}

func BenchmarkReadRealTable(b *testing.B) {
	f := func() int { return len(published(b).Jobs()) }
	b.ReportAllocs()
	rows := 0
	for b.Loop() {
		rows += f()
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}
