package chronus_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/chronus"
)

// Of the 25,364 published rows 153 ask for no GPU. Without them p90 moves from 41,820 s to 41,940, p99 from 196,860
// to 196,620 and the mean from 15,901 to 15,927.
func TestRealTraceHasItsPublishedStatistics(t *testing.T) {
	f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", "philly-chronus",
		"trace_job_Philly_MIX2.csv.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("real trace not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := chronus.NewReader(f, "trace_job_Philly_MIX2.csv.gz")
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
	if skipped := d.Skipped(); len(skipped) != 1 || skipped[0].Count != 153 || st.Jobs != 25364-153 || st.ZeroWork != 0 ||
		d.Moved() != 25196 {
		t.Errorf("%d jobs, %v skipped, %d without work, %d moved", st.Jobs, skipped, st.ZeroWork, d.Moved())
	}
	want := traces.Spread{P50: 3600 * time.Second, P90: 41940 * time.Second, P99: 196620 * time.Second,
		Max: 259020 * time.Second}
	got := st.Work
	if mean := got.Mean.Round(time.Second); mean != 15927*time.Second {
		t.Errorf("mean %v, want 15,927 s", mean)
	}
	if got.Mean = 0; got != want {
		t.Errorf("durations %+v, want %+v", got, want)
	}
	for _, c := range []struct{ from, to, jobs int }{{1, 2, 23162}, {2, 3, 188}, {4, 5, 1008}, {8, 9, 750}, {12, 13, 2},
		{16, 0, 101}} {
		if n := st.Between(c.from*1000, c.to*1000); n != c.jobs {
			t.Errorf("%d jobs from %d to %d GPUs, want %d", n, c.from, c.to, c.jobs)
		}
	}
	if st.First != time.Minute || st.Last != 20151*time.Minute || len(st.VCs) != 9 || len(st.Users) != 9 ||
		len(st.Models) != 5 {
		t.Errorf("submits from %v to %v, %d VCs, %d users, %d models", st.First, st.Last, len(st.VCs), len(st.Users),
			len(st.Models))
	}
	best := 0
	for _, j := range jobs {
		if j.Deadline == 0 {
			best++
		} else if j.Deadline <= j.Submit+j.Work {
			t.Errorf("job %s cannot keep its deadline: %+v", j.ID, j)
		}
	}
	if best != 2541 {
		t.Errorf("%d jobs without a deadline, want 2,541", best)
	}
}
