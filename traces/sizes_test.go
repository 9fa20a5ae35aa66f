package traces

import (
	"errors"
	"strings"
	"testing"
	"time"

	"clustergym/internal/raced"
)

var quick = Cut{Length: 256, Warm: 256}

func TestWindowsFollowTheNumberOfJobs(t *testing.T) {
	for _, c := range []struct {
		jobs       int
		most, want Cut
	}{
		{1_000_000, quick, quick},
		{12_800, quick, quick},                                      // 1,280 jobs for validation are four windows and the jobs before them
		{4000, quick, Cut{Length: 80, Warm: 80}},                    // 400 = 5 × 80
		{600, quick, Cut{Length: 16, Warm: 16}},                     // two windows for validation
		{160, quick, Cut{Length: 16, Warm: 0}},                      // one, without warm-up
		{100, quick, Cut{Length: 10, Warm: 0}},                      // the least
		{4000, Cut{Length: 256, Warm: 0}, Cut{Length: 96, Warm: 0}}, // environments without warm-up
		{4000, Cut{Length: 30, Warm: 0}, Cut{Length: 30, Warm: 0}},
		{600, Cut{Length: 128, Warm: 64}, Cut{Length: 24, Warm: 12}}, // it keeps its share
	} {
		if got, ok := Fit(c.jobs, c.most, false, c.most.Warm == 0); !ok || got != c.want {
			t.Errorf("%d jobs, at most %v: %v, %v; want %v", c.jobs, c.most, got, ok, c.want)
		}
	}
}

// Every number of jobs from a hundred on gives every part a window, and enough of them from eight hundred on.
func TestEveryPartHasWindows(t *testing.T) {
	raced.Alone(t)
	for n := FewestJobs; n < 30_000; n += 1 + n/50 {
		c, ok := Fit(n, quick, false, false)
		w, err := NewWindows(everySecond(n), max(1, c.Length), c.Warm)
		if !ok || err != nil {
			t.Fatalf("%d jobs: %v, %v, %v", n, c, ok, err)
		}
		validation, test := w.Count(Validation), w.Count(Test)
		if validation < 1 || test < 1 || n >= 800 && (validation < 4 || test < 8 || c.Length < 16) {
			t.Errorf("%d jobs: %v gives %d validation and %d test windows", n, c, validation, test)
		}
		if c.Length > quick.Length || c.Warm > c.Length {
			t.Errorf("%d jobs: %v", n, c)
		}
	}
	for _, n := range []int{0, 1, 9, 89} {
		if c, ok := Fit(n, quick, false, false); ok {
			t.Errorf("%d jobs: %v, want none", n, c)
		}
	}
}

func TestGivenWindowsStay(t *testing.T) {
	if c, ok := Fit(4000, Cut{Length: 64, Warm: 256}, true, false); !ok || c.Length != 64 || c.Warm != 144 {
		t.Errorf("a length of 64: %v, %v; want as many jobs before it as leave four windows", c, ok)
	}
	if c, ok := Fit(4000, Cut{Length: 256, Warm: 100}, false, true); !ok || c != (Cut{Length: 72, Warm: 100}) {
		t.Errorf("100 before each: %v, %v", c, ok)
	}
	if c, ok := Fit(4000, quick, true, true); ok || c != quick {
		t.Errorf("both given: %v, %v", c, ok)
	}
}

func TestTooFewJobsNameWindowsThatWouldDo(t *testing.T) {
	for _, c := range []struct {
		jobs, length, warm int
		want               string
	}{
		{600, 256, 256,
			"too few jobs: the training part (70 %) has 420 of the 600; one window of 256 with 256 before it in every part needs 5114 jobs in all; want window 16 and warm 16, or less"},
		{40, 32, 0, "want at least 100 jobs, or window 4"},
		{5, 32, 32, "want at least 100 jobs"},
	} {
		_, err := NewWindows(everySecond(c.jobs), c.length, c.warm)
		few, ok := errors.AsType[*TooFewError](err)
		if !ok || !strings.HasSuffix(err.Error(), c.want) {
			t.Fatalf("%d jobs: %v, want …%s", c.jobs, err, c.want)
		}
		if cut, ok := few.Fit(); ok {
			w, err := NewWindows(everySecond(c.jobs), cut.Length, cut.Warm)
			if err != nil || w.Count(Validation) == 0 || w.Count(Test) == 0 {
				t.Errorf("%d jobs: %v does not do: %v", c.jobs, cut, err)
			}
		}
	}
}

// everySecond returns n jobs, one a second.
func everySecond(n int) []Job {
	jobs := make([]Job, n)
	for i := range jobs {
		jobs[i] = Job{Submit: time.Duration(i) * time.Second, Work: time.Second, GPUs: 1, GPUMilli: 1000}
	}
	return jobs
}
