package acme_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/acme"
)

var recorded = filepath.Join("..", "..", "..", "shared", "traces")

func TestThePublishedTableHasItsStatistics(t *testing.T) {
	const name = "kalos_completed_part1.csv"
	f, err := traces.OpenFile(filepath.Join(recorded, "acme", name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("published table not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := acme.NewReader(f, name, acme.Options{})
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
	want := traces.Spread{P50: 351 * time.Second, P90: 59901 * time.Second, P99: 232821 * time.Second,
		Max: 275690 * time.Second}
	got := st.Work
	if mean := got.Mean.Round(time.Second); mean != 17579*time.Second {
		t.Errorf("mean %v, want 17579 s", mean)
	}
	if got.Mean = 0; got != want {
		t.Errorf("durations %+v, want %+v", got, want)
	}
	for _, c := range []struct{ from, to, jobs int }{{1000, 2000, 12}, {2000, 3000, 41}, {8000, 9000, 4},
		{16000, 0, 143}} {
		if n := st.Between(c.from, c.to); n != c.jobs {
			t.Errorf("%d jobs from %d to %d thousandths, want %d", n, c.from, c.to, c.jobs)
		}
	}
	if days := st.Span.Hours() / 24; st.Jobs != 200 || d.Skipped() != nil || days < 53.85 || days > 53.95 ||
		st.JobsPerHour < .1545 || st.JobsPerHour > .1555 {
		t.Errorf("%d jobs over %.2f days, %.4f per hour, skipped %v", st.Jobs, days, st.JobsPerHour, d.Skipped())
	}
	// Cores and memory are those of whole nodes: at most 128 cores and 2 TB for each 8 GPUs, for jobs of any size.
	for _, j := range jobs {
		nodes := int64(max(1, j.GPUs/8))
		if c := j.CPUMilli / nodes; c < 96000 || c > 128000 || j.MemBytes/nodes > 2e12 || j.MemBytes == 0 {
			t.Fatalf("job %s of %d GPUs: %d thousandths of a core and %d bytes", j.ID, j.GPUs, j.CPUMilli, j.MemBytes)
		}
	}
	if len(st.Models) != 1 || st.Models[0].Jobs != 115 {
		t.Errorf("models %v", st.Models)
	}
}
