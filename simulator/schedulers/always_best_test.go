package schedulers_test

import (
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
)

// policies calls f with x under every order, admission and way of back-filling.
func (x *world) policies(f func(y *world)) {
	for _, order := range schedulers.Orders() {
		for _, way := range ways(order) {
			y := *x
			y.policy.Order, y.policy.Admission, y.policy.Backfill = order, way.admission, way.backfill
			y.know()
			y.policy.Simulator(&y.cfg)
			f(&y)
		}
	}
}

// total returns the sum of the jobs' completion times, in nanoseconds.
func (x *world) total(t fatal) (jct int64) {
	t.Helper()
	s, h := x.machine(t)
	var c metrics.Collector
	x.playOn(t, s, h, &history{}, &c)
	for j := range c.Jobs() {
		if j.Finish < 0 {
			t.Fatalf("a job has not finished\n%s", x)
		}
		jct += int64(j.Finish - j.Submit)
	}
	return jct
}

// drawPlain draws jobs for a counter, without overheads.
func drawPlain(t *rapid.T, w wants, gpus int) *world {
	w.order, w.steady, w.alike, w.worked = "fifo", true, true, true
	x := drawWorld(t, w)
	x.spec = cluster.Spec{Pool: gpus}
	x.policy = schedulers.DefaultConfig()
	x.policy.Placement = "first-fit"
	return x
}

// On one GPU no policy has a lower mean completion time than shortest remaining time first (Schrage 1968).
func TestSRTFIsOptimalOnOneGPU(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawPlain(t, wants{most: 8}, 1)
		for i := range x.jobs {
			x.jobs[i].GPUs = 1
		}
		x.policy.Order, x.policy.Admission = "srtf", "skip"
		best := x.total(t)
		x.policies(func(y *world) {
			if got := y.total(t); got < best {
				t.Fatalf("%s needs %d ns in all, srtf %d\n%s", y.policy.Name(), got, best, x)
			}
		})
	})
}

// If jobs for one GPU each arrive together, shortest first gives the least waiting on any number of GPUs.
func TestShortestFirstWaitsNoLongerThanFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawPlain(t, wants{}, number(t, 1, 4, "GPUs"))
		for i := range x.jobs {
			x.jobs[i].GPUs, x.jobs[i].Submit = 1, 0
		}
		fifo := x.total(t)
		x.policy.Order = "sjf"
		if sjf := x.total(t); sjf > fifo {
			t.Fatalf("sjf needs %d ns in all, fifo %d\n%s", sjf, fifo, x)
		}
	})
}

// No non-preemptive policy beats exact.
func TestNothingNonPreemptiveBeatsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawPlain(t, wants{most: 6}, number(t, 1, 4, "GPUs"))
		x.policy.Order = "exact"
		x.know()
		s, h := x.machine(t)
		x.playOn(t, s, h, &history{})
		if ok, err := h.(interface{ Proven() (bool, error) }).Proven(); !ok || err != nil {
			t.Fatalf("not proven: %v\n%s", err, x)
		}
		best := x.total(t)
		x.policies(func(y *world) {
			if schedulers.Preemptive(y.policy.Order) {
				return
			}
			if got := y.total(t); got < best {
				t.Fatalf("%s needs %d ns in all, exact %d\n%s", y.policy.Name(), got, best, x)
			}
		})
	})
}
