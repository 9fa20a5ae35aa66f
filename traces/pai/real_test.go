package pai_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/pai"
)

var recorded = filepath.Join("..", "..", "..", "shared", "traces")

func TestThePublishedWorkloadHasItsStatistics(t *testing.T) {
	const name = "hydra_pai_20_ddl_part1.csv.gz"
	f, err := traces.OpenFile(filepath.Join(recorded, "alibaba-pai-2020", name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("published workload not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := pai.NewReader(f, name, pai.Options{})
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
	want := traces.Spread{P50: 3200 * time.Second, P90: 17286 * time.Second, P99: 124997 * time.Second,
		Max: 428900 * time.Second}
	got := st.Work
	if mean := got.Mean.Round(time.Second); mean != 9107*time.Second {
		t.Errorf("mean %v, want 9107 s", mean)
	}
	if got.Mean = 0; got != want {
		t.Errorf("durations %+v, want %+v", got, want)
	}
	deadlines := 0
	for _, j := range jobs {
		if j.Deadline > 0 {
			deadlines++
		}
		v := j.Profile.Speeds
		if len(v) != 3 || v["A100"] != 1 || v["V100"] > 1 || v["GTX2080Ti"] > v["V100"] { // in this file
			t.Fatalf("%s: speeds %v", j.ID, v)
		}
	}
	if st.Jobs != 3000 || st.Between(1000, 1001) != 3000 || st.Span != 0 || deadlines != 596 {
		t.Errorf("%d jobs, %d of one GPU, span %v, %d deadlines (want 19.9%%)", st.Jobs, st.Between(1000, 1001), st.Span,
			deadlines)
	}
}
