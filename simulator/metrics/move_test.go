package metrics_test

import (
	"context"
	"math"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Two nodes of two GPUs. From 0 to 4 a gang has one GPU of each: 2 of 2 free GPUs are on nodes in use. From 4 to 8 it
// has the first node: 0 of 2. From 8 to 10 it has one GPU, after shrinking: 1 of 3. Then nothing is in use.
func TestFragmentationFollowsMoves(t *testing.T) {
	m, err := sim.New(sim.DefaultConfig(),
		cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2}}}}})
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

// A job of 100 s is stopped at 50 s and continues at 60 s. Its bounded slowdown is its JCT over its work: the time that
// it spends on GPUs to restart, to start or to communicate makes it worse, never better.
func TestOverheadNeverImprovesBoundedSlowdown(t *testing.T) {
	two := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2}}}}}
	old := cluster.Spec{Speeds: map[string]float64{"old": .5},
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2, GPUType: "old"}}}}}
	at, err := cluster.New(two)
	if err != nil {
		t.Fatal(err)
	}
	side, apart := []cluster.GPU{0, 1}, []cluster.GPU{0, 2}
	for _, c := range []struct {
		name    string
		spec    cluster.Spec
		on      []cluster.GPU
		restart time.Duration
		start   time.Duration
		want    float64
	}{
		{"nothing", two, side, 0, 0, 1.1},
		{"restart of 10 s", two, side, 10 * second, 0, 1.2},
		{"restart of 1000 s", two, side, 1000 * second, 0, 11.1},
		{"start of 20 s", two, side, 0, 20 * second, 1.5}, // twice
		{"half the speed", old, side, 0, 0, 2.1},          // against a GPU of speed 1
		{"communication", two, apart, 0, 0, .1 + at.Cost(apart)/at.BestCost(2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := sim.DefaultConfig()
			cfg.Comm, cfg.Restart, cfg.Overhead.Start = "tree", c.restart, c.start
			m, err := sim.New(cfg, c.spec)
			if err != nil {
				t.Fatal(err)
			}
			jobs := []traces.Job{job(0, 100, 2), job(50, 1, 1), job(60, 1, 1)} // the later jobs wake the script
			if err := m.Reset(&traces.Slice{Jobs: jobs}); err != nil {
				t.Fatal(err)
			}
			var got metrics.Collector
			got.Keep = func(pos int) bool { return pos == 0 }
			if err := sim.Run(context.Background(), m, script{
				0:           {{Op: sim.StartJob, Job: 0, GPUs: c.on}},
				50 * second: {{Op: sim.PreemptJob, Job: 0}, {Op: sim.DropJob, Job: 1}},
				60 * second: {{Op: sim.StartJob, Job: 0, GPUs: c.on}, {Op: sim.DropJob, Job: 2}},
			}, &got); err != nil {
				t.Fatal(err)
			}
			if x := got.Summary(0, 0).BoundedSlowdown.Mean; math.Abs(x-c.want) > 1e-9 { // times are rounded up to nanoseconds
				t.Errorf("bounded slowdown %v, want %v", x, c.want)
			}
		})
	}
}
