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
func agrees(t *testing.T, what, a, b string, base, other *report.StreamReport, settles bool) {
	t.Helper()
	y, h := difference(t, base, a, b)
	y2, h2 := difference(t, other, a, b)
	percent := func(y float64) float64 { return 100 * math.Expm1(y) }
	t.Logf("| %s | `%s` vs `%s` | %+.1f [%+.1f, %+.1f] | %+.1f [%+.1f, %+.1f] |", what, a, b, percent(y), percent(y-h),
		percent(y+h), percent(y2), percent(y2-h2), percent(y2+h2))
	if !(math.Abs(y-y2) <= math.Hypot(h, h2)) && settles {
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
	for _, c := range []struct {
		profile string
		load    float64
		knows   string
	}{{"dally-multi", .9, "history"}, {"poisson-hyper", .9, "exact"}, {"hpc", .7, "history"},
		{"philly-users", .7, "history"}} {
		profile, load := c.profile, c.load
		settles := profile != "philly-users" // whose queue remembers more than these streams have; printed, not required
		if profile != "dally-multi" && !full() {
			continue
		}
		m := machines[profile]
		run := func(jobs, warm int) *report.StreamReport { // each policy is compared with the first
			return evaluated(t, proving(t, "sjf+skip,fifo+skip,hold", fmt.Sprintf("cluster=%s trace.synth.profile=%s "+
				"env.max_gpus=%d trace.synth.jobs=20000 env.load=%g env.estimates=%s env.comm=none eval.seed=%d eval.streams.draws=%d "+
				"eval.streams.jobs=%d eval.streams.warm=%d", m.cluster, profile, m.most, load, c.knows, seed, draws, jobs, warm)), nil)
		}
		base := run(jobs, jobs)
		for _, x := range []struct {
			what       string
			jobs, warm int
		}{{"counted jobs × 2", 2 * jobs, jobs}, {"warm-up × 2", jobs, 2 * jobs}} {
			what := fmt.Sprintf("`%s` at %g, %s", profile, load, x.what)
			other := run(x.jobs, x.warm)
			agrees(t, what, "fifo+skip", "sjf+skip", base, other, settles)
			agrees(t, what, "hold", "sjf+skip", base, other, settles)
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
		for _, x := range [][3]string{{"KTH-SP2", "KTH-SP2-1996-2.1-cln.swf.gz", "cluster=pool:100 env.max_gpus=100"},
			{"RICC", "RICC-2010-2_first75d.swf.gz", "cluster=pool:8192 env.max_gpus=1024"}} {
			t.Run(x[0], func(t *testing.T) { blocks(t, x[0], recorded.Path(t, "traces/swf/"+x[1]), x[2]) })
		}
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
		agrees(t, name+", blocks × 2", a, "sjf+skip", base, other, true)
		_, h := difference(t, base, a, "sjf+skip")
		_, h2 := difference(t, other, a, "sjf+skip")
		if !(h2 < 1.6*h && h < 1.6*h2) {
			t.Errorf("%s: %s vs sjf+skip has intervals of ± %.3f and, with blocks twice as long, ± %.3f", name, a, h, h2)
		}
	}
}
