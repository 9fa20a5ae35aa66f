package schedulers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// startedAt notes when each job starts.
type startedAt map[string]time.Duration

func (s startedAt) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == sim.Start {
			s[v.Trace(e.Job).ID] = e.At
		}
	}
	return nil
}

func startsOf(t fatal, spec cluster.Spec, jobs []traces.Job, cfg schedulers.Config) startedAt {
	t.Helper()
	h, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := startedAt{}
	simulator, err := sim.New(sim.DefaultConfig(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := simulator.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	if err := sim.Run(context.Background(), simulator, h, s); err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

// kinds of hardware and jobs for which counting GPUs does not say what fits.
var hardware = []string{"plain", "types", "cores", "shares", "quotas", "counter with quotas", "chunks", "partitions", "all"}

// hard draws a few nodes, and jobs that keep them busy and fragment them.
func hard(r *rand.Rand, kind string, n int) (spec cluster.Spec, jobs []traces.Job) {
	some := func(k string) bool { return kind == k || kind == "all" && r.IntN(2) == 0 }
	gpus, nodes := 2+2*r.IntN(2), 2+r.IntN(3)
	var rack cluster.RackSpec
	types, cores, shares, chunks := some("types"), some("cores"), some("shares"), some("chunks")
	for range nodes {
		node := cluster.NodeSpec{GPUs: gpus}
		if types {
			node.GPUType = []string{"A", "B"}[r.IntN(2)]
		}
		if cores {
			node.CPUs, node.MemGB = 8, 32
		} else if shares || chunks {
			node.CPUs = 100 // enough: so that no job is one of those for which counting is enough
		}
		rack.Nodes = append(rack.Nodes, node)
	}
	spec.Racks = []cluster.RackSpec{rack}
	vcs := some("quotas")
	if kind == "counter with quotas" {
		spec, vcs = cluster.Spec{Pool: nodes * gpus}, true
	}
	if vcs {
		spec.VCs = []cluster.VCSpec{{Name: "a", Quota: 2 + r.IntN(nodes*gpus-1)}, {Name: "b"}}
	}
	if some("partitions") && spec.Pool == 0 {
		vcs = true
		reserved, from := 1+r.IntN(nodes), r.IntN(nodes)
		spec.VCs = []cluster.VCSpec{{Name: "a", Hosts: []string{fmt.Sprintf("[0-%d]", reserved-1)}},
			{Name: "b", Hosts: []string{fmt.Sprintf("[%d-%d]", from, nodes-1)}}}
	}
	at := time.Duration(0)
	for i := range n {
		at += []time.Duration{0, 0, 1, 2, 5}[r.IntN(5)] * second
		j := whole(fmt.Sprint(i), at, time.Duration(5+r.IntN(96))*second,
			[]int{1, 1, 2, 2, 3, gpus, gpus + 1, nodes * gpus}[r.IntN(8)])
		switch {
		case shares && r.IntN(5) < 2:
			j.GPUs, j.GPUMilli = 1+r.IntN(2), 250*(1+r.IntN(3))
		case cores && r.IntN(8) == 0:
			j.GPUs, j.GPUMilli = 0, 0
		}
		if (shares || chunks) && !cores {
			j.CPUMilli = int64(max(1, j.GPUs))
		}
		if cores {
			j.CPUMilli, j.MemBytes = int64(1+r.IntN(6))*1000*int64(max(1, j.GPUs)), int64(r.IntN(16))<<30
		}
		if types && j.GPUs > 0 {
			j.GPUTypes = [][]string{{"A", "B"}, {"A"}, {"B"}}[r.IntN(3)]
		}
		if chunks && j.GPUs > 1 && r.IntN(3) > 0 {
			j.Nodes = (j.GPUs+gpus-1)/gpus + r.IntN(2)
		}
		if vcs {
			j.VC = []string{"a", "b"}[r.IntN(2)]
		}
		jobs = append(jobs, j)
	}
	return spec, jobs
}

// With estimates that are right, the first job that has to wait starts no later than it would without the jobs behind
// it, under EASY; under conservative back-filling that holds for every job. So no job that is let past another delays
// its reservation, whatever the jobs ask for and whatever virtual clusters they are in.
func TestJobsThatAreLetPastOthersDelayNone(t *testing.T) {
	for _, backfill := range []string{"easy", "conservative"} {
		for _, kind := range hardware {
			t.Run(backfill+" "+kind, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
					spec, jobs := hard(r, kind, rapid.IntRange(2, 25).Draw(t, "jobs"))
					cfg := schedulers.DefaultConfig()
					cfg.Backfill, cfg.Placement = backfill, fixedPlacements[r.IntN(len(fixedPlacements))]
					full := startsOf(t, spec, jobs, cfg)
					for k, j := range jobs {
						at, ok := full[j.ID]
						if !ok || at == j.Submit {
							continue
						}
						if alone, ok := startsOf(t, spec, jobs[:k+1], cfg)[j.ID]; !ok || at > alone {
							t.Fatalf("%s, placement %s: %s starts at %v, without the jobs behind it at %v (%v)\n%+v\n%s", cfg.Name(),
								cfg.Placement, j.ID, at, alone, ok, spec, listed(jobs))
						}
						if backfill == "easy" {
							break
						}
					}
				})
			})
		}
	}
}

// A job starts on the GPUs reserved for it although the placement would refuse them by now: of a gang with one member
// on each node, consolidate puts all but the last on idle nodes, and the jobs that are let past it take the second GPUs
// of its nodes.
func TestAPlaceReservedIsKeptThoughThePlacementWouldRefuseIt(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 3, GPUs: 2, CPUs: 8}}}}}
	job := func(id string, at, work time.Duration, gpus int, coresEach int64) traces.Job {
		j := whole(id, at*second, work*second, gpus)
		j.CPUMilli = coresEach * 1000 * int64(gpus)
		return j
	}
	jobs := []traces.Job{
		job("three", 0, 6, 3, 5),  // one GPU of each node
		job("pair", 0, 1, 2, 0),   // both GPUs of a node: the first, at 6s
		job("behind", 0, 1, 3, 5), // at 7s, as three
		job("apart", 0, 1, 2, 5),  // one GPU of each of the other nodes, at 6s
		job("past 1", 3, 4, 1, 0), // the second GPU of one of them
		job("past 2", 5, 2, 1, 0), // and of the other
	}
	want := map[string]time.Duration{"three": 0, "pair": 6 * second, "behind": 7 * second, "apart": 6 * second,
		"past 1": 3 * second, "past 2": 5 * second}
	for _, placement := range []string{"consolidate-first", "consolidate-best"} {
		cfg := schedulers.DefaultConfig()
		called("fifo+strict+conservative")(&cfg)
		cfg.Placement = placement
		got := startsOf(t, spec, jobs, cfg)
		for id, at := range want {
			if got[id] != at {
				t.Errorf("%s: %q starts at %v, want %v", placement, id, got[id], at)
			}
		}
	}
}

// A gang that asks for more cores may have a place earlier than one that asks for less: consolidate spreads a gang that
// no node could hold when idle.
func TestAPlacementMayTakeWhatAsksForMore(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2, CPUs: 8, MemGB: 32}}}}}
	job := func(id string, work time.Duration, gpus int, cores, gb int64) traces.Job {
		j := whole(id, 0, work*second, gpus)
		j.CPUMilli, j.MemBytes = cores*1000, gb<<30
		if gpus == 0 {
			j.GPUMilli = 0
		}
		return j
	}
	jobs := []traces.Job{
		job("a", 10, 0, 3, 20), job("b", 10, 0, 3, 20), // on a node each, which keeps five cores
		job("together", 5, 2, 6, 0), // on one node, when a or b has ended
		job("apart", 5, 2, 10, 0),   // on two nodes, now
	}
	for _, placement := range []string{"consolidate-first", "consolidate-best"} {
		cfg := schedulers.DefaultConfig()
		called("fifo+strict+conservative")(&cfg)
		cfg.Placement = placement
		got := startsOf(t, spec, jobs, cfg)
		if got["apart"] != 0 || got["together"] != 10*second {
			t.Errorf("%s: they start at %v and %v, want 0s and 10s", placement, got["apart"], got["together"])
		}
	}
}

func listed(jobs []traces.Job) (text string) {
	for i := range jobs {
		j := &jobs[i]
		text += fmt.Sprintf("%s: at %v for %v on %d×%d‰ %v %d milli-cores %d bytes %s %d nodes\n", j.ID, j.Submit, j.Work,
			j.GPUs, j.GPUMilli, j.GPUTypes, j.CPUMilli, j.MemBytes, j.VC, j.Nodes)
	}
	return text
}

// A stream of small jobs does not keep the first in line from its place, if that is known in advance: one that needs
// all GPUs of a type, of a node, a whole GPU, the cores or the memory of a node, the quota of its virtual cluster, or
// nodes that the jobs of another virtual cluster use.
func TestTheFirstInLineDoesNotStarve(t *testing.T) {
	nodes := func(n ...cluster.NodeSpec) cluster.Spec {
		return cluster.Spec{Racks: []cluster.RackSpec{{Nodes: n}}}
	}
	shared := nodes(cluster.NodeSpec{Count: 2, GPUs: 4})
	shared.VCs = []cluster.VCSpec{{Name: "a"}, {Name: "b"}}
	limited := nodes(cluster.NodeSpec{Count: 2, GPUs: 4})
	limited.VCs = []cluster.VCSpec{{Name: "a", Quota: 8}, {Name: "b", Quota: 4}}
	partitions := nodes(cluster.NodeSpec{Count: 3, GPUs: 4, Names: []string{"g1", "g2", "g3"}})
	partitions.VCs = []cluster.VCSpec{{Name: "wide", Hosts: []string{"g[2-3]"}}, {Name: "left", Hosts: []string{"g2"}}}
	counter := cluster.Spec{Pool: 8, VCs: limited.VCs}
	full := func(gpus int, change func(j *traces.Job)) traces.Job {
		j := whole("", 0, 0, gpus)
		change(&j)
		return j
	}
	same := func(*traces.Job) {}
	for name, x := range map[string]struct {
		spec         cluster.Spec
		first, small traces.Job
		placement    string
		long         int // GPUs of a job that runs for long; 0 = no such job
	}{
		"a type": {nodes(cluster.NodeSpec{GPUs: 4, GPUType: "A"}, cluster.NodeSpec{Count: 4, GPUs: 4, GPUType: "B"}),
			full(4, func(j *traces.Job) { j.GPUTypes = []string{"A"} }),
			full(1, func(j *traces.Job) { j.GPUTypes = []string{"A"} }), "first-fit", 0},
		"a node": {nodes(cluster.NodeSpec{Count: 2, GPUs: 4}), full(4, same), full(1, same), "consolidate-first", 3},
		"chunks": {nodes(cluster.NodeSpec{Count: 3, GPUs: 4}), full(9, func(j *traces.Job) { j.Nodes = 3 }), full(2, same),
			"worst-fit", 0},
		"a whole GPU": {nodes(cluster.NodeSpec{GPUs: 1}), full(1, same), full(1, func(j *traces.Job) { j.GPUMilli = 500 }),
			"first-fit", 0},
		"a partition": {partitions, full(8, func(j *traces.Job) { j.VC = "wide" }),
			full(1, func(j *traces.Job) { j.VC = "left" }), "first-fit", 0},
		"whole GPUs": {nodes(cluster.NodeSpec{GPUs: 4}), full(4, same), full(1, func(j *traces.Job) { j.GPUMilli = 500 }),
			"worst-fit", 0},
		"cores": {nodes(cluster.NodeSpec{GPUs: 8, CPUs: 16, MemGB: 64}),
			full(1, func(j *traces.Job) { j.CPUMilli = 16000 }), full(1, func(j *traces.Job) { j.CPUMilli = 4000 }), "first-fit",
			0},
		"memory": {nodes(cluster.NodeSpec{GPUs: 8, CPUs: 16, MemGB: 64}),
			full(1, func(j *traces.Job) { j.MemBytes = 64 << 30 }), full(1, func(j *traces.Job) { j.MemBytes = 8 << 30 }),
			"first-fit", 0},
		"cores without GPUs": {nodes(cluster.NodeSpec{GPUs: 8, CPUs: 16, MemGB: 64}),
			full(8, func(j *traces.Job) { j.CPUMilli = 16000 }),
			full(0, func(j *traces.Job) { j.GPUMilli, j.CPUMilli = 0, 2000 }), "first-fit", 0},
		"shared nodes": {shared, full(8, func(j *traces.Job) { j.VC = "a" }), full(4, func(j *traces.Job) { j.VC = "b" }),
			"first-fit", 0},
		"quotas": {limited, full(8, func(j *traces.Job) { j.VC = "a" }), full(2, func(j *traces.Job) { j.VC = "b" }),
			"first-fit", 0},
		"quotas counted": {counter, full(8, func(j *traces.Job) { j.VC = "a" }), full(2, func(j *traces.Job) { j.VC = "b" }),
			"first-fit", 0},
		"its own quota": {limited, full(4, func(j *traces.Job) { j.VC = "b" }), full(1, func(j *traces.Job) { j.VC = "b" }),
			"first-fit", 0},
	} {
		add := func(j traces.Job, id string, at, work int) traces.Job {
			j.ID, j.Submit, j.Work = id, time.Duration(at)*second, time.Duration(work)*second
			return j
		}
		jobs := []traces.Job{add(x.small, "0", 0, 100), add(x.first, "first", 1, 100)}
		if x.long > 0 {
			jobs = append([]traces.Job{whole("one", 0, 100*second, x.long), whole("long", 0, 3000*second, x.long)}, jobs[1:]...)
		}
		for i := range 60 {
			jobs = append(jobs, add(x.small, fmt.Sprint("s", i), 2+20*i, 90))
		}
		for _, policy := range []string{"fifo+strict+easy", "fifo+strict+conservative"} {
			cfg := schedulers.DefaultConfig()
			called(policy)(&cfg)
			cfg.Placement = x.placement
			got := startsOf(t, x.spec, jobs, cfg)
			if got["first"] != 100*second {
				t.Errorf("%s, %s: it starts at %v, want 1m40s", name, policy, got["first"])
			}
		}
	}
}
