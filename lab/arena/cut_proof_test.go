package arena

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"clustergym/internal/recorded"
	"clustergym/internal/statistic"
	"clustergym/lab/report"
)

// differences returns how policy a differs from b, as logarithms of ratios: the estimate, and half its interval.
func difference(t *testing.T, r *report.StreamReport, a, b string) (log, half float64) {
	t.Helper()
	for i := range r.Paired {
		if p := &r.Paired[i]; p.A == a && p.B == b {
			low, high := math.Log1p(p.CI95[0]/100), math.Log1p(p.CI95[1]/100)
			return math.Log1p(float64(p.Difference) / 100), (high - low) / 2
		}
	}
	t.Fatalf("%s is not compared with %s", a, b)
	return 0, 0
}

// agrees compares two estimates of the difference of two policies from different jobs: they are as far apart as both
// intervals together allow, or less.
func agrees(t *testing.T, what, a, b string, base, other *report.StreamReport) {
	t.Helper()
	y, h := difference(t, base, a, b)
	y2, h2 := difference(t, other, a, b)
	percent := func(y float64) float64 { return 100 * math.Expm1(y) }
	t.Logf("| %s | `%s` vs `%s` | %+.1f [%+.1f, %+.1f] | %+.1f [%+.1f, %+.1f] |", what, a, b, percent(y), percent(y-h),
		percent(y+h), percent(y2), percent(y2-h2), percent(y2+h2))
	if !(math.Abs(y-y2) <= math.Hypot(h, h2)) {
		t.Errorf("%s: %s vs %s moves from %+.1f to %+.1f %%", what, a, b, percent(y), percent(y2))
	}
}

// Twice as many counted jobs, or twice the warm-up, do not move the differences between policies beyond their
// intervals.
func TestDifferencesDoNotDependOnTheCut(t *testing.T) {
	unraced(t)
	const seed = 1
	draws, jobs := either(16, 128), either(500, 2000)
	t.Logf("seed %d, %d draws of %d jobs", seed, draws, jobs)
	for _, s := range []sampled{{"dally-multi", .9, jobs, "history"}, {"poisson-hyper", .9, jobs, "exact"},
		{"hpc", .7, jobs, "history"}, {"philly-users", .6, jobs, "history"}} {
		if s.profile == "dally-multi" || full() {
			t.Run(s.profile, func(t *testing.T) { cuts(t, s, draws, seed) })
		}
	}
}

func cuts(t *testing.T, s sampled, draws int, seed uint64) {
	t.Helper()
	rivals := s.policies()
	run := func(jobs, warm int) *report.StreamReport { // each policy is compared with the first
		cfg := s.config(t, draws, jobs)
		cfg.Eval.Seed, cfg.Eval.Streams.Warm = seed, warm
		return evaluated(t, cfg, nil)
	}
	base := run(s.jobs, s.jobs)
	for _, x := range []struct {
		what       string
		jobs, warm int
	}{{"counted jobs × 2", 2 * s.jobs, s.jobs}, {"warm-up × 2", s.jobs, 2 * s.jobs}} {
		what := fmt.Sprintf("`%s` at %g, %s", s.profile, s.load, x.what)
		other := run(x.jobs, x.warm)
		for _, a := range rivals[1:] {
			agrees(t, what, a, rivals[0], base, other)
		}
	}
}

// Blocks twice as long leave the difference between policies on one long log as it is, and do not widen its interval as
// they would if blocks depended on each other.
func TestDifferencesDoNotDependOnTheBlocks(t *testing.T) {
	unraced(t)
	const seed = 1
	t.Logf("seed %d", seed)
	log := filepath.Join(t.TempDir(), "log.csv")
	accounting(t, log, either(60_000, 200_000), .7, seed, "")
	blocks(t, "generated (hpc)", log, "cluster=pool:128 env.max_gpus=128")
	if full() {
		t.Run("KTH-SP2", func(t *testing.T) {
			blocks(t, "KTH-SP2", recorded.Path(t, "traces/swf/KTH-SP2-1996-2.1-cln.swf.gz"), "cluster=pool:100 env.max_gpus=100")
		})
	}
}

func blocks(t *testing.T, name, file, settings string) {
	t.Helper()
	cfg := proving(t, "sjf+skip,fifo+skip,hold", "trace.file="+file+" env.load=0 env.estimates=trace "+settings)
	w, err := NewScenario(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.testing(t.Context(), cfg, &EvalOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	played, _, err := r.results(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	base := r.streamReport(played)
	r.streams.blocks.Length *= 2
	other := r.streamReport(played)
	t.Logf("%s: %d and %d blocks, load %.2f", name, base.Streams.Units, other.Streams.Units, base.Load.Offered)
	if other.Streams.Units < statistic.MinUnits {
		t.Logf("%s: twice as long blocks are too few for an interval", name)
		return
	}
	for _, a := range []string{"fifo+skip", "hold"} {
		agrees(t, name+", blocks × 2", a, "sjf+skip", base, other)
		_, h := difference(t, base, a, "sjf+skip")
		_, h2 := difference(t, other, a, "sjf+skip")
		if !(h2 < 1.6*h && h < 1.6*h2) {
			t.Errorf("%s: %s vs sjf+skip has intervals of ± %.3f and, with blocks twice as long, ± %.3f", name, a, h, h2)
		}
	}
}
