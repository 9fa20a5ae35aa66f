package synth

import (
	"math"
	"slices"
	"testing"
)

func TestHeliosHasThePublishedMeansAndMedians(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Profile, cfg.Jobs = "helios", 200_000
	jobs, err := Generate(cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	var seconds, gpus []float64
	var area, run, wide float64
	for _, j := range jobs {
		seconds, gpus = append(seconds, j.Work.Seconds()), append(gpus, float64(j.GPUs))
		run += j.Work.Seconds()
		wide += float64(j.GPUs)
		area += j.Work.Seconds() * float64(j.GPUs)
	}
	slices.Sort(seconds)
	slices.Sort(gpus)
	n := float64(len(jobs))
	for _, c := range []struct {
		what              string
		got, want, within float64
	}{
		{"mean run time", run / n, 6652, .06}, {"median run time", seconds[len(seconds)/2], 206, .05},
		{"mean GPUs", wide / n, 3.716, .03},
		{"median GPUs", gpus[len(gpus)/2], 1, 0}, {"GPU-seconds a job", area / n, 49349, .1},
		{"jobs a day", n / (jobs[len(jobs)-1].Submit.Hours() / 24), heliosPerDay, .02},
	} {
		if math.Abs(c.got-c.want) > c.within*c.want {
			t.Errorf("%s is %.4g, published %.4g", c.what, c.got, c.want)
		}
	}
}
