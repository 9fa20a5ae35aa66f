package delayoffer

import (
	"testing"
	"time"

	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// nowhere are no windows.
type nowhere struct{ sched.Windows }

// The timers are tuned by the delays of jobs that somebody else has started, and what is only imagined does not count.
func TestDelaysOfTheClusterCount(t *testing.T) {
	c := DefaultConfig()
	c.Estimates, c.Comm, c.Lease = sim.MustEstimates("trace"), "tree", time.Minute
	e, err := New(c, cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}}, nowhere{},
		traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Follow(sched.Following{}); err != nil {
		t.Fatal(err)
	}
	tell := func(f sim.Fact) {
		t.Helper()
		if err := e.Tell(&f); err != nil {
			t.Fatal(err)
		}
	}
	look := func(now time.Duration) {
		t.Helper()
		if err := e.Look(now); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Proceed(); err != nil {
			t.Fatal(err)
		}
		e.Forget()
	}
	for _, id := range []string{"a", "b"} {
		tell(sim.Fact{Kind: sim.Submit, Job: &traces.Job{ID: id, GPUs: 2, GPUMilli: 1000, Estimate: time.Hour}})
	}
	for k := range 4 { // each time their starts are imagined
		look(time.Duration(k) * time.Minute)
	}
	if mean, _ := e.offers.rule.Delays(e.View(), 2); mean != 0 {
		t.Fatalf("the mean delay is %v leases, and nothing has started", mean)
	}
	tell(sim.Fact{At: 4 * time.Minute, Kind: sim.Start, ID: "a", GPUs: []cluster.GPU{0, 1}})
	tell(sim.Fact{At: 6 * time.Minute, Kind: sim.Start, ID: "b", GPUs: []cluster.GPU{2, 3}})
	look(7 * time.Minute)
	if mean, deviation := e.offers.rule.Delays(e.View(), 2); mean != 5 || deviation != 1 {
		t.Errorf("delays of %v ± %v leases, want 5 ± 1", mean, deviation)
	}
}
