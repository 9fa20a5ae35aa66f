package schedulers_test

import (
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Counter-examples found by earlier runs, in the order in which they were found.
func TestFoundOnce(t *testing.T) {
	one := func(id string, seconds time.Duration) traces.Job { return whole(id, 0, seconds*second, 1) }
	for _, c := range []struct {
		name, order string
		spec        cluster.Spec
		jobs        []traces.Job
	}{
		{"a bound over jobs without work has no area to share out", "exact", cluster.Spec{Pool: 1},
			[]traces.Job{one("A", 0)}},
		{"of jobs that start together one with work must not go before those without", "exact", cluster.Spec{Pool: 1},
			[]traces.Job{one("A", 0), one("B", 0), one("C", 1), one("D", 0), one("E", 0)}},
		{"three shares of half a GPU need three GPUs, and no type has as many", "gavel-las",
			cluster.Spec{Racks: []cluster.RackSpec{{
				Nodes: []cluster.NodeSpec{{GPUs: 1}, {Count: 2, GPUs: 1, GPUType: "a"}}}}},
			[]traces.Job{{ID: "A", Work: second, GPUs: 3, GPUMilli: 500}}},
		{"the nodes of a type have GPUs enough, and too few cores", "gavel-ftf", cluster.Spec{Racks: []cluster.RackSpec{{
			Nodes: []cluster.NodeSpec{{GPUs: 4, CPUs: 2}, {GPUs: 4, CPUs: 2, GPUType: "a"}}}}},
			[]traces.Job{{ID: "A", Work: second, GPUs: 4, GPUMilli: 1000, CPUMilli: 4000}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := &world{spec: c.spec, cfg: sim.DefaultConfig(), jobs: c.jobs, policy: schedulers.DefaultConfig()}
			x.policy.Order = c.order
			x.know()
			x.watched(t)
		})
	}
}

// A virtual cluster may own nodes without GPUs: keys that divide by the number of its GPUs must still be numbers.
func TestAVirtualClusterWithoutGPUs(t *testing.T) {
	spec := cluster.Spec{
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{CPUs: 8}, {GPUs: 1}}}},
		VCs:   []cluster.VCSpec{{Name: "cores", Nodes: 1}, {Name: "GPUs", Nodes: 1}},
	}
	var jobs []traces.Job
	for i := range 6 {
		jobs = append(jobs,
			traces.Job{ID: string(rune('A' + i)), Submit: time.Duration(i) * second, Work: 10 * second, Estimate: 10 * second,
				CPUMilli: 8000, VC: "cores"})
	}
	for _, order := range schedulers.Orders() {
		if order == "exact" { // it plans on nodes of like GPUs only
			continue
		}
		for _, way := range ways(order) {
			t.Run(order+"/"+way.String(), func(t *testing.T) {
				x := &world{spec: spec, cfg: sim.DefaultConfig(), jobs: jobs, policy: schedulers.DefaultConfig()}
				x.policy.Order, x.policy.Admission, x.policy.Backfill = order, way.admission, way.backfill
				x.know()
				x.watched(t)
			})
		}
	}
}
