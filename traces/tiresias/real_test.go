package tiresias_test

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/tiresias"
)

var recorded = filepath.Join("..", "..", "..", "shared", "traces")

// published opens a file that is not part of the repository.
func published(tb testing.TB, name string) io.Reader {
	tb.Helper()
	f, err := traces.OpenFile(filepath.Join(recorded, "tiresias", name))
	if errors.Is(err, fs.ErrNotExist) {
		tb.Skip("published files not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	return f
}

func TestTheTestbedWorkloadHasItsSizesAndRunTimes(t *testing.T) {
	d, err := tiresias.NewReader(published(t, "60_job.csv"), "60_job.csv")
	if err != nil {
		t.Fatal(err)
	}
	st, err := traces.Summarize(d)
	if err != nil {
		t.Fatal(err)
	}
	want := traces.Spread{P50: 125 * time.Second, P90: 230 * time.Second, P99: 1800 * time.Second, Max: 1800 * time.Second}
	got := st.Work
	if mean := got.Mean.Round(time.Second); mean != 178*time.Second {
		t.Errorf("mean %v, want 178 s", mean)
	}
	if got.Mean = 0; got != want {
		t.Errorf("durations %+v, want %+v", got, want)
	}
	if st.Jobs != 60 || d.Moved() != 0 || d.Skipped() != nil || len(st.Models) != 10 || st.Span != 1779*time.Second {
		t.Errorf("%d jobs of %d models over %v, %d moved, skipped %v", st.Jobs, len(st.Models), st.Span, d.Moved(),
			d.Skipped())
	}
	for gpus, jobs := range map[int]int{1: 30, 2: 10, 4: 10, 8: 10} {
		if n := st.Between(gpus*1000, gpus*1000+1); n != jobs {
			t.Errorf("%d jobs of %d GPUs, want %d", n, gpus, jobs)
		}
	}
}

func TestThePublishedSampleIsSorted(t *testing.T) {
	v, err := tiresias.ReadSample(published(t, "yarn-gput1000.csv"), "yarn-gput1000.csv")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	if len(v) != 1001 || !slices.IsSorted(v) || v[0] != 121 || sum != 150989997 {
		t.Errorf("%d GPU times from %v, together %v", len(v), v[0], sum)
	}
}
