package assess

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"clustergym/internal/raced"
	"clustergym/lab/workload"
	"clustergym/ops/incumbent/known"
	"clustergym/traces"
)

// assessed assesses an accounting whose scheduler is known.
func assessed(t *testing.T, kind string, seed uint64) (*Assessment, *known.Truth) {
	t.Helper()
	text, spec, truth := known.Make(kind, seed)
	file := filepath.Join(t.TempDir(), "jobs.txt")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := workload.DefaultTraceConfig()
	cfg.File, cfg.Unended, cfg.Runs = file, true, true
	jobs, _, err := workload.LoadTrace(cfg)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Assess(t.Context(), Options{File: "jobs.txt", Jobs: jobs, Spec: spec, Cluster: spec.Name, Limit: known.Limit,
		Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	return a, &truth
}

// drawn is how many accountings of each kind are drawn: CLUSTERGYM_ASSESS_DRAWS, default one.
func drawn(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(draws))
	if os.Getenv(draws) == "" {
		return 1
	} else if err != nil {
		t.Fatal(err)
	}
	return n
}

// Of accountings whose scheduler is known, the recorded mean wait is printed, the scheduler is found, its model waits as
// long, and the true effect of shortest job first is in the interval.
func TestKnownSchedulers(t *testing.T) {
	if raced.On {
		t.Skip("shorter plays on several workers are watched elsewhere")
	}
	n := drawn(t)
	inside, found := map[string]int{}, map[string]int{}
	for seed := range uint64(n) {
		for _, kind := range known.Kinds() {
			if os.Getenv(draws) == "" && kind != "easy" { // they take half a minute
				continue
			}
			a, truth := assessed(t, kind, seed+1)
			in, right := judged(t, kind, seed+1, a, truth)
			inside[kind] += in
			found[kind] += right
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(inside)) {
		t.Logf("%s: of %d, the effect is inside in %d, and the scheduler found in %d", kind, n, inside[kind], found[kind])
		if least := (n*9 + 9) / 10; min(inside[kind], found[kind]) < least {
			t.Errorf("%s: of %d, the true effect is inside in %d, and the scheduler found in %d", kind, n, inside[kind],
				found[kind])
		}
	}
}

// judged compares an assessment with the truth: in is 1 if the true effect of shortest job first is inside its interval,
// right is 1 if the scheduler that ran is the first or second model and its mean wait within 10 % of the recorded one.
func judged(t *testing.T, kind string, seed uint64, a *Assessment, truth *known.Truth) (in, right int) {
	t.Helper()
	was := truth.Full.MeanWait(truth.Started).Seconds()
	if off := a.Recorded.Mean/was - 1; math.Abs(off) > .01 {
		t.Errorf("%s %d: recorded mean wait %.0f s, want %.0f s", kind, seed, a.Recorded.Mean, was)
	}
	rank := slices.IndexFunc(a.Models, func(m Model) bool { return m.Name == truth.Policy })
	off := float64(a.Models[rank].Wait)/a.Policies[0].Mean - 1
	then, err := truth.Play("sjf+strict+easy", "history")
	if err != nil {
		t.Fatal(err)
	}
	all := func(*traces.Job) bool { return true }
	effect := 100 * (then.MeanWait(all).Seconds()/truth.Full.MeanWait(all).Seconds() - 1)
	p := &a.Policies[slices.IndexFunc(a.Policies, func(p Policy) bool {
		return p.Name == "sjf+strict+easy" && p.Knows == "forecasts"
	})]
	inside := p.CI != nil && p.CI[0] <= effect && effect <= p.CI[1]
	t.Logf("%s %d: recorded %.0f s; best %s, %s is number %d, its mean %+.1f %%; effect of sjf %.1f %%, printed %.1f %% "+
		"%.0f, inside %v; %d blocks, margin %.1f %%, %s", kind, seed, a.Recorded.Mean, a.Models[0].Name, truth.Policy, rank+1,
		100*off, effect, *p.Percent, *p.CI, inside, a.Calibration.Blocks, *a.Calibration.Margin, p.Verdict)
	if inside {
		in = 1
	}
	if rank <= 1 && math.Abs(off) <= .1 {
		right = 1
	}
	return in, right
}
