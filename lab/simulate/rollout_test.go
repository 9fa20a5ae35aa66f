package simulate

import (
	"encoding/json"
	"strings"
	"testing"

	"clustergym/simulator/sim"
)

// A policy that looks ahead has a name and the rung of its estimates, also where its base asks nothing, and the same
// results for any number of goroutines.
func TestPoliciesLookAhead(t *testing.T) {
	for _, estimates := range []string{"exact", "history"} {
		cfg := DefaultConfig()
		cfg.Trace.Synth.Jobs, cfg.Trace.Synth.MaxGPUs, cfg.Cluster = 120, 8, "2x8"
		cfg.Policies, cfg.Policy.Estimates = []string{"fifo+skip", "rollout:fifo+skip"}, sim.MustEstimates(estimates)
		cfg.Rollout.Budget.Rollouts, cfg.Rollout.Ahead = 48, 16
		var docs []string
		for _, workers := range []int{1, 4} {
			report, err := Run(t.Context(), cfg, Hooks{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, string(b))
			r := report.Runs[1]
			if rung := map[string]string{"exact": "exact", "history": "causal"}[estimates]; r.Name() != "rollout:fifo+skip" ||
				r.Nothing || r.Rung != rung {
				t.Errorf("%s: %s on rung %s, asks nothing: %v", estimates, r.Name(), r.Rung, r.Nothing)
			}
			if r.Metrics.Finished != 120 {
				t.Errorf("%s: %d jobs finish", estimates, r.Metrics.Finished)
			}
			if base := report.Runs[0].Metrics.JCT.Mean; r.Metrics.JCT.Mean == base {
				t.Errorf("%s: the mean JCT is that of the base, %v s", estimates, base)
			}
		}
		if docs[0] != docs[1] {
			t.Errorf("%s: four goroutines give other results than one", estimates)
		}
	}
}

func TestBasesThatCannotBePlayedOnAreFaults(t *testing.T) {
	for policy, want := range map[string]string{
		"rollout:las+strict": "las remembers", "rollout:sjff": "did you mean rollout:sjf?",
		"rollout:sjf+commit": "the job that it holds", "rollout:exact": "remembers",
	} {
		cfg := DefaultConfig()
		cfg.Policies = []string{policy}
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "policies[0]: got \""+policy) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", policy, err, want)
		}
	}
	cfg := DefaultConfig()
	cfg.Policies, cfg.Policy.Estimates, cfg.Rollout.Candidates = []string{"rollout:fifo"}, sim.MustEstimates("none"), 1
	err := cfg.Validate()
	for _, want := range []string{`policy.estimates: got "none"`, "rollout.candidates: got 1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
