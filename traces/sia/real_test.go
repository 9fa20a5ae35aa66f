package sia_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/sia"
)

func TestRealWorkloadsHaveTheirPublishedSizes(t *testing.T) {
	for _, c := range []struct {
		set          string
		files, jobs  int
		applications int
		hours        float64
		gpus         int // the largest number
	}{
		{"philly", 4, 160, 5, 8, 16},
		{"saturn", 5, 160, 5, 8, 16},
		{"pollux", 4, 160, 6, 8, 48},
		{"newtrace", 5, 960, 5, 48, 16},
	} {
		applications, gpus := map[string]bool{}, 0
		for i := range c.files {
			name := fmt.Sprintf("workload-%d.csv", i+1)
			d := published(t, c.set, name)
			jobs, err := traces.ReadAll(d)
			if err != nil {
				t.Fatal(err)
			}
			if len(jobs) != c.jobs || d.Moved() != 0 {
				t.Errorf("%s/%s: %d jobs, %d moved; want %d, 0", c.set, name, len(jobs), d.Moved(), c.jobs)
			}
			for _, j := range jobs {
				applications[j.Model] = true
				gpus = max(gpus, j.GPUs)
			}
			if last := jobs[len(jobs)-1].Submit.Hours(); last > c.hours || last < .93*c.hours {
				t.Errorf("%s/%s: the last of the jobs comes after %.2f hours, want a little below %v", c.set, name, last, c.hours)
			}
		}
		if len(applications) != c.applications || gpus != c.gpus {
			t.Errorf("%s: %d applications, up to %d GPUs; want %d, %d", c.set, len(applications), gpus, c.applications, c.gpus)
		}
	}
}

func TestTheWorkloadsOfPolluxHaveTheArrivalsOfThoseOfPhilly(t *testing.T) {
	for i := range 4 {
		name := fmt.Sprintf("workload-%d.csv", i+1)
		a, err := traces.ReadAll(published(t, "philly", name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := traces.ReadAll(published(t, "pollux", name))
		if err != nil {
			t.Fatal(err)
		}
		for k := range a {
			if a[k].Submit != b[k].Submit {
				t.Errorf("%s: job %d comes at %v and %v", name, k, a[k].Submit, b[k].Submit)
				break
			}
		}
	}
	if j, err := traces.ReadAll(published(t, "newtrace", "workload-1.csv")); err != nil ||
		j[0].Submit != 487661836*time.Microsecond {
		t.Errorf("the first job comes at %v, want 487.661836 s; %v", j[0].Submit, err)
	}
}

func published(t *testing.T, set, name string) *traces.Sorted {
	t.Helper()
	f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", "sia-workloads", set, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("real workload not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := sia.NewReader(f, name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
