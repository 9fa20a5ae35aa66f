package schedulers_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// The communication share is a share, also of jobs that hold more or fewer GPUs than they asked for, or fast ones.
func TestCommunicationShareIsAShare(t *testing.T) {
	for _, order := range schedulers.Orders() {
		if order == "exact" {
			continue // it takes long
		}
		t.Run(order, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				x := drawWorld(t, wants{order: order, worked: true})
				s, p := x.machine(t)
				var c metrics.Collector
				x.playOn(t, s, p, &history{}, &c)
				if got := c.Summary(0, 0).Communication; got < -1e-9 || got > 1 {
					t.Fatalf("the communication share is %v\n%s", got, x)
				}
			})
		})
	}
}

// Three elastic jobs on eight GPUs, none of which communicates: whatever they hold, nothing of their time is
// communication.
func TestElasticJobsThatDoNotCommunicate(t *testing.T) {
	var jobs []traces.Job
	for i, work := range []time.Duration{100, 200, 400} {
		j := whole(fmt.Sprint(i), 0, work*second, 2)
		j.MinGPUs, j.MaxGPUs = 1, 8
		jobs = append(jobs, j)
	}
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Admission, c.Round = "optimus", "", 10*second })
	var c metrics.Collector
	s, err := sim.New(sim.DefaultConfig(), cluster.Spec{Pool: 8})
	if err != nil {
		t.Fatal(err)
	}
	x := &world{jobs: jobs}
	x.playOn(t, s, h, &history{}, &c)
	if got := c.Summary(0, 0).Communication; got < -1e-6 || got > 1e-6 {
		t.Errorf("the communication share is %v, want 0", got)
	}
}
