package assess

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"clustergym/ops/incumbent"
	"clustergym/simulator/sim"
)

// draws is the environment variable with the number of accountings of TestTheTrueEffectIsInside, of 3,000 jobs
// each; default one of 800.
const draws = "CLUSTERGYM_ASSESS_DRAWS"

// The effect of shortest job first, known by simulation of the cluster that wrote the record, lies in the interval that
// is printed, for schedulers that are known.
func TestTheTrueEffectIsInside(t *testing.T) {
	n, length := 1, 800
	if text := os.Getenv(draws); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		length = 3000
	}
	on := spec(t, "8x8")
	for _, rule := range []string{"fifo+strict+easy", "fifo+skip", "multifactor+strict+easy"} {
		inside, missing, missed := 0, 0, ""
		for k := range n {
			seed := uint64(100 + k)
			jobs := history(t, on, 64, length, .8, rule, seed)
			sch, err := incumbent.Rule("sjf+strict+easy", "consolidate-best", sim.Estimates{Mode: sim.EstimateHistory})
			if err != nil {
				t.Fatal(err)
			}
			s, err := (&incumbent.Past{Spec: on, Jobs: jobs}).Play(t.Context(), sch, sim.Estimates{Mode: sim.EstimateHistory})
			if err != nil {
				t.Fatal(err)
			}
			was, then := 0., 0.
			for i := range jobs {
				was += jobs[i].Waited.Seconds()
				then += (s.Starts[i] - jobs[i].Submit).Seconds()
			}
			truth := 100 * (then/was - 1)
			a, err := Assess(t.Context(), Options{File: "f", Jobs: jobs, Spec: on, Cluster: "8x8", Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Recorded.Mean; !near(got, was/float64(len(jobs)), .001) {
				t.Errorf("seed %d: recorded mean wait %v, want %v", seed, got, was/float64(len(jobs)))
			}
			for _, p := range a.Policies {
				if p.Name != "sjf+strict+easy" || p.Knows != "forecasts" {
					continue
				}
				switch {
				case p.CI == nil:
					missing++
				case p.CI[0] <= truth && truth <= p.CI[1]:
					inside++
				default:
					missed += fmt.Sprintf(" seed %d: %.1f not in %.1f;", seed, truth, *p.CI)
				}
				if k < 3 {
					t.Logf("%s seed %d: true %.1f %%, printed %.1f %% %v, %d blocks, verdict %s, model %s", rule, seed, truth, *p.Percent,
						p.CI, a.Calibration.Blocks, p.Verdict, a.Incumbent)
				}
			}
		}
		t.Logf("%s: %d of %d inside, %d without an interval%s", rule, inside, n, missing, missed)
		if inside < n*9/10 {
			t.Errorf("%s: the true effect is inside %d of %d intervals", rule, inside, n)
		}
	}
}

func near(a, b, share float64) bool { return a-b <= share*b && b-a <= share*b }
