package arena

import (
	"math"
	"os"
	"strings"
	"testing"

	"clustergym/internal/raced"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/lab/report"
)

// proofs is the environment variable that makes the proofs of the measure (docs/evidence/measure.md) play their full
// forms, whose figures that page has; their tests then take minutes.
const proofs = "CLUSTERGYM_PROOFS"

// full reports whether the full forms are asked for.
func full() bool { return os.Getenv(proofs) != "" }

// either returns the number of the quick form or that of the full one.
func either(quick, all int) int {
	if full() {
		return all
	}
	return quick
}

// unraced leaves a proof out under the race detector, which makes it ten times slower: other tests play evaluations
// there.
func unraced(t *testing.T) {
	t.Helper()
	if raced.On {
		t.Skip("long, and its goroutines are those of every evaluation; make unit runs this test")
	}
}

// proving returns the default configuration of evaluations with settings, separated by spaces, and policies.
func proving(t *testing.T, policies, settings string) *config.Config {
	t.Helper()
	cfg := config.Default()
	// the workload on which the proofs were made
	usual := "trace.seed=1 trace.synth.jobs=20000 cluster=topdrl-2x4x4 env.reward=jct "
	for _, set := range append(strings.Fields(usual+settings), "eval.policies=["+policies+"]") {
		if err := cfg.Set(set); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Edit()
	return &cfg
}

// evaluated compares the policies of cfg, in a scenario if there is one.
func evaluated(t *testing.T, cfg *config.Config, w *Scenario) *report.StreamReport {
	t.Helper()
	c, err := Compare(t.Context(), *cfg, EvalOptions{Workers: 2, Scenario: w})
	if err != nil {
		t.Fatal(err)
	}
	return c.(*report.StreamReport)
}

// metricsOf returns the results of a policy.
func metricsOf(t *testing.T, r *report.StreamReport, policy string) *report.StreamMetrics {
	t.Helper()
	for i := range r.Policies {
		if r.Policies[i].Name == policy {
			return r.Policies[i].Metrics
		}
	}
	t.Fatalf("no policy %s", policy)
	return nil
}

// meanWithin returns the mean of independent values and half its t interval at a level.
func meanWithin(per []statistic.Number, level float64) (mean, half float64) {
	n := float64(len(per))
	for _, v := range per {
		mean += float64(v) / n
	}
	squares := 0.0
	for _, v := range per {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	return mean, statistic.StudentQuantile(1-(1-level)/2, n-1) * math.Sqrt(squares/(n-1)/n)
}
