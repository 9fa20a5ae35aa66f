package philly_test

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/philly"
)

var recorded = filepath.Join("..", "..", "..", "shared", "traces")

func TestRealAttemptsHaveTheirPublishedStatistics(t *testing.T) {
	const name = "philly_multigpu_attempts.csv.gz"
	f, err := traces.OpenFile(filepath.Join(recorded, "philly", name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("real Philly attempts not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := philly.NewAttempts(f, name)
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
	if st.Jobs != 2482 || d.Skipped() != nil || d.Moved() == 0 {
		t.Errorf("%d jobs, skipped %v, moved %d", st.Jobs, d.Skipped(), d.Moved())
	}
	for _, c := range []struct{ from, to, jobs int }{{4000, 4001, 1252}, {8000, 8001, 1019}, {16000, 0, 211}} {
		if n := st.Between(c.from, c.to); n != c.jobs {
			t.Errorf("%d jobs from %d to %d thousandths, want %d", n, c.from, c.to, c.jobs)
		}
	}
	if days := st.Span.Hours() / 24; days < 108.75 || days > 108.85 || st.JobsPerHour < .9505 || st.JobsPerHour > .9515 ||
		d.Origin().Format(time.DateTime) != "2017-09-04 10:30:41" {
		t.Errorf("%.2f days, %.4f jobs/h, origin %v", days, st.JobsPerHour, d.Origin())
	}
}

// The sum of a job's attempts is its duration in the table of jobs. The tables share no names of jobs, so the test
// compares the jobs whose submit, size and virtual cluster are unique in the table of jobs.
func TestRealAttemptsAgreeWithTheTableOfJobs(t *testing.T) {
	type key struct {
		submit time.Duration
		gpus   int
		vc     string
	}
	d := published(t)
	f, err := traces.OpenFile(filepath.Join(recorded, "philly", "philly_multigpu_attempts.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := philly.NewAttempts(f, "attempts")
	if err != nil {
		t.Fatal(err)
	}
	if !a.Origin().Equal(d.Origin()) {
		t.Fatalf("origins %v and %v", a.Origin(), d.Origin())
	}
	table, twice := map[key]time.Duration{}, map[key]bool{}
	for _, j := range d.Jobs() {
		k := key{j.Submit, j.GPUs, j.VC}
		_, twice[k] = table[k]
		table[k] = j.Work
	}
	same, other := 0, 0
	for {
		var j traces.Job
		if err := a.Next(&j); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		k := key{j.Submit, j.GPUs, j.VC}
		if work, ok := table[k]; !ok || twice[k] {
			continue
		} else if work == j.Work {
			same++
		} else {
			other++
		}
	}
	if same != 2438 || other != 0 {
		t.Errorf("%d jobs agree and %d do not", same, other)
	}
}

func TestSniffFindsTheTablesAmongAllRecordedFiles(t *testing.T) {
	files := 0
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
		if got := philly.Sniff(head); got != (e.Name() == "philly_jobs.csv.gz") {
			t.Errorf("%s: a table of jobs: %v", path, got)
		}
		if got := philly.SniffAttempts(head); got != (e.Name() == "philly_multigpu_attempts.csv.gz") {
			t.Errorf("%s: a table of attempts: %v", path, got)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("recorded traces not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil || files == 0 {
		t.Errorf("%d files: %v", files, err)
	}
}
