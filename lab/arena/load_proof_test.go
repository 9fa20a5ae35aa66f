package arena

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/fault"
	"clustergym/internal/recorded"
	"clustergym/lab/report"
	"clustergym/traces/synth"
)

// machines are clusters of a sensible size for the jobs of profiles, and the largest jobs that play there.
var machines = map[string]struct {
	cluster string
	most    int
	heavy   bool // runs of jobs so long that streams of some thousand jobs at load 0.9 are not in a steady state
}{
	"philly": {"4x8", 8, true}, "philly-users": {"8x8", 8, true}, "helios": {"4x8", 8, true},
	"dally": {"8x8", 16, false}, "dally-multi": {"8x8", 16, false}, "proximity": {"4x8", 8, false},
	"hpc": {"pool:128", 128, true}, "lublin": {"pool:128", 128, true},
	"poisson": {"pool:8", 1, false}, "poisson-constant": {"pool:8", 1, false}, "poisson-hyper": {"pool:8", 1, false},
}

// loaded evaluates fifo+skip at a load.
func loaded(t *testing.T, settings string, load float64) (*report.StreamReport, *report.StreamMetrics) {
	t.Helper()
	r := evaluated(t, proving(t, "fifo+skip", fmt.Sprintf("%s env.estimates=exact env.comm=none env.load=%g", settings,
		load)), nil)
	return r, r.Policies[0].Metrics
}

// Waits of FIFO rise with the load on every profile, and the cluster is used as much as is offered, but where jobs are
// so long, or so many start at once, that the backlog of a stream is far from its mean.
func TestWaitsRiseWithTheLoad(t *testing.T) {
	unraced(t)
	const seed = 1
	draws, jobs := either(32, 16), either(1000, 20_000)
	calm := .5 // the load above which queues of heavy profiles have not settled
	if full() {
		calm = .8
	}
	t.Logf("seed %d, %d draws of %d jobs after as many", seed, draws, jobs)
	for _, profile := range synth.Profiles() {
		m, ok := machines[profile]
		if !ok && profile != "dally-batch" { // whose jobs all arrive at once
			t.Errorf("profile %s has no cluster here", profile)
		}
		if !ok || !full() && !slices.Contains([]string{"philly-users", "dally", "poisson-hyper"}, profile) {
			continue
		}
		var before []float64
		for _, load := range []float64{.3, .6, .9} {
			r, x := loaded(t, fmt.Sprintf("cluster=%s trace.synth.profile=%s trace.synth.jobs=20000 env.max_gpus=%d "+
				"eval.seed=%d eval.streams.draws=%d eval.streams.jobs=%d eval.streams.warm=%d", m.cluster, profile, m.most, seed,
				draws, jobs, jobs), load)
			waits := make([]float64, len(x.Wait.Per))
			for i, v := range x.Wait.Per {
				waits[i] = float64(v)
			}
			line := fmt.Sprintf("| `%s` | %s | %g | %.3f | %.3f | %s", profile, m.cluster, load, r.Load.Offered,
				float64(x.Use.Mean), hours(float64(x.Wait.Mean)))
			if before != nil { // by the sign test, which needs nothing of how waits are distributed
				more, less := 0, 0
				for i, v := range waits {
					if v > before[i] {
						more++
					} else if v < before[i] {
						less++
					}
				}
				p := atLeast(more, more+less)
				if !(p < .01) {
					t.Errorf("%s: from the load before to %g waits rise in %d draws and fall in %d, p %.3f", profile, load, more,
						less, p)
				}
				line += fmt.Sprintf(" | %d of %d, p %.1g", more, more+less, p)
			}
			before = waits
			t.Logf("%s | backlog %+.3f a job, keeps up %v", line, float64(x.Growth.Mean), x.KeepsUp)
			if off := float64(x.Use.Mean) - r.Load.Offered; math.Abs(off) > .03 && !(m.heavy && load > calm) {
				t.Errorf("%s: at load %g (%.3f offered) %.3f of the cluster is used", profile, load, r.Load.Offered,
					float64(x.Use.Mean))
			}
		}
	}
}

// atLeast returns the probability of k or more heads in n throws.
func atLeast(k, n int) (p float64) {
	c := math.Pow(.5, float64(n)) // of n heads
	for i := n; i >= k && n > 0; i-- {
		p += c
		c *= float64(i) / float64(n-i+1)
	}
	return p
}

// hours prints seconds as hours.
func hours(s float64) string { return fmt.Sprintf("%.3g h", s/3600) }

// A workload whose jobs all arrive at once has no load and no streams.
func TestJobsThatArriveAtOnceHaveNoStreams(t *testing.T) {
	cfg := proving(t, "fifo+skip", "cluster=8x8 trace.synth.profile=dally-batch trace.synth.jobs=8000 env.comm=none")
	_, err := Compare(t.Context(), *cfg, EvalOptions{Workers: 1})
	if !fault.IsMistake(err) || !strings.Contains(err.Error(), "all arrive at once") {
		t.Errorf("error %v, want that there are no streams", err)
	}
}

// Waits rise with the load on the recorded Philly table too, stretched to each.
func TestWaitsRiseWithTheLoadOnRecordedPhilly(t *testing.T) {
	if !full() {
		t.Skip("a full form: " + proofs)
	}
	file := recorded.Path(t, "traces/philly/philly_jobs.csv.gz")
	before := 0.0
	for _, load := range []float64{.3, .6, .9} {
		r, x := loaded(t, "trace.file="+file+" cluster=32x8 env.max_gpus=32", load)
		t.Logf("| recorded Philly | 32x8 | %g | %.3f | %.3f | %s | keeps up %v, %d blocks", load, r.Load.Offered,
			float64(x.Use.Mean), hours(float64(x.Wait.Mean)), x.KeepsUp, r.Streams.Units)
		if wait := float64(x.Wait.Mean); !(wait > before) {
			t.Errorf("load %g: wait %s, at the load before %s", load, hours(wait), hours(before))
		} else {
			before = wait
		}
	}
}
