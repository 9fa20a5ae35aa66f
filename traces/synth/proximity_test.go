package synth

import (
	"math"
	"testing"
)

// The shares and means follow from the bands by hand: sizes 0.5·1 + 0.1·2 + 0.2·3 + 0.2·6.5 = 2.6 GPUs, lengths
// 0.5·5 + 0.1·10 + 0.2·17.5 + 0.2·27 = 12.4 steps, gaps 1/0.6 steps.
func TestProximityHasTheBandsOfItsSource(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Profile, cfg.Jobs = "proximity", 40000
	jobs, err := Generate(cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != cfg.Jobs {
		t.Fatalf("%d jobs, want %d", len(jobs), cfg.Jobs)
	}
	step := proximityStep.Seconds()
	var gpus, length, long, both float64
	one := 0
	for i := range jobs {
		j := &jobs[i]
		if j.GPUs < 1 || j.GPUs > 8 || j.Work < proximityStep || j.Work > 30*proximityStep ||
			i > 0 && j.Submit <= jobs[i-1].Submit {
			t.Fatalf("job %d is %+v", i, j)
		}
		gpus += float64(j.GPUs)
		length += j.Work.Seconds() / step
		if j.GPUs == 1 {
			one++
		}
		if j.Work > 11*proximityStep {
			long++
			if j.GPUs >= 5 {
				both++
			}
		}
	}
	n := float64(len(jobs))
	for _, c := range []struct {
		what      string
		got, want float64
		within    float64
	}{
		{"GPUs of a job", gpus / n, 2.6, .04},
		{"steps of a job", length / n, 12.4, .15},
		{"steps between jobs", jobs[len(jobs)-1].Submit.Seconds() / step / (n - 1), 1 / .6, .02},
		{"share of one-GPU jobs", float64(one) / n, .5, .01},
		{"share of long jobs", long / n, .4, .01},
		{"share of large jobs among long ones: sizes and lengths are independent", both / long, .2, .012},
	} {
		if math.Abs(c.got-c.want) > c.within {
			t.Errorf("%s: %.3f, want %.3f", c.what, c.got, c.want)
		}
	}
	cfg.Jobs, cfg.Rate, cfg.Work, cfg.MaxGPUs = 1000, 2, .5, 4
	fast, err := Generate(cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range fast {
		if fast[i].GPUs > 4 || fast[i].Work > 15*proximityStep {
			t.Fatalf("job %d is %+v", i, fast[i])
		}
	}
	again, err := Generate(cfg, 1)
	if err != nil || again[999].Submit != fast[999].Submit || again[500].Work != fast[500].Work {
		t.Errorf("the same seed gives other jobs (%v)", err)
	}
}
