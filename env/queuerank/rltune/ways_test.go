package rltune

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"clustergym/internal/raced"
)

// small is a cluster of one pool of n nodes of 8 GPUs.
func small(pools ...int) *Cluster {
	c := &Cluster{Name: "small", PerNode: 8}
	for i, n := range pools {
		c.Pools = append(c.Pools, Named{NewPool(Block{Nodes: n, Each: 8}), fmt.Sprint(i), 1})
		c.gpus += 8 * n
	}
	return c
}

func played(t *testing.T, c *Cluster, backfill bool, policy string, jobs ...Job) string {
	t.Helper()
	rule, err := NewRule(policy)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMachine(c, backfill)
	starts := make([]string, len(jobs))
	for i := range starts {
		starts[i] = "-"
		jobs[i].Known = jobs[i].Run
	}
	m.OnStart = func(j int, at int64, _ []Part) { starts[j] = fmt.Sprint(at) }
	m.Reset(jobs)
	Play(m, rule, nil)
	return strings.Join(starts, " ")
}

func TestSchedulesByHand(t *testing.T) {
	j := func(submit, run int64, gpus int) Job { return Job{Submit: submit, Run: run, GPUs: gpus} }
	at := func(pool int, j Job) Job { j.Pool = pool; return j }
	for _, c := range []struct {
		name     string
		cluster  *Cluster
		backfill bool
		policy   string
		jobs     []Job
		want     string
	}{
		{"in order", small(1), false, "fcfs", []Job{j(5, 10, 4), j(6, 10, 4), j(7, 10, 1)}, "5 6 15"},
		// The second is held from 1 on; the third would fit and waits behind it.
		{"a job is committed to", small(1), false, "sjf", []Job{j(0, 10, 4), j(1, 5, 8), j(2, 1, 1)}, "0 10 15"},
		{"it blocks the other pools", small(1, 1), false, "sjf", []Job{j(0, 10, 4), j(1, 5, 8), at(1, j(2, 1, 1))},
			"0 10 10"},
		// It ends at 3, before 10.
		{"back-filled", small(1), true, "sjf", []Job{j(0, 10, 4), j(1, 5, 8), j(2, 1, 1)}, "0 10 2"},
		{"only in its pool", small(1, 1), true, "sjf", []Job{j(0, 10, 4), j(1, 5, 8), at(1, j(2, 1, 1))}, "0 10 10"},
		// It would end at 10, which is not before 10.
		{"not back-filled", small(1), true, "sjf", []Job{j(0, 10, 4), j(1, 5, 8), j(2, 8, 1)}, "0 10 15"},
		// Two nodes have 4 free each: a gang of 8 wants one whole node.
		{"the fewest nodes", small(2), false, "fcfs", []Job{j(0, 10, 4), j(0, 20, 8), j(1, 5, 12)}, "0 0 20"},
		// At 10 the third arrives before the first ends; the second is held already.
		{"arrivals first", small(1), false, "sjf", []Job{j(0, 10, 8), j(1, 5, 8), j(10, 1, 8), j(10, 2, 8)}, "0 10 15 16"},
		// 9 GPUs never fit one node: the cluster drains until 10, then the job is dropped.
		{"dropped", small(1), false, "fcfs", []Job{j(0, 10, 4), j(1, 5, 9), j(2, 1, 1)}, "0 - 10"},
	} {
		if got := played(t, c.cluster, c.backfill, c.policy, c.jobs...); got != c.want {
			t.Errorf("%s: jobs start at %s, want %s", c.name, got, c.want)
		}
	}
}

// In Helios the job after a back-filled one is passed over; the held job can be the one that is.
func TestBackFillingPassesOverJobs(t *testing.T) {
	jobs := func() []Job {
		return []Job{{Submit: 0, Run: 100, GPUs: 4}, {Submit: 1, Run: 50, GPUs: 8}, {Submit: 2, Run: 1, GPUs: 1},
			{Submit: 2, Run: 2, GPUs: 1}, {Submit: 2, Run: 3, GPUs: 1}}
	}
	c := small(1)
	if got := played(t, c, true, "fcfs", jobs()...); got != "0 100 2 2 2" {
		t.Errorf("jobs start at %s", got)
	}
	c.Skips = true
	// Each is seen alone when it arrives, so all are back-filled at once. With the node full until 10 they come together.
	if got := played(t, c, true, "fcfs", append([]Job{{Submit: 0, Run: 10, GPUs: 4}}, jobs()...)...); got !=
		"0 0 100 10 11 10" {
		t.Errorf("jobs start at %s, want the fifth a second later", got)
	}
}

// On empty nodes 12 GPUs have the ways 8 + 4, 7 + 5 and 6 + 6, of which the last is the first by node and GPUs. Three
// nodes would leave three partly free, where none was.
func TestWaysByHand(t *testing.T) {
	p := NewPool(Block{Nodes: 3, Each: 8})
	var f Finder
	parts, ok := f.First(p, []int32{8, 8, 8}, 12, nil)
	if got := written(parts, 1); !ok || got != "1:6 2:6" {
		t.Errorf("12 GPUs are placed as %q", got)
	}
	if one, two := f.count(p, []int32{8, 8, 8}, 12, 0, true); one != 3 || two != 0 {
		t.Errorf("%d and %d ways, want 3 and 0", one, two)
	}
	// With 2, 2 and 8 free, 4 GPUs go on the last node, or fill the first two. The last node with another would have to be
	// taken wholly.
	if one, two := f.count(p, []int32{2, 2, 8}, 4, 0, true); one != 1 || two != 1 {
		t.Errorf("%d and %d ways, want 1 and 1", one, two)
	}
}

// 1 GPU on the node of 6 free ones leaves 5 and 8, on the whole node 6 and 7. The values are 0.3 times the difference,
// less a half for each node with room for the next job.
func TestProgrammeByHand(t *testing.T) {
	var o Programme
	free := []int32{6, 8}
	ways := [][]Part{{{0, 1}}, {{1, 1}}}
	for _, c := range []struct {
		next   int
		values string
	}{
		{8, "0.40 0.30"}, // room for the next job does not outweigh the spread
		{7, "0.40 -0.20"},
		{0, "0.90 0.30"}, // there is no next job
	} {
		got := fmt.Sprintf("%.2f %.2f", o.Objective(free, nil, ways[0], c.next), o.Objective(free, nil, ways[1], c.next))
		if k := o.Choose(free, ways, c.next, true); got != c.values || k != 1 {
			t.Errorf("next %d: values %s, way %d; want %s, way 1", c.next, got, k, c.values)
		}
	}
}

// Jobs are picked at random. No node is overcommitted, which would panic, every gang has its GPUs on the fewest nodes
// or on one more, and all GPUs are free at the end.
func TestMachinesKeepTheirBooks(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		c, err := NewCluster(Clusters()[seed%3])
		if err != nil {
			t.Fatal(err)
		}
		var jobs []Job
		at := int64(0)
		for range 120 {
			at += int64(r.IntN(50))
			pool := r.IntN(len(c.Pools))
			run := int64(1 + r.IntN(900))
			most := min(160, c.Pools[pool].GPUs())
			jobs = append(jobs,
				Job{Submit: at, Run: run, Known: run, GPUs: 1 + r.IntN(min(most, []int{2, 8, 20, 160}[r.IntN(4)])), Pool: pool})
		}
		fcfs, err := NewRule("fcfs")
		if err != nil {
			t.Fatal(err)
		}
		m := NewMachine(c, seed%2 == 0)
		m.OnStart = func(j int, _ int64, parts []Part) {
			fewest := 0 // nodes, by the kind of node of which the job needs most
			for _, b := range c.Pools[jobs[j].Pool].Blocks {
				if b.takes(jobs[j].GPUs) {
					fewest = max(fewest, b.needs(jobs[j].GPUs))
				}
			}
			if len(parts) > fewest+1 {
				t.Errorf("seed %d: job %d of %d GPUs is on %d nodes, want %d or one more", seed, j, jobs[j].GPUs, len(parts),
					fewest)
			}
			sum := 0
			for _, p := range parts {
				sum += int(p.GPUs)
			}
			if sum != jobs[j].GPUs {
				t.Errorf("seed %d: job %d has %d GPUs, wants %d", seed, j, sum, jobs[j].GPUs)
			}
		}
		m.Reset(jobs)
		place := &Programmed{Base: fcfs}
		for !m.Done() {
			m.Commit(r.IntN(m.Waiting()), place)
		}
		for len(m.running) > 0 {
			m.event()
		}
		for i, p := range c.Pools {
			for n, left := range m.free[i] {
				if int(left) != p.Each(n) {
					t.Errorf("seed %d: pool %d, node %d: %d free at the end", seed, i, n, left)
				}
			}
		}
		if m.Started() != len(jobs) || m.Dropped() != 0 {
			t.Errorf("seed %d: %d of %d jobs have started", seed, m.Started(), len(jobs))
		}
	}
}

// A decision does not allocate once buffers have their sizes.
func TestDecisionsDoNotAllocate(t *testing.T) {
	if raced.On {
		t.Skip("the race detector allocates")
	}
	c, err := NewCluster("philly")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	var jobs []Job
	for i := range 256 {
		jobs = append(jobs, Job{Submit: int64(5 * i), Run: 1000, Known: 1000, GPUs: 1 + r.IntN(24)})
	}
	rule, err := NewRule("sjf")
	if err != nil {
		t.Fatal(err)
	}
	m := NewMachine(c, true)
	place := &Programmed{Base: rule}
	var o Observer
	play := func() {
		m.Reset(jobs)
		for !m.Done() {
			rule.Sort(m)
			o.Look(m)
			m.Commit(0, place)
		}
	}
	play()
	if n := testing.AllocsPerRun(2, play); n > 0 {
		t.Errorf("a run of 256 decisions allocates %v times", n)
	}
}

func BenchmarkRun(b *testing.B) {
	c, err := NewCluster("philly")
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	var jobs []Job
	for i := range 256 {
		jobs = append(jobs, Job{Submit: int64(20 * i), Run: 1000, Known: 1000, GPUs: 1 + r.IntN(24)})
	}
	rule, err := NewRule("sjf")
	if err != nil {
		b.Fatal(err)
	}
	m := NewMachine(c, false)
	b.ReportAllocs()
	for b.Loop() {
		m.Reset(jobs)
		Play(m, rule, nil)
	}
}
