package synth_test

import (
	"strings"
	"testing"

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
