package encode_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"clustergym/env/jobselect"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// What critics may know, by hand: on a counter of 8 GPUs A (2 GPUs, 100 s), B (1, 300 s) and C (4, 60 s) come at 0 and
// start; D (1, 1 s) comes at 40 s and waits. Without estimates, the policy's own fields know none of it.
func TestTruthByHand(t *testing.T) {
	for _, estimates := range []string{"exact", "none"} {
		e, ts := begin(t, cluster.Spec{Pool: 8}, runningJobs(), func(c *jobselect.Config) {
			c.Visible, c.MaxGPUs, c.Estimates, c.Privileged = 4, 4, sim.MustEstimates(estimates), true
		})
		fields := e.Spec().Obs
		if last := fields[len(fields)-1]; last.Name != "truth" || !last.Critic || fields[0].Critic {
			t.Fatalf("the last field is %+v", last)
		}
		area := func(gpuSeconds float64) float64 { return math.Log1p(gpuSeconds/8/60) / math.Log1p(14*24*60) }
		// One job of four is still to come.
		want(t, "at first", wide(field(t, e, ts, "truth")), 0.25, area(200+300+240), 0, l(100*second), l(300*second),
			l(60*second), 0)
		step(t, e, 0, ts)
		want(t, "A runs", wide(field(t, e, ts, "truth")), 0.25, area(300+240), area(200), l(300*second), l(60*second), 0, 0)
		step(t, e, 0, ts)
		step(t, e, 0, ts)
		want(t, "D has come", wide(field(t, e, ts, "truth")), 0, area(1), area(2*60+260+4*20), l(time.Second), 0, 0, 0)
	}
}

// The fields that policies see are the same with and without the field for critics.
func TestTruthChangesNothingElse(t *testing.T) {
	plain, a := begin(t, cluster.Spec{Pool: 8}, runningJobs(),
		func(c *jobselect.Config) { c.Visible, c.MaxGPUs, c.Running = 4, 4, 3 })
	told, b := begin(t, cluster.Spec{Pool: 8}, runningJobs(), func(c *jobselect.Config) {
		c.Visible, c.MaxGPUs, c.Running, c.Privileged = 4, 4, 3, true
	})
	for range 3 {
		if len(b.Obs) != len(a.Obs)+7 || !slices.Equal(b.Obs[:len(a.Obs)], a.Obs) || !slices.Equal(a.Mask, b.Mask) {
			t.Fatal("the fields for policies differ")
		}
		step(t, plain, 0, a)
		step(t, told, 0, b)
	}
}
