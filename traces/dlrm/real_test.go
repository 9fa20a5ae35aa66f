package dlrm_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/dlrm"
)

var recorded = filepath.Join("..", "..", "..", "shared", "traces")

// real reads the recorded trace, which is not part of the repository.
func published(tb testing.TB, o dlrm.Options) *dlrm.Reader {
	tb.Helper()
	const name = "disaggregated_DLRM_trace_part1.csv.gz"
	f, err := traces.OpenFile(filepath.Join(recorded, "alibaba-dlrm-2025", name))
	if errors.Is(err, fs.ErrNotExist) {
		tb.Skip("recorded trace not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	d, err := dlrm.NewReader(f, name, o)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestTheRecordedTraceHasItsPublishedStatistics(t *testing.T) {
	d := published(t, dlrm.Options{})
	st, err := traces.Summarize(d)
	if err != nil {
		t.Fatal(err)
	}
	if k := d.Skipped(); st.Jobs != 6450 ||
		!reflect.DeepEqual(k, []traces.Skip{{Reason: dlrm.Throughout, Count: 4677}, {Reason: dlrm.Before, Count: 2603},
			{Reason: dlrm.After, Count: 1821}}) {
		t.Errorf("%d jobs, skipped %v; want 6450 and 9101", st.Jobs, k)
	}
	want := traces.Spread{P50: 15740 * time.Second, P90: 549982 * time.Second, P99: 1608694 * time.Second,
		Max: 2462429 * time.Second}
	got := st.Work
	if mean := got.Mean.Round(time.Second); mean != 158457*time.Second {
		t.Errorf("mean %v, want 158457 s", mean)
	}
	if got.Mean = 0; got != want {
		t.Errorf("durations %+v, want %+v", got, want)
	}
}

func TestTheRecordedTraceHasAllInstancesWithinItsWindow(t *testing.T) {
	d := published(t, dlrm.Options{Window: dlrm.Window})
	st, err := traces.Summarize(d)
	if err != nil {
		t.Fatal(err)
	}
	if st.Jobs != 15551 || d.Skipped() != nil || st.Between(0, 1) != 10199 || st.Between(1000, 1001) != 5352 ||
		st.Work.Max != dlrm.Window {
		t.Errorf("%d jobs (%d without GPU, %d with one), skipped %v, longest %v", st.Jobs, st.Between(0, 1),
			st.Between(1000, 1001), d.Skipped(), st.Work.Max)
	}
	if days := st.Span.Hours() / 24; days < 19.55 || days > 19.65 { // the last creation among the instances kept
		t.Errorf("%.2f days", days)
	}
}
