package synth_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/traces/synth"
)

// A profile either generates jobs of one GPU or refuses to: it does not draw for ever.
func TestEveryProfileEndsWithTheSmallestJobs(t *testing.T) {
	for _, name := range synth.Profiles() {
		cfg := synth.DefaultConfig()
		cfg.Profile, cfg.Jobs, cfg.MaxGPUs = name, 30, 1
		jobs, err := synth.Generate(cfg, 1)
		if name == "dally-multi" {
			if err == nil || !strings.Contains(err.Error(), "no jobs of one GPU") {
				t.Errorf("%s: %v, want that it has no jobs of one GPU", name, err)
			}
			cfg.MaxGPUs = 2
			jobs, err = synth.Generate(cfg, 1)
		}
		if err != nil || len(jobs) != 30 {
			t.Errorf("%s: %d jobs, %v", name, len(jobs), err)
		}
	}
}

// Workloads that last longer than the clock are refused for what they are.
func TestNoProfileRunsBeyondTheClock(t *testing.T) {
	raced.Alone(t)
	for _, name := range synth.Profiles() {
		cfg := synth.DefaultConfig()
		cfg.Profile, cfg.Jobs, cfg.Rate = name, 300_000, 1e-3
		jobs, err := synth.Generate(cfg, 1)
		if err != nil {
			if !strings.Contains(err.Error(), "280 years") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		for i := range jobs {
			if jobs[i].Submit < 0 || i > 0 && jobs[i].Submit < jobs[i-1].Submit {
				t.Fatalf("%s: job %d is submitted at %v", name, i, jobs[i].Submit)
			}
		}
	}
}

// A time limit ends longer jobs, and changes nothing else.
func TestTimeLimitEndsLongerJobs(t *testing.T) {
	const limit = 30 * time.Minute
	for _, name := range synth.Profiles() {
		cfg := synth.DefaultConfig()
		cfg.Profile, cfg.Jobs = name, 2000
		whole, err := synth.Generate(cfg, 3)
		if err != nil {
			t.Fatal(err)
		}
		cfg.MaxTime = limit
		jobs, err := synth.Generate(cfg, 3)
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		for i, j := range jobs {
			want := whole[i]
			if want.Work > limit {
				ended++
				if want.Iterations > 0 {
					if j.Iterations < 1 || j.Iterations >= want.Iterations {
						t.Errorf("%s: job %s ends after %d iterations, of %d", name, j.ID, j.Iterations, want.Iterations)
					}
					want.Iterations = j.Iterations
				}
				want.Work, want.Estimate = limit, min(want.Estimate, limit)
			}
			if !reflect.DeepEqual(j, want) {
				t.Fatalf("%s: job %+v, want %+v", name, j, want)
			}
		}
		if ended == 0 {
			t.Errorf("%s: no job runs for more than %v", name, limit)
		}
	}
}
