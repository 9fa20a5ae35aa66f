package place

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// started is a job and where it runs; a job with an empty list waits.
type started struct {
	traces.Job
	on []cluster.GPU
}

func share(model string, seconds, gpus, milli int, on ...cluster.GPU) started {
	return started{traces.Job{ID: model, Model: model, Work: time.Duration(seconds) * time.Second, GPUs: gpus,
		GPUMilli: milli}, on}
}

// standing returns a run at time 0 in which jobs have been started; they are numbered as listed.
func standing(t testing.TB, spec cluster.Spec, jobs []started) *sim.View {
	t.Helper()
	s, err := sim.New(sim.DefaultConfig(), spec)
	if err != nil {
		t.Fatal(err)
	}
	var all []traces.Job
	for _, j := range jobs {
		all = append(all, j.Job)
	}
	if err := s.Reset(&traces.Slice{Jobs: all}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i, j := range jobs {
		if len(j.on) > 0 {
			if err := s.Apply(&sim.Decision{Op: sim.StartJob, Job: sim.Job(i), GPUs: j.on}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s.View()
}

func named(t testing.TB, name string, with Given) Placement {
	t.Helper()
	p, err := New(name, sim.Estimates{Mode: sim.EstimateExact}, with)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func nodes(n, gpus int) cluster.Spec {
	return cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: cluster.Count(n), GPUs: gpus}}}}}
}

// Three nodes of two GPUs. Loads in seconds: 10 and 4 on node 0 (mean 7); 7, on a GPU without room, and 0 on node 1
// (3.5); 9 and 0 on node 2 (4.5).
func TestLWFByHand(t *testing.T) {
	jobs := []started{share("A", 10, 1, 500, 0), share("B", 4, 1, 500, 1), share("C", 6, 1, 500, 2),
		share("D", 1, 1, 500, 2), share("E", 9, 1, 500, 4),
		share("one", 1, 1,
			500), share("two", 1, 2, 500), share("three", 1, 3, 500), share("whole", 1, 1, 1000), share("five", 1, 5, 500)}
	v := standing(t, nodes(3, 2), jobs)
	for _, x := range []struct {
		name string
		job  sim.Job
		want string
	}{
		{"lwf-1", 5, "[3]"},
		{"lwf-1", 6, "[3 5]"},   // by node: 1, of which only GPU 3, then 2, of which the less loaded
		{"lwf-1", 7, "[3 5 4]"}, // node 2 before node 0
		{"lwf-4", 7, "[3 5 1]"}, // by GPU: 0, 0, 4
		{"lwf-32", 9, "[3 5 1 4 0]"},
		{"lwf-2", 8, "[3]"},
	} {
		got, ok := named(t, x.name, Given{}).Place(v, x.job, v.Request(x.job), v.Cluster(), nil)
		if !ok || fmt.Sprint(got) != x.want {
			t.Errorf("%s places job %d on %v, %v; want %s", x.name, x.job, got, ok, x.want)
		}
	}

	// On a planning copy that has freed what A holds, GPU 0 has no load.
	plan, err := cluster.New(nodes(3, 2))
	if err != nil {
		t.Fatal(err)
	}
	plan.CopyFrom(v.Cluster())
	plan.Release(v.Request(0), v.GPUs(0))
	if got, ok := named(t, "lwf-1", Given{}).Place(v, 5, v.Request(5), plan, nil); !ok || got[0] != 0 {
		t.Errorf("on the copy it takes %v, %v; want GPU 0", got, ok)
	}
}

// pairs is a table of what the victim keeps beside the other, by model; missing entries are 1.
type pairs map[[2]string]float64

func (p pairs) Kept(victim, other *traces.Job) float64 {
	if k, ok := p[[2]string{victim.Model, other.Model}]; ok {
		return k
	}
	return 1
}

// Node 0 runs x on one of its four GPUs, node 1 y on two, node 2 both on one each. With x the product is 3/4 × 1/2 =
// 3/8, with y 1 × 1/2, with both 3/16.
func TestLeastInterferenceByHand(t *testing.T) {
	table := pairs{{"n", "x"}: 0.75, {"x", "n"}: 0.5, {"y", "n"}: 0.5}
	jobs := []started{share("x", 9, 1, 1000, 0), share("y", 9, 2, 1000, 4, 5), share("x", 9, 1, 1000, 8),
		share("y", 9, 1, 1000, 9),
		share("n", 1, 1,
			1000), share("n", 1, 3, 1000), share("n", 1, 5, 1000), share("else", 1, 1, 1000), share("n", 1, 0, 0)}
	v := standing(t, nodes(3, 4), jobs)
	for _, x := range []struct {
		with Given
		job  sim.Job
		want string
	}{
		{Given{nil, table, "node"}, 4, "[6]"},
		{Given{nil, table, "node"}, 5, "[1 2 3]"},     // only node 0 holds it
		{Given{nil, table, "node"}, 6, "[6 7 1 2 3]"}, // all of node 1, which is best, then node 0 for the rest
		{Given{nil, table, "node"}, 7, "[6]"},         // no job is disturbed: best-fit
		{Given{nil, table, "node"}, 8, "[-2]"},        // without GPUs: on node 1
		{Given{nil, table, "gpu"}, 4, "[6]"},          // whole GPUs are not shared: best-fit
		{Given{}, 4, "[6]"},
	} {
		got, ok := named(t, "least-interference", x.with).Place(v, x.job, v.Request(x.job), v.Cluster(), nil)
		if !ok || fmt.Sprint(got) != x.want {
			t.Errorf("scope %q: job %d goes to %v, %v; want %s", x.with.InterferenceScope, x.job, got, ok, x.want)
		}
	}

	// Shares: GPU 0 runs x, GPU 1 y, GPU 2 both, GPU 3 nothing.
	jobs = []started{share("x", 9, 1, 400, 0), share("y", 9, 1, 300, 1), share("x", 9, 1, 200, 2),
		share("y", 9, 1, 200, 2),
		share("n", 1, 1, 500), share("n", 1, 2, 500), share("n", 1, 3, 500), share("else", 1, 1, 500)}
	v = standing(t, nodes(2, 2), jobs)
	for _, x := range []struct {
		job  sim.Job
		want string
	}{
		{4, "[3]"},     // alone
		{5, "[1 0]"},   // 1/2 × 3/8 on node 0, 1 × 3/16 on node 1: the lowest
		{6, "[1 0 3]"}, // no node holds it
		{7, "[0]"},     // disturbs no job: the fullest that suffices; 600 are left of GPUs 0 and 2
	} {
		got, ok := named(t, "least-interference",
			Given{nil, table, "gpu"}).Place(v, x.job, v.Request(x.job), v.Cluster(), nil)
		if !ok || fmt.Sprint(got) != x.want {
			t.Errorf("shares: job %d goes to %v, %v; want %s", x.job, got, ok, x.want)
		}
	}
}

// draw returns a random state of 4 nodes of 4 GPUs: shares run, some jobs wait.
func draw(t testing.TB, r *rand.Rand) *sim.View {
	c, err := cluster.New(nodes(4, 4))
	if err != nil {
		t.Fatal(err)
	}
	random := cluster.NewRandom(0)
	var jobs []started
	for range 20 {
		j := share(string(rune('a'+r.IntN(4))), 1+r.IntN(50), 1+r.IntN(3), []int{250, 500, 1000}[r.IntN(3)])
		if q, _ := c.Request(&j.Job); r.IntN(2) == 0 {
			random.Reseed(r.Uint64())
			if gpus, ok := random.Place(c, &q, nil); ok {
				j.on = gpus
				if err := c.Allocate(&q, gpus); err != nil {
					t.Fatal(err)
				}
			}
		}
		jobs = append(jobs, j)
	}
	for n := range 6 {
		jobs = append(jobs, share("a", 1, 1+2*n, 250))
	}
	return standing(t, nodes(4, 4), jobs)
}

// naiveLWF applies the rule without sorting: it takes the next best again and again.
func naiveLWF(v *sim.View, j sim.Job, k int) (out []cluster.GPU) {
	c, r := v.Cluster(), v.Request(j)
	load := func(g cluster.GPU) (sum time.Duration) {
		for _, i := range v.Running() {
			for _, h := range v.GPUs(i) {
				if h == g {
					sum += v.Trace(i).Work
				}
			}
		}
		return sum
	}
	taken := map[cluster.GPU]bool{}
	best := func(from, to cluster.GPU) cluster.GPU {
		b := cluster.GPU(-1)
		for g := from; g < to; g++ {
			if c.GPUFree(g) >= r.Milli && !taken[g] && (b < 0 || load(g) < load(b)) {
				b = g
			}
		}
		return b
	}
	done := map[int]bool{}
	for len(out) < r.GPUs {
		from, to := cluster.GPU(0), cluster.GPU(c.GPUs())
		if r.GPUs > k {
			node, mean := -1, math.Inf(1)
			for n := range c.Nodes() {
				from, to := c.NodeGPUs(n)
				sum := time.Duration(0)
				for g := from; g < to; g++ {
					sum += load(g)
				}
				if m := sum.Seconds() / float64(to-from); !done[n] && best(from, to) >= 0 && m < mean {
					node, mean = n, m
				}
			}
			if from, to = c.NodeGPUs(node); true {
				done[node] = true
			}
			for len(out) < r.GPUs && best(from, to) >= 0 {
				g := best(from, to)
				taken[g], out = true, append(out, g)
			}
			continue
		}
		g := best(from, to)
		taken[g], out = true, append(out, g)
	}
	return out
}

func TestLWFAgainstTheNextBestAgainAndAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	compared := 0
	for range 60 {
		v := draw(t, r)
		for _, k := range []int{1, 2, 4, 8} {
			p := newLWF(k, sim.Estimates{Mode: sim.EstimateExact})
			for _, j := range v.Waiting() {
				got, ok := p.Place(v, j, v.Request(j), v.Cluster(), nil)
				if ok != v.Fits(j) {
					t.Fatalf("lwf-%d: %v, fits %v", k, ok, v.Fits(j))
				}
				if !ok {
					continue
				}
				if want := naiveLWF(v, j, k); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("lwf-%d places %+v on %v, want %v", k, *v.Request(j), got, want)
				}
				compared++
			}
		}
	}
	if compared < 1000 {
		t.Errorf("%d compared", compared)
	}
}

// The chosen node has room for all, and no other such node leaves more; every placement here names free GPUs.
func TestLeastInterferenceFindsTheBestNode(t *testing.T) {
	table := pairs{}
	r := rand.New(rand.NewPCG(10, 10))
	for a := 'a'; a < 'e'; a++ {
		for b := 'a'; b < 'e'; b++ {
			table[[2]string{string(a), string(b)}] = float64(1+r.IntN(8)) / 8 // products of eighths are exact
		}
	}
	p := newLeastInterference(Given{Interference: table, InterferenceScope: "node"})
	compared := 0
	for range 100 {
		v := draw(t, r)
		c := v.Cluster()
		plan, err := cluster.New(c.Spec())
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range v.Waiting() {
			got, ok := p.Place(v, j, v.Request(j), c, nil)
			if ok != v.Fits(j) {
				t.Fatalf("placed %v, fits %v", ok, v.Fits(j))
			}
			if !ok {
				continue
			}
			plan.CopyFrom(c)
			if err := plan.Allocate(v.Request(j), got); err != nil {
				t.Fatal(err)
			}
			score := func(node int) float64 {
				s := 1.0
				for _, i := range v.OnNode(node) {
					s *= table.Kept(v.Trace(i), v.Trace(j)) * table.Kept(v.Trace(j), v.Trace(i))
				}
				return s
			}
			for n := range c.Nodes() {
				if c.Room(n, v.Request(j)) >= v.Request(j).GPUs {
					compared++
					if at := c.NodeOf(got[0]); score(n) > score(at) {
						t.Fatalf("node %d keeps %v, node %d would keep %v", at, score(at), n, score(n))
					}
				}
			}
		}
	}
	if compared < 1000 {
		t.Errorf("%d compared", compared)
	}
}

func TestJobPlacementsDoNotAllocate(t *testing.T) {
	v := draw(t, rand.New(rand.NewPCG(11, 11)))
	for _, name := range []string{"lwf-1", "lwf-4", "least-interference/node", "least-interference/gpu", "random", "fgd"} {
		name, scope, _ := strings.Cut(name, "/")
		p := named(t, name, Given{Interference: pairs{{"a", "b"}: 0.5}, InterferenceScope: scope})
		var gpus []cluster.GPU
		if n := testing.AllocsPerRun(100, func() {
			for _, j := range v.Waiting() {
				gpus, _ = p.Place(v, j, v.Request(j), v.Cluster(), gpus)
			}
		}); n != 0 {
			t.Errorf("%s %s: %v allocations per run", name, scope, n)
		}
	}
}

func TestPlacementNames(t *testing.T) {
	for _, name := range append(Names(), "lwf-7", "lwf-128") {
		if _, err := New(name, sim.Estimates{}, Given{}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "anywhere", "lwf", "lwf-", "lwf-0", "lwf--1", "lwf-01", "lwf-+1", "lwf-x",
		"lwf-99999999999999999999"} {
		_, err := New(name, sim.Estimates{}, Given{})
		if err == nil || !strings.Contains(err.Error(), "consolidate-first") || !strings.Contains(err.Error(), "lwf-1") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestPlacementsFollowTheSeedAndForgetOtherRuns(t *testing.T) {
	v := draw(t, rand.New(rand.NewPCG(12, 12)))
	all := func(p Placement) (s string) {
		p.Reset()
		for _, j := range v.Waiting() {
			gpus, _ := p.Place(v, j, v.Request(j), v.Cluster(), nil)
			s += fmt.Sprint(gpus)
		}
		return s
	}
	for _, name := range Names() {
		p := named(t, name, Given{Interference: pairs{{"a", "b"}: 0.5}, InterferenceScope: "node"})
		if first := all(p); all(p) != first {
			t.Errorf("%s: another run differs", name)
		}
	}
	p := named(t, "random", Given{})
	first := all(p)
	p.(*blind).Reseed(5)
	if all(p) == first {
		t.Error("random does not follow its seed")
	}
}
