package openb_test

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/openb"
)

var recorded = filepath.Join("..", "..", "..", "shared", "traces")

// real reads a recorded list, which is not part of the repository.
func published(tb testing.TB, name string, o openb.Options) *openb.Reader {
	tb.Helper()
	f, err := traces.OpenFile(filepath.Join(recorded, "alibaba-gpu-2023", name))
	if errors.Is(err, fs.ErrNotExist) {
		tb.Skip("recorded pod lists not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	d, err := openb.NewReader(f, name, o)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestRecordedListsHaveTheirPublishedSizes(t *testing.T) {
	for _, c := range []struct {
		file                                string
		rows                                int
		none, shared, one, two, four, eight float64 // percent of all rows
		unplaced, typed                     int
	}{
		{"openb_pod_list_default_part1.csv.gz", 6114, 14.2, 36.3, 48.7, .2, .1, .6, 621, 0},
		{"openb_pod_list_cpu050.csv.gz", 7439, 5.0, 41.4, 52.6, .2, .2, .6, 878, 0},
		{"openb_pod_list_gpushare40.csv.gz", 8152, 13.3, 49.1, 36.8, .1, .1, .5, 981, 0},
		{"openb_pod_list_gpuspec10.csv.gz", 8152, 13.3, 37.8, 48.0, .2, .2, .5, 897, 732},
		{"openb_pod_list_multigpu20.csv.gz", 8324, 13.1, 37.0, 47.0, .6, .6, 1.7, 0, 0},
	} {
		d := published(t, c.file, openb.Options{Static: true})
		jobs, err := traces.ReadAll(d)
		if err != nil {
			t.Fatal(err)
		}
		st, err := traces.Summarize(&traces.Slice{Jobs: jobs})
		if err != nil {
			t.Fatal(err)
		}
		if st.Jobs != c.rows || len(d.Skipped()) != 0 || !d.Timeless() {
			t.Errorf("%s: %d jobs, skipped %v; want %d", c.file, st.Jobs, d.Skipped(), c.rows)
		}
		for _, b := range []struct {
			from, to int
			percent  float64
		}{{0, 1, c.none}, {1, 1000, c.shared}, {1000, 1001, c.one}, {2000, 2001, c.two}, {4000, 4001, c.four},
			{8000, 8001, c.eight}} {
			if p := 100 * float64(st.Between(b.from, b.to)) / float64(st.Jobs); p < b.percent-.051 || p > b.percent+.051 {
				t.Errorf("%s: %.2f%% from %d to %d thousandths, want %.1f", c.file, p, b.from, b.to, b.percent)
			}
		}
		typed := 0
		for _, j := range jobs {
			if j.GPUTypes != nil {
				typed++
			}
		}
		if typed != c.typed {
			t.Errorf("%s: %d pods with GPU types, want %d", c.file, typed, c.typed)
		}
		// With times, if the list has them, only the pods never placed are left out.
		d = published(t, c.file, openb.Options{})
		st, err = traces.Summarize(d)
		if err != nil {
			t.Fatal(err)
		}
		switch k := d.Skipped(); {
		case c.unplaced == 0 && (len(k) != 0 || !d.Timeless()):
			t.Errorf("%s: skipped %v, timeless %v", c.file, k, d.Timeless())
		case c.unplaced > 0 && (len(k) != 1 || k[0] != (traces.Skip{Reason: openb.NeverPlaced, Count: c.unplaced}) ||
			d.Timeless() || st.Jobs+c.unplaced != c.rows):
			t.Errorf("%s: %d jobs, skipped %v, timeless %v; want %d never placed", c.file, st.Jobs, k, d.Timeless(), c.unplaced)
		}
	}
}

func TestTheRecordedListHasItsPublishedStatistics(t *testing.T) {
	d := published(t, "openb_pod_list_default_part1.csv.gz", openb.Options{})
	st, err := traces.Summarize(d)
	if err != nil {
		t.Fatal(err)
	}
	want := traces.Spread{P50: 766 * time.Second, P90: 8962 * time.Second, P99: 209987 * time.Second,
		Max: 12537496 * time.Second}
	got := st.Work
	if mean := got.Mean.Round(time.Second); mean != 37118*time.Second {
		t.Errorf("mean %v, want 37118 s", mean)
	}
	if got.Mean = 0; got != want {
		t.Errorf("durations %+v, want %+v", got, want)
	}
	if days := st.Span.Hours() / 24; st.Jobs != 5493 || days < 143.55 || days > 143.65 || st.ZeroWork != 0 ||
		d.Moved() != 0 {
		t.Errorf("%d jobs over %.2f days, %d without work, %d moved", st.Jobs, days, st.ZeroWork, d.Moved())
	}
	if st.Statuses[traces.Failed] != 1486 || st.Statuses[traces.Completed] != 149 { // 24.3% of 6,114 rows failed
		t.Errorf("statuses %v", st.Statuses)
	}
}

func TestSniffFindsThePodListsAmongAllRecordedFiles(t *testing.T) {
	found, files := 0, 0
	err := filepath.WalkDir(recorded, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := traces.OpenFile(path)
		if err != nil {
			return err
		}
		defer f.Close()
		head, err := io.ReadAll(io.LimitReader(f, 1<<16))
		if err != nil {
			return err
		}
		files++
		got, want := openb.Sniff(head), strings.HasPrefix(e.Name(), "openb_pod_list_")
		if got != want {
			t.Errorf("%s: %v", path, got)
		}
		if got {
			found++
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("recorded traces not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil || found == 0 {
		t.Errorf("%d of %d files are pod lists: %v", found, files, err)
	}
}
