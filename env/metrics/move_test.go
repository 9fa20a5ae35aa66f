package metrics_test

import (
	"context"
	"math"
	"testing"

	"clustergym/env/cluster"
	"clustergym/env/metrics"
	"clustergym/env/sim"
	"clustergym/traces"
)

// Two nodes of two GPUs. From 0 to 4 a gang has one GPU of each: 2 of 2 free GPUs are on nodes in use. From 4 to 8 it
// has the first node: 0 of 2. From 8 to 10 it has one GPU, after shrinking: 1 of 3. Then nothing is in use.
func TestFragmentationFollowsMoves(t *testing.T) {
	m, err := sim.New(sim.DefaultConfig(), cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2}}}}})
	if err != nil {
		t.Fatal(err)
	}
	gang := job(0, 9, 2)
	gang.MinGPUs, gang.MaxGPUs = 1, 2
	jobs := []traces.Job{gang, job(4, 1, 4), job(8, 1, 4)} // the later jobs wake the script
	if err := m.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	var c metrics.Collector
	on := func(gpus ...cluster.GPU) []cluster.GPU { return gpus }
	if err := sim.Run(context.Background(), m, script{
		0:          {{Op: sim.StartJob, Job: 0, GPUs: on(0, 2)}},
		4 * second: {{Op: sim.MigrateJob, Job: 0, GPUs: on(0, 1)}, {Op: sim.DropJob, Job: 1}},
		8 * second: {{Op: sim.ResizeJob, Job: 0, GPUs: on(1)}, {Op: sim.DropJob, Job: 2}},
	}, &c); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Summary(0, 0).Fragmentation, (4*1+4*0+2*1./3)/10; math.Abs(got-want) > 1e-15 {
		t.Errorf("fragmentation %v, want %v", got, want)
	}
}
