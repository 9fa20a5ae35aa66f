package synth

import (
	"math"
	"testing"
)

// Gaps are exponential, and run times have the mean and the variation of their profile, independent of each other.
func TestPoissonHasTheMomentsOfTheory(t *testing.T) {
	for _, c := range []struct {
		profile     string
		squared     float64 // squared coefficient of variation of the run times
		within, off float64
	}{{"poisson", 1, .03, .01}, {"poisson-constant", 0, 1e-9, 1e-9}, {"poisson-hyper", 4, .15, .02}} {
		cfg := DefaultConfig()
		cfg.Profile, cfg.Jobs, cfg.Rate, cfg.Work = c.profile, 100_000, 2, .5
		jobs, err := Generate(cfg, 1)
		if err != nil {
			t.Fatal(err)
		}
		var gap, gap2, work, work2, both, next float64
		n := float64(len(jobs) - 1)
		for i := 1; i < len(jobs); i++ {
			g, w := (jobs[i].Submit - jobs[i-1].Submit).Hours(), jobs[i].Work.Hours()
			gap, gap2, work, work2 = gap+g/n, gap2+g*g/n, work+w/n, work2+w*w/n
			both, next = both+g*w/n, next+w*jobs[i-1].Work.Hours()/n
			if jobs[i].GPUs != 1 || jobs[i].User != "" {
				t.Fatalf("job %d is %+v", i, jobs[i])
			}
		}
		for _, x := range []struct {
			what              string
			got, want, within float64
		}{
			{"mean gap in hours", gap, .5, .01}, {"squared variation of gaps", gap2/gap/gap - 1, 1, .03},
			{"mean run time in hours", work, .5, c.off},
			{"squared variation of run times", work2/work/work - 1, c.squared, c.within},
			{"product of gap and run time over that of the means", both / gap / work, 1, .02},
			{"product of run times of neighbours over the squared mean", next / work / work, 1, .03},
		} {
			if math.Abs(x.got-x.want) > x.within {
				t.Errorf("%s: %s %.4f, want %.4f", c.profile, x.what, x.got, x.want)
			}
		}
	}
}
