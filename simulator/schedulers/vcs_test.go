package schedulers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// undividable are the orders that do not treat each virtual cluster by itself.
var undividable = map[string]string{
	"random": "it draws a job's rank from its position among the jobs of all virtual clusters",
	"exact":  "it plans no virtual clusters",
}

// Virtual clusters that own their nodes behave as clusters of their own: simulated together, every job of each starts,
// moves, stops and ends at the times and on the GPUs that it has if the virtual clusters are simulated one by one. The
// virtual clusters that share the other nodes are one such cluster.
func TestVirtualClustersWithNodesAreClustersOfTheirOwn(t *testing.T) {
	claim := func(t *rapid.T, order string) (preempted int) {
		// Not with forecasts: a predictor learns from the jobs of all virtual clusters.
		x := drawWorld(t, wants{order: order, owned: true, apart: true, most: 24})
		x.cfg.Comm, x.cfg.Failures = "none", sim.Failures{} // costs are relative to the best place of the whole cluster
		if schedulers.Preemptive(order) {
			x.cfg.Serial = false // a policy that asked for a time cannot wait there for its own part's events
		}
		if x.policy.Placement == "random" {
			x.policy.Placement = "first-fit" // it draws from what is free on all nodes
		}
		x.policy.Given.Classes = nil // they name virtual clusters
		limited := yes(t, "cores and memory are limited")
		for i := range x.spec.Racks { // alike in all parts: where no node limits them, requests do not name them
			for k := range x.spec.Racks[i].Nodes {
				n := &x.spec.Racks[i].Nodes[k]
				if n.CPUs, n.MemGB = 0, 0; limited {
					n.CPUs, n.MemGB = 8, 16
				}
			}
		}
		c, err := cluster.New(x.spec)
		if err != nil {
			t.Fatalf("%v\n%s", err, x)
		}
		domains := []int32{0}
		for i, vc := range x.spec.VCs {
			if vc.Nodes > 0 {
				domains = append(domains, int32(i+1))
			}
		}
		together := x.log(t, 0, 0, func(j *traces.Job) int32 { return domainOf(&x.spec, j.VC) })
		for _, d := range domains {
			y := x.only(c, d)
			if y == nil || strings.HasPrefix(order, "gavel") && !y.sameTypes(t, c) {
				continue
			}
			from, _ := nodesOf(c, &x.spec, d)
			g, _ := c.NodeGPUs(from)
			apart := y.log(t, from, g, func(*traces.Job) int32 { return d })
			if got, want := together[d], apart[d]; got != want {
				t.Fatalf("virtual cluster %d together:\n%s\n%s", d, diff(got, want), x)
			}
			preempted += strings.Count(apart[d], " preempt ")
		}
		return preempted
	}
	forAllOrders(t, func(t *rapid.T, order string) { claim(t, order) }, undividable)
	preempted := 0
	for i, order := range schedulers.Orders() {
		if undividable[order] != "" || !schedulers.Preemptive(order) {
			continue
		}
		runs := rapid.Custom(func(t *rapid.T) int { return claim(t, order) })
		for seed := range 25 { // the same runs each time, so that the count cannot fail by chance
			preempted += runs.Example(25*i + seed)
		}
	}
	t.Logf("%d jobs were stopped", preempted)
	if preempted < 1000 {
		t.Errorf("only %d jobs were stopped: this tests too little", preempted)
	}
}

// domainOf returns the number of the virtual cluster called name if it owns nodes, 0 if it shares them, -1 if there is
// none.
func domainOf(spec *cluster.Spec, name string) int32 {
	i := slices.IndexFunc(spec.VCs, func(v cluster.VCSpec) bool { return v.Name == name })
	if i >= 0 && spec.VCs[i].Nodes == 0 {
		return 0
	}
	return int32(i + 1)
}

// nodesOf returns the range of the nodes of a domain.
func nodesOf(c *cluster.Cluster, spec *cluster.Spec, domain int32) (from, to int) {
	if domain > 0 {
		return c.VCNodes(domain)
	}
	for _, v := range spec.VCs {
		from += v.Nodes
	}
	return from, c.Nodes()
}

// sameTypes reports whether x has the types of GPUs of whole, in the same order: gavel's program has a column for each
// type of the whole cluster, and of several optima it may then find another.
func (x *world) sameTypes(t fatal, whole *cluster.Cluster) bool {
	t.Helper()
	c, err := cluster.New(x.spec)
	if err != nil {
		t.Fatalf("%v\n%s", err, x)
	}
	return slices.Equal(c.Types(), whole.Types())
}

// only returns x with the nodes and jobs of one domain, nil if it has no GPUs.
func (x *world) only(c *cluster.Cluster, domain int32) *world {
	from, to := nodesOf(c, &x.spec, domain)
	y := *x
	y.spec.Racks, y.spec.VCs, y.jobs = nil, nil, nil
	n, gpus, types := 0, 0, map[string]bool{}
	for _, r := range x.spec.Racks {
		for range r.Count.N() {
			k := cluster.RackSpec{Uplink: r.Uplink}
			for _, s := range r.Nodes {
				for range s.Count.N() {
					if n >= from && n < to {
						s.Count = 1
						k.Nodes = append(k.Nodes, s)
						types[s.GPUType] = true
						gpus += s.GPUs
					}
					n++
				}
			}
			if len(k.Nodes) > 0 {
				y.spec.Racks = append(y.spec.Racks, k)
			}
		}
	}
	if gpus == 0 {
		return nil
	}
	y.spec.Speeds = nil
	for k, v := range x.spec.Speeds {
		if types[k] {
			if y.spec.Speeds == nil {
				y.spec.Speeds = map[string]float64{}
			}
			y.spec.Speeds[k] = v
		}
	}
	if domain == 0 {
		for _, v := range x.spec.VCs {
			if v.Nodes == 0 {
				y.spec.VCs = append(y.spec.VCs, v)
			}
		}
	}
	for _, j := range x.jobs {
		if domainOf(&x.spec, j.VC) == domain &&
			slices.ContainsFunc(x.spec.VCs, func(v cluster.VCSpec) bool { return v.Name == j.VC }) {
			if domain > 0 {
				j.VC = ""
			}
			y.jobs = append(y.jobs, j)
		}
	}
	return &y
}

// log plays x and returns the events of the jobs of each domain. The numbers of nodes and GPUs grow by node and gpu.
func (x *world) log(t fatal, node int, gpu cluster.GPU, domain func(*traces.Job) int32) map[int32]string {
	t.Helper()
	s, p := x.machine(t)
	all := map[int32]*strings.Builder{}
	x.playOn(t, s, p, &history{}, spy(func(v *sim.View, p *sim.Point) error {
		for _, e := range p.Events {
			if e.Job < 0 {
				continue
			}
			d := domain(v.Trace(e.Job))
			if all[d] == nil {
				all[d] = &strings.Builder{}
			}
			gpus := slices.Clone(e.GPUs)
			for i, g := range gpus {
				if gpus[i] = g + gpu; g < 0 {
					gpus[i] = g - cluster.GPU(node)
				}
			}
			fmt.Fprintln(all[d], e.At, e.Kind, v.Trace(e.Job).ID, e.N, gpus)
		}
		return nil
	}))
	out := map[int32]string{}
	for d, b := range all {
		out[d] = b.String()
	}
	return out
}

type spy func(v *sim.View, p *sim.Point) error

func (o spy) Observe(v *sim.View, p *sim.Point) error { return o(v, p) }

// Two nodes of two GPUs; A may hold two GPUs, B all four. When j2 comes, j0 has 3 s left, j1 5 s and j2 2 s: j2 takes
// all that A may hold, so j0 stops. GPUs 2 and 3 are idle, so j1 goes on.
func TestAQuotaStopsOnlyItsOwnJobs(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2}}}},
		VCs: []cluster.VCSpec{{Name: "A", Quota: 2}, {Name: "B", Quota: 4}}}
	jobs := []traces.Job{whole("j0", 0, 5*second, 1), whole("j1", 0, 7*second, 1), whole("j2", 2*second, 2*second, 2)}
	jobs[0].VC, jobs[1].VC, jobs[2].VC = "A", "B", "A"
	want := "0s start j0, 0s start j1, 2s preempt j0, 2s start j2, 4s finish j2, 4s start j0, 7s finish j1, 7s finish j0"
	for _, shape := range []string{"nodes", "a counter"} {
		if shape == "a counter" {
			spec.Racks, spec.Pool = nil, 4
		}
		h := scheduler(t, func(c *schedulers.Config) { c.Order = "srtf" })
		check(t, shape, events(t, spec, jobs, h), want)
		schedulers.PlanExactly(h)
		check(t, shape+", planned exactly", events(t, spec, jobs, h), want)
	}
}

// A may hold one GPU, and a0 holds that of type b; b0 and b1 of B hold those of type a. j of A, the first in rank,
// wants one of type a. a0 stops because of the quota, and of B's jobs the last in rank, not the first.
func TestAQuotaThatIsSpentCostsOthersNoMoreThanItMust(t *testing.T) {
	spec := cluster.Spec{
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 1, GPUType: "a"}, {GPUs: 1, GPUType: "b"},
			{GPUs: 1, GPUType: "a"}}}},
		VCs: []cluster.VCSpec{{Name: "A", Quota: 1}, {Name: "B"}}}
	jobs := []traces.Job{whole("a0", 0, 10*second, 1), whole("b0", 0, 20*second, 1), whole("b1", 0, 30*second, 1),
		whole("j", second, second, 1)}
	for i, typ := range []string{"b", "a", "a", "a"} {
		jobs[i].GPUTypes, jobs[i].VC = []string{typ}, strings.ToUpper(jobs[i].ID[:1])
	}
	jobs[3].VC = "A"
	h := scheduler(t, func(c *schedulers.Config) { c.Order = "srtf" })
	check(t, "srtf", events(t, spec, jobs, h),
		"0s start a0, 0s start b0, 0s start b1, 1s preempt a0, 1s preempt b1, 1s start j, "+
			"2s finish j, 2s start a0, 2s start b1, 11s finish a0, 20s finish b0, 31s finish b1")
}

// conserving checks a policy at the end of every point: no job that was stopped waits although it has a place, unless
// it was stopped at this very point and the policy asks to be called a nanosecond later.
type conserving struct {
	schedulers.Policy
	t       fatal
	x       *world
	place   cluster.Placement
	stopped map[int]bool // positions
	count   int
	late    int
}

func (c *conserving) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if err := c.Policy.Decide(v, p, d); err != nil {
		return err
	}
	switch d.Op {
	case sim.PreemptJob:
		c.stopped[v.Pos(d.Job)] = true
		c.count++
	case sim.Wait:
		for _, j := range v.Waiting() {
			if v.Preemptions(j) == 0 {
				continue
			}
			if _, ok := c.place.Place(v.Cluster(), v.Request(j), nil); !ok {
				continue
			}
			if c.late++; !c.stopped[v.Pos(j)] || d.Until != v.Now()+1 {
				c.t.Fatalf("at %v %s was stopped, has a place and waits until %v\n%s", v.Now(), v.Trace(j).ID, d.Until, c.x)
			}
		}
		clear(c.stopped)
	}
	return nil
}

// Where virtual clusters share nodes within quotas, a job that was stopped and still fits its quota and the free GPUs
// goes on at once: no job is stopped for one that may not use its GPUs.
func TestAStoppedJobThatFitsItsQuotaGoesOn(t *testing.T) {
	count, late, seed := 0, 0, 0
	for _, order := range schedulers.Orders() {
		if !schedulers.IsOrder(order) || !schedulers.Preemptive(order) {
			continue // policies in rounds have a time of their own
		}
		t.Run(order, func(t *testing.T) {
			play := func(t *rapid.T) *conserving {
				x := drawWorld(t, wants{order: order, way: &how{"skip", "none"}, shared: true, most: 24})
				if x.policy.Placement == "random" || strings.HasPrefix(x.policy.Placement, "l") ||
					x.policy.Placement == "rack-skewed" || x.policy.Placement == "fgd" {
					x.policy.Placement = "first-fit" // the check has no view of the run to give them
				}
				x.cfg.Serial = false
				place, err := cluster.NewPlacement(x.policy.Placement)
				if err != nil {
					t.Fatal(err)
				}
				s, h := x.machine(t)
				if yes(t, "planned exactly") {
					schedulers.PlanExactly(h)
				}
				c := &conserving{Policy: h, t: t, x: x, place: place, stopped: map[int]bool{}}
				x.playOn(t, s, c, &history{})
				return c
			}
			rapid.Check(t, func(t *rapid.T) { play(t) })
			for range 50 { // the same runs each time, so that the counts cannot fail by chance
				seed++
				c := rapid.Custom(play).Example(seed)
				count, late = count+c.count, late+c.late
			}
		})
	}
	if count < 500 || late == 0 {
		t.Errorf("%d jobs were stopped, %d went on a nanosecond later: this tests too little", count, late)
	}
	t.Log(count, late)
}
